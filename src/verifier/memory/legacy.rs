//! The packet loads of classic BPF, `ABS` and `IND` (`check_ld_abs`).

use crate::isa::Reg;
use crate::spec::Traits;
use crate::util::{Errno, Pc};
use crate::verifier::env::Verifier;
use crate::verifier::reg::{Kind, RegState};
use crate::verifier::reject::{Checked, reject};

impl Verifier<'_> {
    /// `r0 = *(uN *)skb[index + off]`; where the walk goes on. A load past the packet's end
    /// leaves the function with 0, so nothing may be held, and the caller of a function
    /// has to expect that.
    pub(in crate::verifier) fn check_packet_load(
        &mut self,
        index: Option<Reg>,
        next: Pc,
    ) -> Checked<Pc> {
        self.check_packet_context()?;
        if let Some(index) = index {
            self.check_read(index)?;
        }
        let context = *self.reg(Reg::R6);
        self.check_pointer_offset(&context, Reg::R6, false)?;
        for reg in Reg::ALL.into_iter().filter(|reg| *reg <= Reg::R5) {
            self.touch(reg);
        }
        self.forget_caller_saved();
        self.set_unknown(Reg::R0);
        if self.state.current() == 0 {
            return Ok(next);
        }
        self.fork(next, self.pc, Errno::ENOMEM)?;
        self.set_reg(Reg::R0, RegState::constant(0));
        self.check_return()
    }

    /// Whether programs of this type have such loads.
    pub(in crate::verifier) fn check_legacy_loads(&self) -> Checked {
        let traits = self.program.prog_type.info().traits;
        if !traits.contains(Traits::LEGACY_LOADS) {
            reject!(
                EINVAL,
                "BPF_LD_[ABS|IND] instructions not allowed for this program type"
            );
        }
        Ok(())
    }

    /// What is checked before the index: the context is in r6, and nothing is held.
    pub(in crate::verifier) fn check_packet_context(&mut self) -> Checked {
        self.check_legacy_loads()?;
        self.check_read(Reg::R6)?;
        self.check_leak(true, "BPF_LD_[ABS|IND]")?;
        let context = *self.reg(Reg::R6);
        if context.kind != Kind::Ctx || !context.flags.is_empty() {
            reject!(EINVAL, "at the time of BPF_LD_ABS|IND R6 != pointer to skb");
        }
        Ok(())
    }
}
