//! Fused operations: arm64 instructions have three registers, shift their last operand,
//! extract bits, and select.

use dynasmrt::DynasmApi;

use super::emitter::{Emitter, asm};
use super::labels::Stub;
use super::regs::{FIRST, Host, LEFT, SECOND, THIRD, ZERO, host};
use crate::isa::{AluOp, JumpOp, Operand, Reg, Width};
use crate::lower::{Branch, Fused, MemRef, Op, SelectValue, Target};

impl Emitter<'_> {
    /// Emits the code of `n` fused operations, and of the edge to the next one; false if
    /// they have to be emitted one by one.
    pub(super) fn fused(&mut self, at: Target, fused: &Fused, n: u8) -> bool {
        let last = at + Target::from(n) - 1;
        let plain = Stub::Plain { at, n };
        match *fused {
            Fused::Alu {
                op,
                width,
                dst,
                left,
                right,
            } => self.alu(op, width, host(dst), host(left), right),
            Fused::Rotate {
                width,
                dst,
                src,
                by,
            } => self.rotate(width, host(dst), host(src), by),
            Fused::Extract {
                width,
                dst,
                src,
                left,
                right,
                signed,
            } => self.extract(width, host(dst), host(src), (left, right), signed),
            Fused::Bits {
                width,
                dst,
                src,
                right,
                mask,
            } => self.bits(width, host(dst), host(src), right, mask),
            Fused::ShiftAdd {
                dst,
                base,
                index,
                left,
            } => {
                let (dst, base, index, left) = (host(dst), host(base), host(index), left.into());
                asm!(self ; add X(dst), X(base), X(index), LSL left);
            }
            Fused::LoadIndexed {
                size,
                mem,
                dst,
                left,
                right,
            } => {
                self.alu(AluOp::Add, Width::W64, THIRD, host(left), right);
                let Some(there) = self.address_from(plain, mem, Some(THIRD)) else {
                    return false;
                };
                self.load_sized(size, host(dst), there);
            }
            Fused::Select {
                op,
                width,
                left,
                right,
                dst,
                yes,
                no,
            } => {
                self.select((op, width, left, right), host(dst), yes, no);
                if !self.counts.is_on {
                    return true;
                }
                // The operations that the condition skips are not counted.
                let skipped = fused.skipped();
                let branch = last - Target::from(skipped);
                self.add(THIRD, LEFT, -i64::from(self.counts.edge(last, last + 1)));
                self.take(self.counts.edge(branch, last + 1));
                self.choose(op, LEFT, LEFT, THIRD);
                return true;
            }
            Fused::LoadAlu {
                size,
                mem,
                loaded,
                op,
                width,
                dst,
            } => {
                let (to, dst) = (loaded.map_or(THIRD, host), host(dst));
                let Some(there) = self.address_from(plain, mem, None) else {
                    return false;
                };
                self.load_sized(size, to, there);
                self.registers(op, width, dst, dst, to);
            }
            Fused::Update {
                size,
                mem,
                op,
                width,
                src,
                dst,
            } => {
                let Some(there) = self.address_from(plain, mem, None) else {
                    return false;
                };
                self.load_sized(size, THIRD, there);
                self.alu(op, width, THIRD, THIRD, src);
                self.store_sized(size, THIRD, there);
                self.keep(dst);
            }
            Fused::Copy {
                size,
                from,
                to,
                via,
            } => {
                let Some(there) = self.address_from(plain, from, None) else {
                    return false;
                };
                self.load_sized(size, THIRD, there);
                let Some(there) = self.address_from(plain, to, None) else {
                    return false;
                };
                self.store_sized(size, THIRD, there);
                self.keep(via);
            }
            Fused::Branch(branch) => {
                self.fused_branch(last, branch, host(branch.left));
                return true;
            }
            Fused::AluBranch {
                copy,
                op,
                width,
                dst,
                src,
                branch,
            } => {
                if let Some((dst, src)) = copy {
                    self.copy(host(dst), host(src));
                }
                self.alu(op, width, host(dst), host(dst), src);
                self.fused_branch(last, branch, host(branch.left));
                return true;
            }
            Fused::LoadBranch {
                size,
                mem,
                dst,
                branch,
            } => {
                let to = dst.map_or(THIRD, host);
                let Some(there) = self.address_from(plain, mem, None) else {
                    return false;
                };
                self.load_sized(size, to, there);
                self.fused_branch(last, branch, to);
                return true;
            }
        }
        self.take(self.counts.edge(last, last + 1));
        true
    }

    /// Emits each of the operations by itself, for accesses that have to be checked: the
    /// interpreter's step executes those that need a table look-up.
    pub(super) fn plain(&mut self, at: Target, n: u8) {
        for at in at..at + Target::from(n) {
            let Some(op) = self.lowered.ops().get(at as usize).copied() else {
                return;
            };
            match op {
                Op::Load {
                    mem: MemRef::Table { .. },
                    ..
                }
                | Op::Store {
                    mem: MemRef::Table { .. },
                    ..
                } => {
                    self.step(at);
                    self.take(self.counts.edge(at, at + 1));
                }
                op => self.op(at, op),
            }
        }
    }

    /// Copies [`THIRD`] to a register that is still live.
    fn keep(&mut self, reg: Option<Reg>) {
        if let Some(reg) = reg {
            self.copy(host(reg), THIRD);
        }
    }

    /// `dst = src` rotated to the left.
    fn rotate(&mut self, width: Width, dst: Host, src: Host, by: u8) {
        // The host rotates to the right.
        let by = u32::from(width.bits() - by);
        match width {
            Width::W64 => asm!(self ; ror X(dst), X(src), by),
            Width::W32 => asm!(self ; ror W(dst), W(src), by),
        }
    }

    /// `dst = src << left >> right`.
    fn extract(
        &mut self,
        width: Width,
        dst: Host,
        src: Host,
        (left, right): (u8, u8),
        signed: bool,
    ) {
        let bits = u32::from(width.bits());
        if let Some(first) = right.checked_sub(left) {
            let (first, count) = (u32::from(first), bits - u32::from(right));
            return match (signed, width) {
                (true, Width::W64) => asm!(self ; sbfx X(dst), X(src), first, count),
                (true, Width::W32) => asm!(self ; sbfx W(dst), W(src), first, count),
                (false, Width::W64) => asm!(self ; ubfx X(dst), X(src), first, count),
                (false, Width::W32) => asm!(self ; ubfx W(dst), W(src), first, count),
            };
        }
        let (first, count) = (u32::from(left - right), bits - u32::from(left));
        match (signed, width) {
            (true, Width::W64) => asm!(self ; sbfiz X(dst), X(src), first, count),
            (true, Width::W32) => asm!(self ; sbfiz W(dst), W(src), first, count),
            (false, Width::W64) => asm!(self ; ubfiz X(dst), X(src), first, count),
            (false, Width::W32) => asm!(self ; ubfiz W(dst), W(src), first, count),
        }
    }

    /// `dst = src >> right & mask`.
    fn bits(&mut self, width: Width, dst: Host, src: Host, right: u8, mask: i32) {
        let (first, left) = (u32::from(right), u32::from(width.bits() - right));
        let ones = mask.trailing_ones();
        if mask > 0 && mask.count_ones() == ones {
            let count = ones.min(left);
            return match width {
                Width::W64 => asm!(self ; ubfx X(dst), X(src), first, count),
                Width::W32 => asm!(self ; ubfx W(dst), W(src), first, count),
            };
        }
        self.shift(AluOp::Rsh, width, THIRD, src, first);
        self.alu(AluOp::And, width, dst, THIRD, Operand::Imm(mask));
    }

    /// `dst = if left op right { yes } else { no }`. Leaves the condition in the flags.
    fn select(
        &mut self,
        (op, width, left, right): (JumpOp, Width, Reg, Operand),
        dst: Host,
        yes: SelectValue,
        no: SelectValue,
    ) {
        let (yes, no) = (self.source(yes, FIRST), self.source(no, SECOND));
        self.compare(op, width, host(left), right);
        self.choose(op, dst, yes, no);
    }

    /// The register with the value of one side; `spare` unless another register has it
    /// already.
    fn source(&mut self, source: SelectValue, spare: Host) -> Host {
        let SelectValue { width, from, right } = source;
        match (from, width, right) {
            (Operand::Imm(0), ..) => return ZERO,
            (Operand::Reg(from), Width::W64, 0) => return host(from),
            (Operand::Reg(from), ..) => {
                self.shift(AluOp::Rsh, width, spare, host(from), right.into());
            }
            (Operand::Imm(imm), ..) => {
                self.immediate(width, spare, imm);
                self.shift(AluOp::Rsh, width, spare, spare, right.into());
            }
        }
        spare
    }

    /// The branch at the end, operation `last`; its first operand is in `left`.
    fn fused_branch(&mut self, last: Target, branch: Branch, left: Host) {
        let Branch {
            op,
            width,
            right,
            when,
            target,
            skips,
            ..
        } = branch;
        self.branch_if(last, (op, when), width, (left, right), target);
        let from = if skips { last - 1 } else { last };
        self.take(self.counts.edge(from, last + 1));
    }
}
