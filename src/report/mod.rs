//! Every rendering of what the other layers found: they give data, this gives text
//! (`Display`) and JSON (`Serialize`).

mod datum;
mod histogram;
mod inspection;
mod listing;
mod map_summary;
mod table;

pub use datum::{Datum, hex};
pub use histogram::{Buckets, Histogram, Row};
pub use inspection::{
    BtfSummary, ExternSummary, GlobalSummary, Inspection, NoteRow, ProgramSummary, RelocationRow,
};
pub use listing::{ListedInsn, ListedLine, Listing};
pub use map_summary::MapSummary;
pub use table::Table;
