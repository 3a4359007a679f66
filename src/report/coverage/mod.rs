//! Coverage of the C source: `bpflab cover`.

mod cobertura;
mod html;
mod lcov;
mod share;
mod summary;

pub use cobertura::cobertura;
pub use html::coverage_page;
pub use lcov::lcov;
pub use share::Share;
pub use summary::{CoverageReport, CoverageRow, FailUnder};
