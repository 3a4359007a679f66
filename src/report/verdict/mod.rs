//! Verdicts on programs: rows, tables, filtering, sorting and comparing.

mod baseline;
mod change;
mod columns;
mod csv;
mod filter;
mod kernel_said;
mod log_difference;
mod matching;
mod missing;
mod row;
mod sort;
mod verdict_table;
mod words;

pub use baseline::{Baseline, BaselineError, Before};
pub use change::{Change, Changes};
pub use csv::csv;
pub use filter::{Filter, FilterError};
pub use kernel_said::{KernelSaid, Match};
pub use log_difference::LogDifference;
pub use matching::MatchTable;
pub use missing::MissingRow;
pub use row::{Subject, VerdictRow, VerdictTally};
pub use sort::{SortError, SortKey};
pub use verdict_table::VerdictTable;
