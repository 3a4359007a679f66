//! The kernel and our engines on the same events, for `bpflab compare`.

mod generated;

pub use generated::{EngineVerdicts, FindingRow, GeneratedSummary};
