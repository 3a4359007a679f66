//! Jumps, and the count of instructions on them.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi};

use super::alu::by_width;
use super::emitter::{Emitter, Stub, asm};
use super::encode::Digit;
use super::regs::{FIRST, Host, LEFT, SECOND};
use crate::isa::{JumpOp, Operand, Reg, Width};
use crate::lower::Target;

impl Emitter<'_> {
    /// On from `from` at `to`.
    pub(super) fn jump(&mut self, from: Target, to: Target) {
        let (taken, label) = (self.counts.edge(from, to), self.label(to));
        self.take(taken);
        if to > from {
            if to > from + 1 || taken != 0 {
                asm!(self ; jmp =>label);
            }
            return;
        }
        let bail = self.stub(Stub::Bail(to));
        if taken == 0 {
            asm!(self ; test Rq(LEFT), Rq(LEFT));
        }
        // Nothing overflows; hosts execute this pair as one.
        asm!(self ; jge =>label ; jmp =>bail);
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
        self.compare(op, width, dst, src);
        self.branch_on(from, op, true, to);
    }

    /// After a comparison: on from `from` at `to` if `op` holds as it `should`, else with
    /// what follows.
    pub(super) fn branch_on(&mut self, from: Target, op: JumpOp, should: bool, to: Target) {
        if to > from {
            let label = match self.counts.edge(from, to) {
                0 => self.label(to),
                _ => self.stub(Stub::Edge { from, to }),
            };
            self.branch(op, should, label);
        } else {
            let next = self.code.new_dynamic_label();
            self.branch(op, !should, next);
            self.jump(from, to);
            asm!(self ; =>next);
        }
    }

    /// Compares as `op` wants it.
    pub(super) fn compare(&mut self, op: JumpOp, width: Width, dst: Reg, src: Operand) {
        let dst = self.source(dst, FIRST);
        match (op, src) {
            (JumpOp::Set, src) => {
                let src = self.operand(src, SECOND);
                by_width!(self, width, test, dst, src);
            }
            (JumpOp::Eq | JumpOp::Ne, Operand::Imm(0)) => by_width!(self, width, test, dst, dst),
            (_, Operand::Imm(imm)) => self.compare_with(width, dst, imm),
            (_, Operand::Reg(src)) => {
                let src = self.source(src, SECOND);
                by_width!(self, width, cmp, dst, src);
            }
        }
    }

    /// Compares a register with a constant.
    pub(super) fn compare_with(&mut self, width: Width, dst: Host, imm: i32) {
        self.with_immediate(Digit::CMP, width, dst, imm);
    }

    /// Goes to the label if, after the comparison, `op` holds as it `should`.
    fn branch(&mut self, op: JumpOp, should: bool, to: DynamicLabel) {
        match (op, should) {
            (JumpOp::Eq, true) | (JumpOp::Ne, false) => asm!(self ; je =>to),
            (JumpOp::Ne, true) | (JumpOp::Eq, false) => asm!(self ; jne =>to),
            (JumpOp::Gt, true) | (JumpOp::Le, false) => asm!(self ; ja =>to),
            (JumpOp::Ge, true) | (JumpOp::Lt, false) => asm!(self ; jae =>to),
            (JumpOp::Lt, true) | (JumpOp::Ge, false) => asm!(self ; jb =>to),
            (JumpOp::Le, true) | (JumpOp::Gt, false) => asm!(self ; jbe =>to),
            (JumpOp::Sgt, true) | (JumpOp::Sle, false) => asm!(self ; jg =>to),
            (JumpOp::Sge, true) | (JumpOp::Slt, false) => asm!(self ; jge =>to),
            (JumpOp::Slt, true) | (JumpOp::Sge, false) => asm!(self ; jl =>to),
            (JumpOp::Sle, true) | (JumpOp::Sgt, false) => asm!(self ; jle =>to),
            (JumpOp::Set, true) => asm!(self ; jnz =>to),
            (JumpOp::Set, false) => asm!(self ; jz =>to),
        }
    }
}
