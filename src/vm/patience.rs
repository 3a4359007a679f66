//! Waiting for another CPU that holds a `bpf_spin_lock`.

use std::time::{Duration, Instant};

/// How long a program waits for one on another CPU. The kernel waits for ever; here a
/// test goes on.
const LIMIT: Duration = Duration::from_secs(10);
/// How often the lock is looked at before other threads are let run.
const SPINS: u32 = 64;

/// Who waits, and since when.
#[derive(Debug, Default)]
pub(super) struct Patience {
    turns: u32,
    since: Option<Instant>,
}

impl Patience {
    /// Waits a moment; false when it has been too long.
    pub(super) fn wait(&mut self) -> bool {
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
