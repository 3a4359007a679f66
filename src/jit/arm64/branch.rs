//! Jumps, and the count of instructions on them.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi};

use super::alu::is_logical;
use super::emitter::{Emitter, asm, by_width, halves};
use super::regs::{RIGHT, host};
use crate::isa::{JumpOp, Operand, Reg, Width, sign_extend32};
use crate::jit::labels::Stub;
use crate::lower::Target;

/// What was compared, for a branch that depends on it.
#[derive(Debug, Clone, Copy)]
enum Compared {
    /// The flags say what came of it.
    Flags,
    /// A register with zero.
    Zero(Width, Reg),
}

impl Emitter<'_> {
    /// On from `from` at `to`.
    pub(super) fn jump(&mut self, from: Target, to: Target) {
        let (taken, label) = (self.counts.edge(from, to), self.labels.op(to));
        if to > from {
            self.take(taken);
            if to > from + 1 || taken != 0 {
                asm!(self ; b =>label);
            }
            return;
        }
        let bail = self.stub(Stub::Bail(to));
        self.take_and_look(taken);
        if self.reaches(from, to) {
            asm!(self ; b.pl =>label ; b =>bail);
        } else {
            asm!(self ; b.mi =>bail ; b =>label);
        }
    }

    /// On from `from` at `to` if `dst op src` holds, else with the next operation.
    pub(super) fn jump_if(
        &mut self,
        from: Target,
        op: JumpOp,
        width: Width,
        (dst, src): (Reg, Operand),
        to: Target,
    ) {
        let compared = self.compare(op, width, dst, src);
        if to > from {
            let label = match self.counts.edge(from, to) {
                0 if self.reaches(from, to) => self.labels.op(to),
                _ => self.stub(Stub::Edge { from, to }),
            };
            self.branch(op, true, compared, label);
        } else {
            let next = self.code.new_dynamic_label();
            self.branch(op, false, compared, next);
            self.jump(from, to);
            asm!(self ; =>next);
        }
    }

    fn compare(&mut self, op: JumpOp, width: Width, dst: Reg, src: Operand) -> Compared {
        let left = host(dst);
        match (op, src) {
            (JumpOp::Eq | JumpOp::Ne, Operand::Imm(0)) => return Compared::Zero(width, dst),
            (JumpOp::Set, Operand::Imm(imm)) if is_logical(width, imm) => match width {
                Width::W64 => asm!(self ; tst X(left), sign_extend32(imm)),
                Width::W32 => asm!(self ; tst W(left), imm.cast_unsigned()),
            },
            (JumpOp::Set, src) => {
                let src = self.operand(src, width, RIGHT);
                by_width!(self, width, tst, left, src);
            }
            (_, Operand::Imm(imm)) => match (halves(imm.unsigned_abs().into()), imm < 0, width) {
                (Some((low, 0)), false, Width::W64) => asm!(self ; cmp XSP(left), low),
                (Some((low, 0)), false, Width::W32) => asm!(self ; cmp WSP(left), low),
                // Adds, with the flags of subtracting the negative number.
                (Some((low, 0)), true, Width::W64) => asm!(self ; cmn XSP(left), low),
                (Some((low, 0)), true, Width::W32) => asm!(self ; cmn WSP(left), low),
                _ => {
                    let src = self.operand(src, width, RIGHT);
                    by_width!(self, width, cmp, left, src);
                }
            },
            (_, Operand::Reg(src)) => by_width!(self, width, cmp, left, host(src)),
        }
        Compared::Flags
    }

    /// Goes to the label if, after the comparison, `op` holds as it `should`.
    fn branch(&mut self, op: JumpOp, should: bool, compared: Compared, to: DynamicLabel) {
        if let Compared::Zero(width, reg) = compared {
            let reg = host(reg);
            return match (width, (op == JumpOp::Eq) == should) {
                (Width::W64, true) => asm!(self ; cbz X(reg), =>to),
                (Width::W32, true) => asm!(self ; cbz W(reg), =>to),
                (Width::W64, false) => asm!(self ; cbnz X(reg), =>to),
                (Width::W32, false) => asm!(self ; cbnz W(reg), =>to),
            };
        }
        match (op, should) {
            (JumpOp::Eq, true) | (JumpOp::Ne, false) => asm!(self ; b.eq =>to),
            (JumpOp::Ne, true) | (JumpOp::Eq, false) => asm!(self ; b.ne =>to),
            (JumpOp::Gt, true) | (JumpOp::Le, false) => asm!(self ; b.hi =>to),
            (JumpOp::Ge, true) | (JumpOp::Lt, false) => asm!(self ; b.hs =>to),
            (JumpOp::Lt, true) | (JumpOp::Ge, false) => asm!(self ; b.lo =>to),
            (JumpOp::Le, true) | (JumpOp::Gt, false) => asm!(self ; b.ls =>to),
            (JumpOp::Sgt, true) | (JumpOp::Sle, false) => asm!(self ; b.gt =>to),
            (JumpOp::Sge, true) | (JumpOp::Slt, false) => asm!(self ; b.ge =>to),
            (JumpOp::Slt, true) | (JumpOp::Sge, false) => asm!(self ; b.lt =>to),
            (JumpOp::Sle, true) | (JumpOp::Sgt, false) => asm!(self ; b.le =>to),
            (JumpOp::Set, true) => asm!(self ; b.ne =>to),
            (JumpOp::Set, false) => asm!(self ; b.eq =>to),
        }
    }
}
