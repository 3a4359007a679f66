//! Watching programs in the running kernel: an object's programs are loaded in their
//! recorded form, attached while a command runs, and every firing goes into a recording;
//! or, without an object, the records of tracepoints do.
//!
//! | file | its one job |
//! |---|---|
//! | `session` | from the beginning to the end: who does what when |
//! | `object`, `programs` | a session about an object's programs: how each gets into the kernel |
//! | `forms` | the recorded forms of programs that tail calls may connect |
//! | `bare` | a session about tracepoints without programs |
//! | `follow`, `filter`, `tree` | whom it is about: the command's processes |
//! | `consume`, `outputs` | emptying what the kernel fills |
//! | `background` | a file that nobody has to wait for |
//! | `snapshot`, `context` | maps, contexts |
//! | `options`, `summary`, `error` | what goes in and what comes out |
//!
//! All that it makes in the kernel is held by descriptors of this process: whatever ends
//! it, nothing stays behind.

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
