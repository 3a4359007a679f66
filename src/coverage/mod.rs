//! Coverage of the C source: what is counted while programs run, the files with the counts, and
//! the merged result by file and line.
//!
//! The environment variable [`VARIABLE`] names a folder, and switches the measurement on. The
//! checked interpreter then counts each instruction that it executes, and each conditional jump
//! that is taken. The process writes the counts to a file of its own in the folder.
//!
//! | file | purpose |
//! |---|---|
//! | `counts` | the counters of a loaded program |
//! | `unit` | a program as the reports need it: functions, lines, jumps, dead code |
//! | `record` | the lines of a file with counts |
//! | `collect` | writes such a file while the process runs |
//! | `read` | reads the files of a folder, and adds up the counts of each program |
//! | `source` | the result by file and line of the C source |

mod collect;
mod counts;
mod error;
mod read;
mod record;
mod source;
mod unit;

pub use collect::{Collector, Meter, collector};
pub use counts::Counts;
pub use error::CoverageError;
pub use read::{Measured, read};
pub use record::VARIABLE;
pub use source::{Branch, Function, Line, Side, Source, SourceFile, State, Tally};
pub use unit::Unit;
