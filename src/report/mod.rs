//! Every rendering of what the other layers found: they give data, this gives text
//! (`Display`) and JSON (`Serialize`).

mod datum;
mod histogram;
mod histogram_rule;
mod inspection;
mod listing;
mod map_contents;
mod map_summary;
mod outputs;
mod table;
mod tally;

pub use datum::{Datum, hex};
pub use histogram::{Buckets, Histogram, Row};
pub use histogram_rule::HistogramRule;
pub use inspection::{
    BtfSummary, ExternSummary, GlobalSummary, Inspection, NoteRow, ProgramSummary, RelocationRow,
};
pub use listing::{ListedInsn, ListedLine, Listing};
pub use map_contents::{Chart, MapContents, MapEntry, Variables};
pub use map_summary::MapSummary;
pub use outputs::{OutputRow, RecordTypes};
pub use table::Table;
pub use tally::{EventTally, FaultRow, ProgramTally, Returned};
