//! Coverage of the C source: `bpflab cover`.

mod lcov;
mod summary;

pub use lcov::lcov;
pub use summary::{CoverageReport, CoverageRow, FailUnder};
