//! Programs attached to the running kernel while nothing else happens in this process.

#![cfg(all(feature = "kernel", target_os = "linux"))]

#[path = "../shared/mod.rs"]
mod shared;
#[path = "../shared/work.rs"]
mod work;

mod generated;
mod rate;

use std::sync::{Mutex, MutexGuard};

/// One test at a time: what other threads of this process do would be recorded, too.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|failed| failed.into_inner())
}
