//! Verdicts on programs: rows, tables and comparing.

mod annotations;
mod baseline;
mod change;
mod finding;
mod gate;
mod headline;
mod kernel_said;
mod kernels;
mod log_difference;
mod matching;
mod missing;
mod row;
mod sarif;
mod verdict_table;
mod words;

pub use annotations::{GithubAnnotations, code_quality};
pub use baseline::{Baseline, BaselineError, Before};
pub use change::{Change, Changes};
pub use finding::{Finding, Gravity};
pub use gate::{Count, FailOn, FailOnError, Percent};
pub use headline::Headline;
pub use kernel_said::{KernelSaid, Match};
pub use kernels::KernelsTable;
pub use log_difference::LogDifference;
pub use matching::MatchTable;
pub use missing::MissingRow;
pub use row::{Subject, VerdictRow, VerdictTally};
pub use sarif::sarif;
pub use verdict_table::VerdictTable;
