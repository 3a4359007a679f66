//! Reading and writing registers.

use super::env::Verifier;
use super::reg::RegState;
use super::reject::{VerifyResult, reject};
use crate::isa::Reg;

impl Verifier<'_> {
    /// Checks that a register which the instruction reads was written before
    /// (`check_reg_arg` with `SRC_OP`).
    pub(crate) fn check_read(&mut self, reg: Reg) -> VerifyResult {
        self.log.touch(reg);
        if !self.reg(reg).is_init() {
            reject!(EACCES, "R{} !read_ok", reg.number());
        }
        Ok(())
    }

    /// Checks that a register which the instruction writes is not the frame pointer
    /// (`check_reg_arg` with `DST_OP_NO_MARK`).
    pub(crate) fn check_write(&mut self, reg: Reg) -> VerifyResult {
        self.log.touch(reg);
        if reg == Reg::FP {
            reject!(EACCES, "frame pointer is read only");
        }
        Ok(())
    }

    /// Whether a number made of this register would leak a pointer (`is_pointer_value`).
    pub(crate) fn is_pointer_value(&self, reg: &RegState) -> bool {
        !self.privileges.allow_ptr_leaks && !reg.is_scalar()
    }

    /// Makes the register an unknown scalar (`mark_reg_unknown`).
    pub(crate) fn set_unknown(&mut self, reg: Reg) {
        self.set_reg(reg, RegState::UNKNOWN);
    }

    /// Makes the caller-saved registers uninitialised after a call.
    pub(crate) fn forget_caller_saved(&mut self) {
        for reg in Reg::ALL {
            if reg <= Reg::R5 {
                *self.reg_mut(reg) = RegState::NOT_INIT;
            }
        }
    }
}
