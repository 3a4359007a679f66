//! The kernel's tracing file system, mounted privately where it is not mounted:
//! numbers and formats of tracepoints, and buffers of our own for ftrace.

mod error;
mod files;
mod instance;

pub use error::TracefsError;
pub use files::Tracefs;
pub use instance::Instance;
