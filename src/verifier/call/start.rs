//! What the registers hold where a program or a global function begins
//! (`do_check_common`).

use crate::isa::Reg;
use crate::verifier::env::Verifier;
use crate::verifier::reg::{Kind, RegState};
use crate::verifier::reject::{Checked, reject};

impl Verifier<'_> {
    /// Sets `r1` and following for a walk that begins at this function.
    pub(crate) fn set_arguments(&mut self, subprogram: u32) -> Checked {
        if subprogram != 0 {
            reject!(ENOTSUPP, "global functions are not supported by bpflab yet");
        }
        *self.reg_mut(Reg::R1) = RegState::pointer(Kind::Ctx, Default::default());
        Ok(())
    }
}
