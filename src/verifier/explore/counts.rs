//! The number of instructions processed.

/// Counters of the exploration. Only exploration advances them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    processed: u64,
    jumps: u64,
}

impl Counts {
    /// Instructions processed (`insn_processed`).
    pub(crate) const fn processed(self) -> u64 {
        self.processed
    }

    /// Jumps processed.
    pub(crate) const fn jumps(self) -> u64 {
        self.jumps
    }

    /// What was processed since `earlier`.
    pub(crate) const fn since(self, earlier: Self) -> Self {
        Self {
            processed: self.processed - earlier.processed,
            jumps: self.jumps - earlier.jumps,
        }
    }

    /// Counts an instruction; returns how many were processed.
    pub(super) fn count_insn(&mut self) -> u64 {
        self.processed += 1;
        self.processed
    }

    /// Counts a jump.
    pub(super) fn count_jump(&mut self) {
        self.jumps += 1;
    }
}
