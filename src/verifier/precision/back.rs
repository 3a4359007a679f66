//! One step back: what has to be precise before an instruction so that the wanted registers
//! and slots are precise after it (`backtrack_insn`).

use super::marks::Marks;
use crate::isa::{AluOp, CallTarget, Insn, Operand, Reg};
use crate::util::{HelperId, Pc};
use crate::verifier::history::{LinkedSet, Step};
use crate::verifier::reject::{VerifyResult, reject};
use crate::verifier::structure::Structure;

/// The result of a step back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Back {
    Traced,
    /// The origin can't be tracked: every scalar has to become precise.
    Unsupported,
}

/// `bpf_tail_call`.
const TAIL_CALL: HelperId = HelperId(12);

/// A step back.
#[derive(Clone, Copy)]
pub(super) struct StepBack<'a> {
    pub structure: &'a Structure,
    pub pc: Pc,
    pub insn: Insn,
    /// The instruction executed next; `None` if there is none.
    pub next: Option<Pc>,
    /// Its entry in the jump history, and the registers and slots linked there.
    pub step: Option<Step>,
    pub links: LinkedSet,
}

impl StepBack<'_> {
    /// Replaces the registers and slots wanted after the instruction by those wanted before
    /// it.
    pub(super) fn take(&self, marks: &mut Marks) -> VerifyResult<Back> {
        self.sync_links(marks);
        let back = match self.insn {
            Insn::Alu {
                op: AluOp::Mov,
                dst,
                src,
                ..
            } => self.set(marks, dst, src.reg()),
            Insn::MovSx { dst, src, .. } | Insn::AddrSpaceCast { dst, src, .. } => {
                self.set(marks, dst, Some(src))
            }
            Insn::LoadImm64 { dst, .. } | Insn::LoadPseudo { dst, .. } => {
                self.set(marks, dst, None)
            }
            Insn::Alu {
                dst,
                src: Operand::Reg(src),
                ..
            } => {
                if marks.wants(dst) && src != Reg::FP {
                    marks.want(src);
                }
                Back::Traced
            }
            Insn::Load { dst, .. } | Insn::LoadSx { dst, .. } | Insn::LoadAcquire { dst, .. } => {
                self.load(marks, dst)
            }
            Insn::Store { base, src, .. } => self.store(marks, base, src.reg()),
            Insn::StoreRelease { base, src, .. } => self.store(marks, base, Some(src)),
            Insn::Atomic { op, base, src, .. } => match op.old(src) {
                // The old value is loaded from memory. Linux 6.18 ignores this
                // (CVE-2026-43009) and considers states equal that differ in it.
                Some(old) => self.load(marks, old),
                None => self.store(marks, base, Some(src)),
            },
            Insn::LoadPacket { .. } if marks.take(Reg::R0) => Back::Unsupported,
            Insn::LoadPacket { .. } => Back::Traced,
            Insn::JumpIf {
                dst,
                src: Operand::Reg(src),
                ..
            } => self.compare(marks, dst, src),
            Insn::Call(target) => self.call(marks, target)?,
            Insn::CallReg { .. } => self.helper(marks, None)?,
            Insn::Exit => self.exit(marks)?,
            // The registers are still wanted before.
            _ => Back::Traced,
        };
        self.sync_links(marks);
        Ok(back)
    }

    /// If one of the scalars linked here is wanted, all are.
    fn sync_links(&self, marks: &mut Marks) {
        if !self.links.is_empty() {
            marks.sync(self.links.iter());
        }
    }

    /// `dst = src`, or a constant.
    fn set(&self, marks: &mut Marks, dst: Reg, src: Option<Reg>) -> Back {
        if marks.take(dst)
            && let Some(src) = src
            && src != Reg::FP
        {
            marks.want(src);
        }
        Back::Traced
    }

    /// Only stack slots hold tracked scalars. A value loaded from other memory has no
    /// earlier origin.
    fn load(&self, marks: &mut Marks, dst: Reg) -> Back {
        if marks.take(dst)
            && let Some((frame, slot)) = self.step.and_then(Step::slot)
        {
            marks.set_slot(frame, slot);
        }
        Back::Traced
    }

    fn store(&self, marks: &mut Marks, base: Reg, src: Option<Reg>) -> Back {
        if marks.wants(base) {
            // A scalar as address: it is the difference of two pointers.
            return Back::Unsupported;
        }
        if let Some((frame, slot)) = self.step.and_then(Step::slot)
            && marks.take_slot(frame, slot)
            && let Some(src) = src
        {
            marks.want(src);
        }
        Back::Traced
    }

    /// The comparison bounds both scalars, so both are wanted if one is. Stack pointers are
    /// not scalars.
    fn compare(&self, marks: &mut Marks, dst: Reg, src: Reg) -> Back {
        if marks.wants(dst) || marks.wants(src) {
            let pointers = self.step.map_or((false, false), Step::stack_operands);
            if !pointers.1 {
                marks.want(src);
            }
            if !pointers.0 {
                marks.want(dst);
            }
        }
        Back::Traced
    }

    fn call(&self, marks: &mut Marks, target: CallTarget) -> VerifyResult<Back> {
        let info = self.structure.insns.get(self.pc.index());
        let follows = self.next == Some(Pc(self.pc.0 + 1));
        match target {
            CallTarget::Subprogram { rel } => self.subprogram(marks, rel),
            // Out of the callback to the helper call: the call's arguments are not the
            // callback's.
            _ if info.is_some_and(|info| info.calls_callback) && !follows => {
                leaving(marks, "callback")?;
                forget_arguments(marks);
                self.leave_frame(marks)
            }
            CallTarget::Kfunc { id, .. } if id.0 == 0 => Ok(Back::Unsupported),
            CallTarget::Kfunc { .. } => self.helper(marks, None),
            CallTarget::Helper(id) => self.helper(marks, Some(id)),
        }
    }

    fn subprogram(&self, marks: &mut Marks, rel: i32) -> VerifyResult<Back> {
        let target = i64::from(self.pc.0) + 1 + i64::from(rel);
        let functions = &self.structure.subprograms;
        let found = functions.binary_search_by_key(&target, |sub| sub.start.0.into());
        let Some(function) = found.ok().and_then(|at| functions.get(at)) else {
            reject!(EFAULT, "verifier bug: backtracking call of no function");
        };
        if function.global {
            // It is verified on its own, and returns an unknown scalar.
            let regs = marks.regs(marks.frame);
            if regs & Marks::ARGUMENTS != 0 {
                reject!(
                    EFAULT,
                    "verifier bug: global subprog unexpected regs {regs:x}"
                );
            }
            marks.take(Reg::R0);
            return Ok(Back::Traced);
        }
        // Out of the function to its caller, which set the arguments.
        leaving(marks, "static subprog")?;
        let frame = marks.frame;
        for reg in Reg::ARGUMENTS {
            if marks.take(reg)
                && let Some(caller) = frame.checked_sub(1)
            {
                marks.set_reg(caller, reg.index());
            }
        }
        self.leave_frame(marks)
    }

    /// A helper sets `r0`. It is a bug if arguments are wanted after the call.
    fn helper(&self, marks: &mut Marks, id: Option<HelperId>) -> VerifyResult<Back> {
        marks.take(Reg::R0);
        let regs = marks.regs(marks.frame);
        if regs & Marks::ARGUMENTS != 0 {
            reject!(
                EFAULT,
                "verifier bug: backtracking call unexpected regs {regs:x}"
            );
        }
        if id == Some(TAIL_CALL) && self.next != Some(Pc(self.pc.0.wrapping_add(1))) {
            self.enter_frame(marks)?;
        }
        Ok(Back::Traced)
    }

    /// Into the function that was called: only `r0` comes from there, and nothing from a
    /// callback.
    fn exit(&self, marks: &mut Marks) -> VerifyResult<Back> {
        let info = |pc: Pc| self.structure.insns.get(pc.index());
        if let Some(next) = self.next
            && info(next).is_some_and(|info| info.calls_callback)
        {
            forget_arguments(marks);
        }
        let regs = marks.regs(marks.frame);
        if regs & Marks::ARGUMENTS != 0 {
            reject!(
                EFAULT,
                "verifier bug: backtracking exit unexpected regs {regs:x}"
            );
        }
        let before = self.next.and_then(|next| next.0.checked_sub(1)).map(Pc);
        let call = before.and_then(|pc| self.structure.code.insn(pc));
        let returned = matches!(call, Some(Insn::Call(CallTarget::Subprogram { .. })));
        let wanted = marks.take(Reg::R0) && returned;
        self.enter_frame(marks)?;
        if wanted {
            marks.want(Reg::R0);
        }
        Ok(Back::Traced)
    }

    fn enter_frame(&self, marks: &mut Marks) -> VerifyResult {
        if marks.frame + 1 >= crate::spec::limits::MAX_CALL_FRAMES {
            reject!(
                EFAULT,
                "verifier bug: subprog enter from frame {}",
                marks.frame
            );
        }
        marks.frame += 1;
        Ok(())
    }

    fn leave_frame(&self, marks: &mut Marks) -> VerifyResult<Back> {
        let Some(frame) = marks.frame.checked_sub(1) else {
            reject!(EFAULT, "verifier bug: subprog exit from frame 0");
        };
        marks.frame = frame;
        Ok(Back::Traced)
    }
}

/// Checks that only arguments of the frame are wanted at the start of a function.
fn leaving(marks: &Marks, what: &str) -> VerifyResult {
    let (regs, slots) = (marks.regs(marks.frame), marks.slots(marks.frame));
    if regs & !Marks::ARGUMENTS != 0 {
        reject!(EFAULT, "verifier bug: {what} unexpected regs {regs:x}");
    }
    if slots != 0 {
        reject!(
            EFAULT,
            "verifier bug: {what} leftover stack slots {slots:x}"
        );
    }
    Ok(())
}

fn forget_arguments(marks: &mut Marks) {
    for reg in Reg::ARGUMENTS {
        marks.take(reg);
    }
}
