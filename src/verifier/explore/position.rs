//! The current instruction.

use crate::util::Pc;
use crate::verifier::history::NO_PC;

/// The current instruction. Only exploration changes it.
#[derive(Debug)]
pub(crate) struct Position {
    pc: Pc,
    prev: Pc,
    /// Whether the current instruction has an entry in the jump history (`cur_hist_ent`).
    noted: bool,
}

impl Position {
    /// The start of the program.
    pub(crate) const START: Self = Self {
        pc: Pc(0),
        prev: NO_PC,
        noted: false,
    };

    /// The current instruction.
    pub(crate) const fn pc(&self) -> Pc {
        self.pc
    }

    /// The instruction before it on the path.
    pub(crate) const fn prev(&self) -> Pc {
        self.prev
    }

    /// Sets the current instruction.
    pub(super) fn go_to(&mut self, pc: Pc) {
        self.pc = pc;
    }

    /// Begins the current instruction, which comes after `prev`.
    pub(super) fn begin(&mut self, prev: Pc) {
        (self.prev, self.noted) = (prev, false);
    }

    /// Marks that the current instruction has an entry in the jump history; returns whether
    /// it had one before.
    pub(super) fn note(&mut self) -> bool {
        std::mem::replace(&mut self.noted, true)
    }
}
