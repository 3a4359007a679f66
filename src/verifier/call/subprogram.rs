//! Calls of static functions, which are explored at each call, and returns.

use crate::isa::Reg;
use crate::util::Pc;
use crate::verifier::env::Verifier;
use crate::verifier::log::log;
use crate::verifier::reg::{Kind, RegState};
use crate::verifier::reject::{VerifyResult, reject};
use crate::verifier::state::Frame;

impl Verifier<'_> {
    /// Checks a call of a subprogram; returns where exploration continues
    /// (`check_func_call`).
    pub(in crate::verifier) fn check_subprogram_call(
        &mut self,
        target: Pc,
        next: Pc,
    ) -> VerifyResult<Pc> {
        let Some(number) = self.subprogram_at(target) else {
            reject!(
                EFAULT,
                "target of func call at insn {target} is not a program"
            );
        };
        if self.subprogram(number).global {
            self.check_global_call(number)?;
            return Ok(next);
        }
        self.note_call_types(number)?;
        let callsite = self.pc();
        let mut callee = self.enter(number, callsite)?;
        for reg in Reg::ARGUMENTS {
            callee.regs[reg.index()] = *self.reg(reg);
        }
        self.forget_caller_saved();
        self.state.frames.push(callee);
        self.liveness.reset_current();
        if self.log.is_on() {
            let current = self.state.current();
            log!(self, "caller:\n");
            self.log_frame(current.saturating_sub(1));
            log!(self, "callee:\n");
            self.log_frame(current);
        }
        Ok(self.subprogram(number).start)
    }

    /// A frame for a call (`setup_func_entry`); the caller pushes it.
    pub(crate) fn enter(&mut self, subprogram: u32, callsite: Pc) -> VerifyResult<Frame> {
        let frames = self.state.frames.len();
        if !self.state.can_enter() {
            reject!(E2BIG, "the call stack of {} frames is too deep", frames + 1);
        }
        self.log.touch_all();
        // There are fewer than eight frames.
        let number = u8::try_from(frames).unwrap_or(u8::MAX);
        Ok(Frame::new(Some(callsite), subprogram, number))
    }

    /// Returns from a called frame; returns where the caller continues
    /// (`prepare_func_exit`).
    pub(in crate::verifier) fn check_return(&mut self) -> VerifyResult<Pc> {
        self.update_liveness();
        let callee = self.frame();
        let r0 = *self.reg(Reg::R0);
        let callsite = callee.callsite.unwrap_or(self.pc());
        let (in_callback, range) = (callee.in_callback(), callee.callback_range);
        if matches!(r0.kind, Kind::Stack { .. }) && r0.flags.is_empty() {
            reject!(EINVAL, "cannot return stack pointer to the caller");
        }
        if in_callback {
            if !r0.is_scalar() {
                reject!(EACCES, "R0 not a scalar value");
            }
            self.mark_precise(Reg::R0)?;
            let r0 = *self.reg(Reg::R0);
            self.check_callback_return(&r0, range)?;
        }
        // A callback returns to its call, which decides whether it is called again.
        let to = if in_callback {
            callsite
        } else {
            self.code().next(callsite)
        };
        if self.log.is_on() {
            let current = self.state.current();
            log!(self, "returning from callee:\n");
            self.log_frame(current);
            if !in_callback && let Some(caller) = self.state.frames.iter_mut().rev().nth(1) {
                caller.regs[Reg::R0.index()] = r0;
            }
            log!(self, "to caller at {to}:\n");
            self.log_frame(current.saturating_sub(1));
        }
        self.state.frames.pop();
        if in_callback {
            self.widen_callback(to)?;
        } else {
            *self.reg_mut(Reg::R0) = RegState { ..r0 };
        }
        Ok(to)
    }
}
