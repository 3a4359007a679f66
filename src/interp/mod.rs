//! Interpreters. The [`Checked`] interpreter runs any bytes: it checks every access, and
//! every way to stop is a [`Fault`](crate::vm::Fault). The fast one runs verified programs.

mod checked;
mod exception;
mod fast;
mod image;
mod native;
mod operations;
mod plan;
mod prepared;
mod stack;
mod watch;

pub use checked::{Budget, Checked, Finished};
#[cfg(feature = "jit")]
pub(crate) use fast::{End, Next, POINTERS, Run, Stop, Tail, look_up_at};
pub use image::Image;
#[cfg(feature = "jit")]
pub(crate) use native::{EntryPoints, Native};
pub(crate) use plan::Plan;
pub(crate) use prepared::Prepared;
pub(crate) use stack::Head;
#[cfg(feature = "jit")]
pub(crate) use stack::{STRIDE, in_head};
pub use watch::{Step, Watch, WatchedFrame};
