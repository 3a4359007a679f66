//! Effects of single helpers beyond their prototypes (the `switch` of `check_helper_call`).

use super::call_state::Call;
use super::memory::byte;
use super::reference::Exit;
use crate::btf::Kind as BtfKind;
use crate::isa::Reg;
use crate::spec::helpers::{Effects, helper, id};
use crate::spec::{AttachType, ProgType};
use crate::verifier::env::Verifier;
use crate::verifier::log::log;
use crate::verifier::memory::Access;
use crate::verifier::reject::{VerifyResult, reject};

impl Verifier<'_> {
    /// Makes the stack bytes that the call fills unknown, byte by byte: other bytes of a
    /// slot stay.
    pub(super) fn fill_stack(&mut self, call: &Call) -> VerifyResult {
        let Some((reg, size)) = call.filled else {
            return Ok(());
        };
        for off in 0..size.cast_signed() {
            self.check_memory(&byte(reg, off, Access::Write))?;
        }
        Ok(())
    }

    /// Checks the helper's own rules, and pushes a state for its callback.
    pub(super) fn check_rules(&mut self, call: &Call) -> VerifyResult {
        match call.id {
            id::tail_call => self.check_leak(Exit::Program, "tail_call"),
            id::get_local_storage if !self.reg(Reg::R2).is_null() => {
                reject!(EINVAL, "get_local_storage() doesn't support non-zero flags");
            }
            id::snprintf => self.check_snprintf(),
            id::set_retval if self.returns_nothing() => {
                reject!(
                    EINVAL,
                    "BPF_LSM_CGROUP that attach to void LSM hooks can't modify return value!"
                );
            }
            id::r#loop => self.check_loop(call),
            _ => {
                let calls = Effects::CALLS_BACK.union(Effects::CALLS_BACK_LATER);
                let effects = helper(call.id).map_or(Effects::empty(), |helper| helper.effects);
                if effects.intersects(calls) {
                    self.call_back(call)
                } else {
                    Ok(())
                }
            }
        }
    }

    fn call_back(&mut self, call: &Call) -> VerifyResult {
        match call.callback {
            Some(subprogram) => self.push_callback(call.id, subprogram),
            None => Ok(()),
        }
    }

    /// Explores the callback of `bpf_loop` at most as often as the largest iteration count,
    /// which is precise therefore; after the last iteration, continues after the call.
    fn check_loop(&mut self, call: &Call) -> VerifyResult {
        self.note_loop(call)?;
        self.mark_precise(Reg::R1)?;
        let most = self.reg(Reg::R1).var.umax;
        if u64::from(self.frame().callback_depth) < most {
            return self.call_back(call);
        }
        self.state.frame_mut().callback_depth = 0;
        if self.log.is_full() {
            let frame = self.state.current();
            log!(self, "frame{frame} bpf_loop iteration limit reached\n");
        }
        Ok(())
    }

    /// Records a loop without flags and with the same callback on every path, which an
    /// engine may run without a call (`update_loop_inline_state`): the zero is precise
    /// then.
    fn note_loop(&mut self, call: &Call) -> VerifyResult {
        if !self.facts.may_be_plain_loop(self.pc()) {
            return Ok(());
        }
        let plain = self.reg(Reg::R4).is_null();
        if plain {
            self.mark_precise(Reg::R4)?;
        }
        self.facts
            .see_loop(self.pc(), call.callback.filter(|_| plain));
        Ok(())
    }

    /// Whether the program is attached to a cgroup hook whose return value is ignored.
    fn returns_nothing(&self) -> bool {
        let program = self.program;
        if program.prog_type != ProgType::Lsm
            || program.expected_attach_type != Some(AttachType::LsmCgroup)
        {
            return false;
        }
        let hook = || {
            let btf = program.kernel_btf.as_ref()?;
            let prototype = btf.get(program.attach_btf_id?)?.target()?;
            Some(prototype.target()?.kind() == BtfKind::Void)
        };
        hook().unwrap_or(false)
    }
}
