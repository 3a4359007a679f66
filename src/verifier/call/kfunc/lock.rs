//! Locks that may fail (`bpf_res_spin_lock` and its siblings).

use super::Call;
use super::argument::is_allocated;
use crate::isa::Reg;
use crate::util::{Errno, Pc};
use crate::verifier::env::Verifier;
use crate::verifier::references::LockKind;
use crate::verifier::reg::{Kind, RegState};
use crate::verifier::reject::{VerifyResult, reject};
use crate::verifier::scalar::Scalar;

/// The error numbers that such a lock may return: `-MAX_ERRNO` to -1.
const ERRORS: (i32, i32) = (-4095, -1);

impl Call<'_> {
    /// Whether the call takes a lock, and then may fail.
    pub(super) fn takes_lock(&self) -> bool {
        self.is("bpf_res_spin_lock") || self.is("bpf_res_spin_lock_irqsave")
    }

    /// Whether the interrupt state belongs to a lock.
    pub(super) fn saves_for_lock(&self) -> bool {
        self.is("bpf_res_spin_lock_irqsave") || self.is("bpf_res_spin_unlock_irqrestore")
    }
}

impl Verifier<'_> {
    /// Pushes the state in which the lock was not taken: the call returned an error.
    pub(super) fn push_failed_lock(&mut self, call: &Call<'_>, next: Pc) -> VerifyResult {
        if !call.takes_lock() {
            return Ok(());
        }
        let pc = self.pc();
        let failed = self
            .push_branch(next, pc, Errno::ENOMEM)
            .map_err(|why| why.and("failed to push state for failed lock acquisition"))?;
        let frame = failed.frame_mut();
        for reg in Reg::ALL.into_iter().take_while(|reg| *reg <= Reg::R5) {
            frame.regs[reg.index()] = RegState::NOT_INIT;
        }
        let (min, max) = ERRORS;
        let error = Scalar {
            smin: min.into(),
            smax: max.into(),
            smin32: min,
            smax32: max,
            ..Scalar::UNKNOWN
        };
        frame.regs[Reg::R0.index()] = RegState::scalar(error.synced());
        Ok(())
    }

    /// Checks the lock, and acquires or releases it.
    pub(super) fn check_resilient_lock(
        &mut self,
        call: &Call<'_>,
        at: usize,
        reg: Reg,
    ) -> VerifyResult {
        let state = self.reg(reg);
        let is_value = matches!(state.kind, Kind::MapValue { .. }) && state.flags.is_empty();
        if !is_value && !is_allocated(state) {
            reject!(
                EINVAL,
                "arg#{at} doesn't point to map value or allocated object"
            );
        }
        let kind = if call.saves_for_lock() {
            LockKind::ResilientIrq
        } else {
            LockKind::Resilient
        };
        self.process_lock(reg, kind, call.takes_lock())
    }
}
