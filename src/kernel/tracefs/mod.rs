//! The kernel's tracing file system, mounted privately where it is not mounted:
//! numbers and formats of tracepoints.

mod error;
mod files;

pub use error::TracefsError;
pub use files::Tracefs;
