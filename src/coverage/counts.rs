//! The counters of a loaded program.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::util::Pc;

/// How often each instruction was executed, and each conditional jump taken. Threads that run
/// the program concurrently share the counters.
#[derive(Debug)]
pub struct Counts {
    executed: Box<[AtomicU64]>,
    taken: Box<[AtomicU64]>,
}

impl Counts {
    /// Zeros for a program of this many slots.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        let zeros = || (0..slots).map(|_| AtomicU64::new(0)).collect();
        Self {
            executed: zeros(),
            taken: zeros(),
        }
    }

    /// Counts the execution of an instruction.
    pub fn execute(&self, pc: Pc) {
        add(&self.executed, pc);
    }

    /// Counts that a conditional jump is taken.
    pub fn take(&self, pc: Pc) {
        add(&self.taken, pc);
    }

    /// How often each instruction was executed, by slot.
    #[must_use]
    pub fn executed(&self) -> Vec<u64> {
        values(&self.executed)
    }

    /// How often each conditional jump was taken, by slot.
    #[must_use]
    pub fn taken(&self) -> Vec<u64> {
        values(&self.taken)
    }
}

fn add(counters: &[AtomicU64], pc: Pc) {
    if let Some(counter) = counters.get(pc.index()) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

fn values(counters: &[AtomicU64]) -> Vec<u64> {
    let values = counters.iter();
    values
        .map(|counter| counter.load(Ordering::Relaxed))
        .collect()
}
