//! The process that is watched, from before its first instruction to its end, and what
//! ends the watching.
//!
//! A command is held when it is a process already and has not run anything: whoever
//! watches it learns its number, prepares, and sets it free ([`spawn_held`]). Nothing of
//! it survives us: while it is held it ends when we do, whatever killed us, and later it
//! gets a `SIGTERM` then.

mod child;
mod held;
mod stop;

pub use child::{Child, Ended};
pub use held::{SpawnError, spawn_held};
pub use stop::Stop;

use super::sys;

/// Waits until programs that were detached have left their last run on each CPU. On
/// kernels that can't be asked (before 4.3, or without `CONFIG_MEMBARRIER`) it waits for
/// longer than a program runs.
pub fn settle() {
    if sys::grace_period().is_err() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}
