//! The packet loads of classic BPF, `ABS` and `IND` (`check_ld_abs`).

use crate::isa::Reg;
use crate::spec::Traits;
use crate::util::{Errno, Pc};
use crate::verifier::call::helper::Exit;
use crate::verifier::env::Verifier;
use crate::verifier::reg::{Kind, RegState};
use crate::verifier::reject::{VerifyResult, reject};

impl Verifier<'_> {
    /// Checks `r0 = *(uN *)skb[index + off]` and returns where exploration continues. A
    /// load past the packet's end returns 0 from the function. So no reference may be
    /// acquired, and the caller of a subprogram has to expect this.
    pub(in crate::verifier) fn check_packet_load(
        &mut self,
        index: Option<Reg>,
        next: Pc,
    ) -> VerifyResult<Pc> {
        self.check_packet_context()?;
        if let Some(index) = index {
            self.check_read(index)?;
        }
        let context = *self.reg(Reg::R6);
        self.check_pointer_offset(&context, Reg::R6, false)?;
        for reg in Reg::ALL.into_iter().filter(|reg| *reg <= Reg::R5) {
            self.log.touch(reg);
        }
        self.forget_caller_saved();
        self.set_unknown(Reg::R0);
        if self.state.current() == 0 {
            return Ok(next);
        }
        self.push_branch(next, self.pc(), Errno::ENOMEM)?;
        self.set_reg(Reg::R0, RegState::constant(0));
        self.check_return()
    }

    /// Checks that programs of this type may use such loads.
    pub(in crate::verifier) fn check_legacy_loads(&self) -> VerifyResult {
        let traits = self.program.prog_type.info().traits;
        if !traits.contains(Traits::LEGACY_LOADS) {
            reject!(
                EINVAL,
                "BPF_LD_[ABS|IND] instructions not allowed for this program type"
            );
        }
        Ok(())
    }

    /// The checks before the index: the context is in r6, and no reference or lock is held.
    pub(in crate::verifier) fn check_packet_context(&mut self) -> VerifyResult {
        self.check_legacy_loads()?;
        self.check_read(Reg::R6)?;
        self.check_leak(Exit::Program, "BPF_LD_[ABS|IND]")?;
        let context = *self.reg(Reg::R6);
        if context.kind != Kind::Ctx || !context.flags.is_empty() {
            reject!(EINVAL, "at the time of BPF_LD_ABS|IND R6 != pointer to skb");
        }
        Ok(())
    }
}
