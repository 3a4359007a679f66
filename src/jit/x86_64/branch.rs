//! Jumps, and the count of instructions on them.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi};

use super::alu::by_width;
use super::emitter::{Emitter, Stub, asm};
use super::operand::Digit;
use super::regs::{FIRST, Host, LEFT, SECOND};
use crate::isa::{JumpOp, Operand, Reg, Width};
use crate::lower::Target;

impl Emitter<'_> {
    /// A jump from `from` to `to`.
    pub(super) fn jump(&mut self, from: Target, to: Target) {
        if self.goes_round(from, to) {
            return; // the next round follows
        }
        let (taken, label) = (self.edge(from, to), self.label(to));
        if to == from + 1 {
            return self.take(taken);
        }
        if to > from {
            return self.go(taken, label);
        }
        if !self.counts.is_on {
            return asm!(self ; jmp =>label);
        }
        self.take(taken);
        let bail = self.stub(Stub::Bail(to));
        if taken == 0 {
            asm!(self ; test Rq(LEFT), Rq(LEFT));
        }
        // Nothing overflows; hosts fuse this pair into one operation.
        asm!(self ; jge =>label ; jmp =>bail);
    }

    /// Counts, and jumps.
    pub(super) fn go(&mut self, taken: i32, label: DynamicLabel) {
        self.take(taken);
        asm!(self ; jmp =>label);
    }

    /// Falls through from `from` to the next operation.
    #[inline]
    pub(super) fn fall(&mut self, from: Target, next: Target) {
        self.take(self.edge(from, next));
    }

    /// A jump from `from` to `to` if `dst op src` holds; else the next operation follows.
    pub(super) fn jump_if(
        &mut self,
        from: Target,
        op: JumpOp,
        width: Width,
        (dst, src): (Reg, Operand),
        to: Target,
    ) {
        self.compare(op, width, dst, src);
        self.branch_on(from, op, true, to, from);
    }

    /// After a comparison: a jump from `from` to `to` if `op` holds as it `should`; else
    /// from `last`, which is `from` or the operation before, on with the operation after
    /// `from`.
    pub(super) fn branch_on(
        &mut self,
        from: Target,
        op: JumpOp,
        should: bool,
        to: Target,
        last: Target,
    ) {
        let next = from + 1;
        if self.goes_round(from, to) {
            let out = self.edge_label(last, next);
            self.branch(op, !should, out);
        } else if to > from {
            let label = self.edge_label(from, to);
            self.branch(op, should, label);
            self.fall(last, next);
        } else if !self.counts.is_on {
            let label = self.label(to);
            self.branch(op, should, label);
        } else {
            let out = self.code.new_dynamic_label();
            self.branch(op, !should, out);
            self.jump(from, to);
            asm!(self ; =>out);
            self.fall(last, next);
        }
    }

    /// The label of the forward edge from `from` to `to`.
    fn edge_label(&mut self, from: Target, to: Target) -> DynamicLabel {
        let label = self.label(to);
        match self.edge(from, to) {
            0 => label,
            taken => self.stub(Stub::Edge { taken, label }),
        }
    }

    /// Sets the flags for `op`.
    pub(super) fn compare(&mut self, op: JumpOp, width: Width, dst: Reg, src: Operand) {
        let dst = self.source(dst, FIRST);
        self.compare_host(op, width, dst, src);
    }

    /// The same with a host register, which is not the second spare one unless the other
    /// operand is a constant.
    pub(super) fn compare_host(&mut self, op: JumpOp, width: Width, dst: Host, src: Operand) {
        match (op, src) {
            (JumpOp::Set, Operand::Imm(imm)) => self.test_with(width, dst, imm),
            (JumpOp::Set, Operand::Reg(src)) => {
                let src = self.source(src, FIRST);
                by_width!(self, width, test, dst, src);
            }
            (JumpOp::Eq | JumpOp::Ne, Operand::Imm(0)) => by_width!(self, width, test, dst, dst),
            (_, Operand::Imm(imm)) => self.with_immediate(Digit::CMP, width, dst, imm),
            (_, Operand::Reg(src)) => {
                let src = self.source(src, if dst == FIRST { SECOND } else { FIRST });
                by_width!(self, width, cmp, dst, src);
            }
        }
    }

    /// Tests bits of a register.
    fn test_with(&mut self, width: Width, dst: Host, imm: i32) {
        match (u8::try_from(imm), width) {
            (Ok(imm), _) => asm!(self ; test Rb(dst), imm.cast_signed()),
            // Without upper bits the lower half is enough.
            (Err(_), Width::W64) if imm < 0 => asm!(self ; test Rq(dst), imm),
            (Err(_), _) => asm!(self ; test Rd(dst), imm),
        }
    }

    /// Branches to the label if, after the comparison, `op` holds as it `should`.
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
