//! Jumps, and the count of instructions on them.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi};

use super::alu::is_logical;
use super::emitter::{Emitter, asm, by_width, halves};
use super::labels::Stub;
use super::regs::{FIRST, FRAME, Host, RIGHT, host};
use crate::engine::in_head;
use crate::isa::{JumpOp, Operand, Reg, Width, sign_extend32};
use crate::lower::Target;
use crate::spec::limits::STACK_SIZE;

/// What a branch depends on.
#[derive(Debug, Clone, Copy)]
enum Compared {
    /// The flags of a comparison.
    Flags,
    /// Whether a register is zero.
    Zero(Width, Host),
}

/// Expands a macro with the name of the host's condition that, after a comparison, is true
/// if `op` holds as it `should`.
macro_rules! on_condition {
    ($op:expr, $should:expr, $expand:ident) => {
        match ($op, $should) {
            (JumpOp::Eq, true) | (JumpOp::Ne, false) => $expand!(eq),
            (JumpOp::Ne, true) | (JumpOp::Eq, false) => $expand!(ne),
            (JumpOp::Gt, true) | (JumpOp::Le, false) => $expand!(hi),
            (JumpOp::Ge, true) | (JumpOp::Lt, false) => $expand!(hs),
            (JumpOp::Lt, true) | (JumpOp::Ge, false) => $expand!(lo),
            (JumpOp::Le, true) | (JumpOp::Gt, false) => $expand!(ls),
            (JumpOp::Sgt, true) | (JumpOp::Sle, false) => $expand!(gt),
            (JumpOp::Sge, true) | (JumpOp::Slt, false) => $expand!(ge),
            (JumpOp::Slt, true) | (JumpOp::Sge, false) => $expand!(lt),
            (JumpOp::Sle, true) | (JumpOp::Sgt, false) => $expand!(le),
            (JumpOp::Set, true) => $expand!(ne),
            (JumpOp::Set, false) => $expand!(eq),
        }
    };
}

impl Emitter<'_> {
    /// A jump from `from` to `to`.
    pub(super) fn jump(&mut self, from: Target, to: Target) {
        let (taken, label) = (self.counts.edge(from, to), self.labels.op(to));
        if to > from {
            self.take(taken);
            if to > from + 1 || taken != 0 {
                asm!(self ; b =>label);
            }
            return;
        }
        if !self.counts.is_on {
            return asm!(self ; b =>label);
        }
        let bail = self.stub(Stub::Bail(to));
        self.take_and_test(taken);
        if self.reaches(from, to) {
            asm!(self ; b.pl =>label ; b =>bail);
        } else {
            asm!(self ; b.mi =>bail ; b =>label);
        }
    }

    /// A jump from `from` to `to` if `dst op src` holds; else execution falls through in
    /// the code.
    pub(super) fn jump_if(
        &mut self,
        from: Target,
        op: JumpOp,
        width: Width,
        (dst, src): (Reg, Operand),
        to: Target,
    ) {
        self.branch_if(from, (op, true), width, (host(dst), src), to);
    }

    /// The same if the condition's value is `when`.
    pub(super) fn branch_if(
        &mut self,
        from: Target,
        (op, when): (JumpOp, bool),
        width: Width,
        (left, right): (Host, Operand),
        to: Target,
    ) {
        let compared = match (op, right) {
            (JumpOp::Eq | JumpOp::Ne, Operand::Imm(0)) => Compared::Zero(width, left),
            _ => {
                self.compare(op, width, left, right);
                Compared::Flags
            }
        };
        self.branch_on(from, (op, when), compared, to);
    }

    /// A jump from `from` to `to` if the frame has no loops left; else the next operation
    /// follows.
    pub(super) fn may_goto(&mut self, from: Target, to: Target) {
        let left = (STACK_SIZE + in_head!(loops_left)) as u32;
        asm!(self ; ldr W(FIRST), [X(FRAME), left]);
        let compared = Compared::Zero(Width::W32, FIRST);
        self.branch_on(from, (JumpOp::Eq, true), compared, to);
        asm!(self ; sub WSP(FIRST), WSP(FIRST), 1 ; str W(FIRST), [X(FRAME), left]);
    }

    /// A jump from `from` to `to` if the comparison holds as it should; else execution
    /// falls through in the code.
    fn branch_on(
        &mut self,
        from: Target,
        (op, when): (JumpOp, bool),
        compared: Compared,
        to: Target,
    ) {
        if to > from {
            let label = match self.counts.edge(from, to) {
                0 if self.reaches(from, to) => self.labels.op(to),
                _ => self.stub(Stub::Edge { from, to }),
            };
            self.branch(op, when, compared, label);
        } else if !self.counts.is_on && self.reaches(from, to) {
            let label = self.labels.op(to);
            self.branch(op, when, compared, label);
        } else {
            let next = self.code.new_dynamic_label();
            self.branch(op, !when, compared, next);
            self.jump(from, to);
            asm!(self ; =>next);
        }
    }

    /// Sets the flags by a comparison.
    pub(super) fn compare(&mut self, op: JumpOp, width: Width, left: Host, right: Operand) {
        match (op, right) {
            (JumpOp::Set, Operand::Imm(imm)) if is_logical(width, imm) => match width {
                Width::W64 => asm!(self ; tst X(left), sign_extend32(imm)),
                Width::W32 => asm!(self ; tst W(left), imm.cast_unsigned()),
            },
            (JumpOp::Set, right) => {
                let right = self.operand(right, width, RIGHT);
                by_width!(self, width, tst, left, right);
            }
            (_, Operand::Imm(imm)) => match (halves(imm.unsigned_abs().into()), imm < 0, width) {
                (Some((low, 0)), false, Width::W64) => asm!(self ; cmp XSP(left), low),
                (Some((low, 0)), false, Width::W32) => asm!(self ; cmp WSP(left), low),
                // This adds, and sets the flags of subtracting the negative number.
                (Some((low, 0)), true, Width::W64) => asm!(self ; cmn XSP(left), low),
                (Some((low, 0)), true, Width::W32) => asm!(self ; cmn WSP(left), low),
                _ => {
                    let right = self.operand(right, width, RIGHT);
                    by_width!(self, width, cmp, left, right);
                }
            },
            (_, Operand::Reg(right)) => by_width!(self, width, cmp, left, host(right)),
        }
    }

    /// Branches to the label if, after the comparison, `op` holds as it `should`.
    fn branch(&mut self, op: JumpOp, should: bool, compared: Compared, to: DynamicLabel) {
        if let Compared::Zero(width, reg) = compared {
            return match (width, (op == JumpOp::Eq) == should) {
                (Width::W64, true) => asm!(self ; cbz X(reg), =>to),
                (Width::W32, true) => asm!(self ; cbz W(reg), =>to),
                (Width::W64, false) => asm!(self ; cbnz X(reg), =>to),
                (Width::W32, false) => asm!(self ; cbnz W(reg), =>to),
            };
        }
        macro_rules! branch {
            ($condition:ident) => {
                asm!(self ; b.$condition =>to)
            };
        }
        on_condition!(op, should, branch);
    }

    /// `dst = yes` if, after the comparison, `op` holds, else `no`.
    pub(super) fn choose(&mut self, op: JumpOp, dst: Host, yes: Host, no: Host) {
        macro_rules! choose {
            ($condition:ident) => {
                asm!(self ; csel X(dst), X(yes), X(no), $condition)
            };
        }
        on_condition!(op, true, choose);
    }
}
