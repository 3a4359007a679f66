//! Running programs: the ready program, the choice of the engine, entering it, the result.
//!
//! | file | purpose |
//! |---|---|
//! | `image` | a loaded program with everything that its engines need |
//! | `plan`, `prepared` | the parameters of a run; the chosen engine, ready to start |
//! | `stack` | the frames, which all engines share |
//! | `checked`, `operations`, `watch` | the checked interpreter, which runs any bytes |
//! | `attached`, `attached_call` | functions that other programs replace or trace, and their calls |
//! | `uninit` | finds uninitialised bytes that leave a program, by watching a run |
//! | `fast` | a run of operations, and what the compilers' code needs of it |
//! | `cells`, `native` | what the compilers make, as data: cells for threaded code, machine code |
//!
//! `interp` compiles operations to cells and `jit` compiles them to machine code. Both use
//! this module, and neither imports the other.

mod attached;
mod attached_call;
pub(crate) mod cells;
mod checked;
mod counting;
pub(crate) mod fast;
mod image;
mod native;
mod operations;
mod plan;
mod prepared;
mod stack;
mod uninit;
mod watch;

pub(crate) use attached::{AttachedFunction, Attachment};
pub use checked::{Budget, Checked, Finished};
pub use counting::Counting;
pub(crate) use image::Compilers;
pub use image::Image;
#[cfg(feature = "jit")]
pub(crate) use native::{EntryPoints, Native};
pub(crate) use plan::Plan;
pub(crate) use prepared::Prepared;
pub(crate) use stack::Head;
#[cfg(feature = "jit")]
pub(crate) use stack::{STRIDE, in_head};
pub use watch::{Step, Watch, WatchedFrame};
