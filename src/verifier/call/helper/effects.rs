//! What calls of single helpers do beyond their prototypes (the `switch` of
//! `check_helper_call`).

use super::memory::byte;
use super::under_way::Call;
use crate::btf::Kind as BtfKind;
use crate::isa::Reg;
use crate::spec::helpers::{Effects, helper, id};
use crate::spec::{AttachType, ProgType};
use crate::verifier::env::Verifier;
use crate::verifier::log::log;
use crate::verifier::memory::Access;
use crate::verifier::reject::{Checked, reject};

impl Verifier<'_> {
    /// The stack that the call fills holds anything afterwards, byte by byte: what a
    /// size does not reach of a slot stays as it was.
    pub(super) fn fill_stack(&mut self, call: &Call) -> Checked {
        let Some((reg, size)) = call.filled else {
            return Ok(());
        };
        for off in 0..size.cast_signed() {
            self.check_memory(&byte(reg, off, Access::Write))?;
        }
        Ok(())
    }

    /// The rules of the helper itself; enters what it calls back.
    pub(super) fn check_rules(&mut self, call: &Call) -> Checked {
        match call.id {
            id::tail_call => self.check_leak(true, "tail_call"),
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

    fn call_back(&mut self, call: &Call) -> Checked {
        match call.callback {
            Some(subprogram) => self.push_callback(call.id, subprogram),
            None => Ok(()),
        }
    }

    /// The callback of `bpf_loop` is walked as often as the most iterations there may be,
    /// so their number is precise; behind the last one the walk goes on.
    fn check_loop(&mut self, call: &Call) -> Checked {
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

    /// A loop without flags, with one callback on every path, is one that an engine may
    /// run without a call (`update_loop_inline_state`): the zero is precise then.
    fn note_loop(&mut self, call: &Call) -> Checked {
        if !self.facts.may_be_plain_loop(self.pc) {
            return Ok(());
        }
        let plain = self.reg(Reg::R4).is_null();
        if plain {
            self.mark_precise(Reg::R4)?;
        }
        self.facts
            .see_loop(self.pc, call.callback.filter(|_| plain));
        Ok(())
    }

    /// Whether the program stands in a hook of a cgroup whose result nobody looks at.
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
