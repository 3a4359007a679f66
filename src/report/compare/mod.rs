//! The kernel and our engines on the same events, for `bpflab compare`.

mod generated;
mod live;

pub use generated::{EngineVerdicts, FindingRow, GeneratedSummary};
pub use live::CompareReport;
