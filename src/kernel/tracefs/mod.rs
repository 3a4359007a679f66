//! The kernel's tracing file system, mounted privately if it is not mounted: ids and formats of
//! tracepoints, and instances of ftrace.

mod error;
mod files;
mod instance;

pub use error::TracefsError;
pub use files::Tracefs;
pub use instance::Instance;
