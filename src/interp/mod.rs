//! Interpreters. The [`Checked`] one runs any bytes: every access is judged, every
//! way to stop is a [`Fault`](crate::vm::Fault), nothing is assumed.

mod checked;
mod fast;
mod image;
mod operations;
mod stack;
mod watch;

pub use checked::{Budget, Checked, Finished};
#[cfg(feature = "jit")]
pub(crate) use fast::{End, Native, Next, Run, Stop};
pub use image::Image;
pub use watch::{Step, Watch, WatchedFrame};
