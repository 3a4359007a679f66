//! What the next line of the log shows.

use crate::isa::Reg;

/// Registers and slots of the innermost frame that the log shows after an instruction
/// because it touched them (`scratched_regs`, `scratched_stack_slots`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Touched {
    regs: u16,
    slots: u64,
}

impl Touched {
    pub(super) const NONE: Self = Self { regs: 0, slots: 0 };

    /// Everything.
    pub(crate) const ALL: Self = Self {
        regs: u16::MAX,
        slots: u64::MAX,
    };

    pub(super) fn add_reg(&mut self, reg: Reg) {
        self.regs |= 1 << reg.number();
    }

    pub(super) fn add_slot(&mut self, slot: usize) {
        self.slots |= 1 << slot;
    }

    pub(super) const fn is_empty(self) -> bool {
        self.regs == 0 && self.slots == 0
    }

    pub(super) const fn has_reg(self, number: usize) -> bool {
        self.regs >> number & 1 == 1
    }

    pub(super) const fn has_slot(self, slot: usize) -> bool {
        self.slots >> slot & 1 == 1
    }
}
