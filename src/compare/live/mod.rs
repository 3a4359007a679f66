//! Records programs in the running kernel: loads an object's programs in their recorded form,
//! attaches them while a command runs, and writes every firing to a recording; or, without an
//! object, the records of tracepoints.
//!
//! | file | its one job |
//! |---|---|
//! | `session` | the steps of a session from start to end |
//! | `object`, `programs` | a session with an object's programs: loading and attaching them |
//! | `forms` | loading the recorded forms, together for programs connected by tail calls |
//! | `bare` | a session with tracepoints and no programs |
//! | `follow`, `filter`, `tree` | restricting a session to the command's processes |
//! | `consume`, `outputs` | draining rings and buffers |
//! | `background` | writing the file in another thread |
//! | `snapshot`, `context` | contents of maps, sizes of contexts |
//! | `options`, `summary`, `error` | options and results |
//!
//! Everything that a session creates in the kernel belongs to descriptors of this process:
//! however the process ends, nothing stays behind.

mod background;
mod bare;
mod consume;
mod context;
mod error;
mod filter;
mod follow;
mod forms;
mod object;
mod options;
mod outputs;
mod programs;
mod session;
mod snapshot;
mod summary;
mod tree;

pub use bare::LiveEvents;
pub(in crate::compare) use consume::Drain;
pub use error::LiveError;
pub use object::Live;
pub use options::{LiveOptions, default_buffer};
pub(in crate::compare) use outputs::Outputs;
pub use programs::LeftOut;
pub(in crate::compare) use snapshot::Snapshot;
pub use summary::{EventSummary, ProgramSummary, Summary};
