//! Verdicts on programs: rows, tables and comparing.

mod baseline;
mod change;
mod kernel_said;
mod kernels;
mod log_difference;
mod matching;
mod missing;
mod row;
mod verdict_table;
mod words;

pub use baseline::{Baseline, BaselineError, Before};
pub use change::{Change, Changes};
pub use kernel_said::{KernelSaid, Match};
pub use kernels::KernelsTable;
pub use log_difference::LogDifference;
pub use matching::MatchTable;
pub use missing::MissingRow;
pub use row::{Subject, VerdictRow, VerdictTally};
pub use verdict_table::VerdictTable;
