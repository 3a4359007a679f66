//! Waiting for a `bpf_spin_lock` that another CPU holds.

use std::time::{Duration, Instant};

/// How long a program waits for a lock. The kernel waits forever; a test has to end.
const LIMIT: Duration = Duration::from_secs(10);
/// How often to spin before yielding to other threads.
const SPINS: u32 = 64;

/// A wait for a lock: how many turns, and since when.
#[derive(Debug, Default)]
pub(in crate::vm) struct LockWait {
    turns: u32,
    since: Option<Instant>,
}

impl LockWait {
    /// Spins or yields once; false if the wait has exceeded the limit.
    pub(in crate::vm) fn wait(&mut self) -> bool {
        self.turns = self.turns.saturating_add(1);
        if self.turns < SPINS {
            std::hint::spin_loop();
            return true;
        }
        if self.since.get_or_insert_with(Instant::now).elapsed() > LIMIT {
            return false;
        }
        std::thread::yield_now();
        true
    }
}
