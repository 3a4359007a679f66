//! Starts and watches a process, from before its first instruction to its end or a stop
//! request.
//!
//! A command is held between fork and `execve`, so that the caller learns its process id,
//! prepares, and releases it ([`spawn_held`]). It does not outlive this process: it exits if
//! this process ends while it is held, and gets a `SIGTERM` if this process ends later.

mod child;
mod held;
mod stop;

pub use child::{Child, Ended};
pub use held::{SpawnError, spawn_held};
pub use stop::Stop;

use super::sys;

/// Waits until detached programs no longer run on any CPU. On kernels without `membarrier`
/// (before 4.3, or without `CONFIG_MEMBARRIER`) it sleeps for longer than a program runs.
pub fn settle() {
    if sys::grace_period().is_err() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}
