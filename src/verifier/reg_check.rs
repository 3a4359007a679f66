//! Reading and writing registers.

use super::env::Verifier;
use super::reg::RegState;
use super::reject::{Checked, reject};
use crate::isa::Reg;

impl Verifier<'_> {
    /// The instruction reads a register, so something must have been written to it
    /// (`check_reg_arg` with `SRC_OP`).
    pub(crate) fn check_read(&mut self, reg: Reg) -> Checked {
        self.touch(reg);
        if !self.reg(reg).is_init() {
            reject!(EACCES, "R{} !read_ok", reg.number());
        }
        Ok(())
    }

    /// The instruction writes a register, which the frame pointer does not bear
    /// (`check_reg_arg` with `DST_OP_NO_MARK`).
    pub(crate) fn check_write(&mut self, reg: Reg) -> Checked {
        self.touch(reg);
        if reg == Reg::FP {
            reject!(EACCES, "frame pointer is read only");
        }
        Ok(())
    }

    /// The register holds any number now (`mark_reg_unknown`).
    pub(crate) fn set_unknown(&mut self, reg: Reg) {
        self.set_reg(reg, RegState::UNKNOWN);
    }

    /// What a call leaves of the caller-saved registers: nothing.
    pub(crate) fn forget_caller_saved(&mut self) {
        for reg in Reg::ALL {
            if reg <= Reg::R5 {
                *self.reg_mut(reg) = RegState::NOT_INIT;
            }
        }
    }
}
