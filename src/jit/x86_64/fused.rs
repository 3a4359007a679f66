//! Fused operations, where the host has a form for them.

use dynasmrt::DynasmApi;

use super::alu::by_width;
use super::emitter::{Emitter, asm};
use super::operand::{At, Opcode};
use super::pins::is_direct;
use super::regs::{FIRST, Host, SECOND, host};
use crate::isa::{AluOp, JumpOp, Operand, Reg, Size, Width};
use crate::lower::{Branch, Fused, MemRef, Notes, Target};

impl Emitter<'_> {
    /// Emits the fused code of the operations from `at` to `end`; false if no form is
    /// better than the plain operations.
    pub(super) fn fused(&mut self, at: Target, end: Target, fused: &Fused) -> bool {
        // No jump leads into it, so the phases are consecutive.
        if (at..end - 1).any(|inner| self.edge(inner, inner + 1) != 0) {
            return false;
        }
        let has_code = match *fused {
            Fused::Alu {
                op,
                width,
                dst,
                left,
                right,
            } => self.three(op, width, dst, left, right),
            Fused::Rotate {
                width,
                dst,
                src,
                by,
            } => self.rotate(width, dst, src, by),
            Fused::Extract {
                width,
                dst,
                src,
                left,
                right,
                signed,
            } => self.extract(width, dst, src, (left, right), signed),
            Fused::Bits {
                width,
                dst,
                src,
                right,
                mask,
            } => self.bits(width, dst, src, right, mask),
            Fused::ShiftAdd {
                dst,
                base,
                index,
                left,
            } => self.shift_add(dst, base, index, left),
            Fused::LoadIndexed {
                size,
                mem,
                dst,
                left,
                right,
            } => self.load_indexed(at, (size, mem), dst, left, right),
            // Where instructions are counted, a conditional move would need code to count the
            // one instruction more or less, and was slower than a branch in every measurement.
            Fused::Select { .. } if self.counts.is_on => false,
            Fused::Select {
                op,
                width,
                left,
                right,
                dst,
                yes,
                no,
            } => self.select((op, width, left, right), dst, yes, no),
            Fused::LoadAlu {
                size,
                mem,
                loaded,
                op,
                width,
                dst,
            } => self.load_alu(at, (size, mem), loaded, op, width, dst),
            Fused::Update {
                size,
                mem,
                op,
                width,
                src,
                dst,
            } => {
                // An operation on the lower half clears the upper one, which one in memory keeps.
                let keeps_half = width == Width::W32 && size == Size::Dw;
                dst.is_none() && !keeps_half && self.update(at, size, mem, op, src)
            }
            Fused::Copy {
                size,
                from,
                to,
                via,
            } => self.copy(at, size, from, to, via),
            Fused::Branch(branch) => {
                self.compare(branch.op, branch.width, branch.left, branch.right);
                return self.fused_branch(branch, end);
            }
            Fused::AluBranch {
                copy,
                op,
                width,
                dst,
                src,
                branch,
            } => {
                let note = self.lowered.note(at);
                let width = if note.contains(Notes::NARROW) {
                    Width::W32
                } else {
                    width
                };
                if let Some((to, from)) = copy
                    && let Some(to) = host(to)
                {
                    self.mov(Width::W64, to, Operand::Reg(from));
                }
                self.alu(op, width, dst, src, note);
                if !sets_flags(op, width, dst, &branch) {
                    self.compare(branch.op, branch.width, branch.left, branch.right);
                }
                return self.fused_branch(branch, end);
            }
            Fused::LoadBranch {
                size,
                mem,
                dst,
                branch,
            } => {
                if !is_direct(mem) || !self.load_compare(at, (size, mem), dst, branch) {
                    return false;
                }
                return self.fused_branch(branch, end);
            }
        };
        if has_code {
            self.fall(end - 1, end);
        }
        has_code
    }

    /// Jumps to the target of the operations before `end`, after the comparison.
    fn fused_branch(&mut self, branch: Branch, end: Target) -> bool {
        let Branch {
            op,
            when,
            target,
            skips,
            ..
        } = branch;
        // The jump at the end is executed only if the branch goes to the target.
        let last = if skips { end - 2 } else { end - 1 };
        self.branch_on(end - 1, op, when, target, last);
        true
    }

    /// Loads a number and compares it with another.
    fn load_compare(
        &mut self,
        at: Target,
        (size, mem): (Size, MemRef),
        dst: Option<Reg>,
        branch: Branch,
    ) -> bool {
        let Branch {
            op, width, right, ..
        } = branch;
        if let Some(dst) = dst {
            let is_loaded = self.load(at, size, dst, mem);
            if is_loaded {
                self.compare(op, width, dst, right);
            }
            return is_loaded;
        }
        let Some(from) = self.address(at, mem) else {
            return false;
        };
        match right {
            Operand::Imm(imm) if compares_in_memory(op, width, size, imm) => {
                self.with_memory(Opcode::compare_imm(size, imm), Opcode::COMPARE, from);
                self.immediate(size, imm);
            }
            _ => {
                let Some(number) = self.spare(from) else {
                    return false;
                };
                self.with_memory(Opcode::load(size), number, from);
                self.compare_host(op, width, number, right);
            }
        }
        true
    }

    /// A spare register within one operation, besides those of an access.
    fn spare(&mut self, at: At) -> Option<Host> {
        if !self.pins.holds(SECOND) {
            return Some(SECOND);
        }
        if at.index == Some(FIRST) || at.base == FIRST {
            return None;
        }
        self.held = None;
        Some(FIRST)
    }

    /// `dst` = the number at `mem` relative to `left + right`.
    fn load_indexed(
        &mut self,
        at: Target,
        (size, mem): (Size, MemRef),
        dst: Reg,
        left: Reg,
        right: Operand,
    ) -> bool {
        let (Some(dst), Some(left), true) = (host(dst), host(left), is_direct(mem)) else {
            return false;
        };
        let index = match right {
            Operand::Imm(_) => None,
            Operand::Reg(right) => match host(right) {
                Some(right) => Some(right),
                None => return false,
            },
        };
        let Some(mut from) = self.address(at, mem) else {
            return false;
        };
        match (index, right) {
            (Some(right), _) => {
                let Some(sum) = self.spare(from) else {
                    return false;
                };
                self.with_memory(Opcode::LEA, sum, At::indexed(left, right, 0));
                from.base = sum;
            }
            (None, Operand::Imm(imm)) => match from.off.checked_add(imm) {
                Some(off) => (from.base, from.off) = (left, off),
                None => return false,
            },
            (None, Operand::Reg(_)) => return false,
        }
        self.with_memory(Opcode::load(size), dst, from);
        true
    }

    /// `dst = left op right`.
    fn three(&mut self, op: AluOp, width: Width, dst: Reg, left: Reg, right: Operand) -> bool {
        let Some(to) = host(dst) else {
            return false;
        };
        let from = self.source(left, FIRST);
        let lea = match width {
            Width::W64 => Opcode::LEA,
            Width::W32 => Opcode::LEA32,
        };
        match (op, right) {
            (AluOp::Add, Operand::Imm(imm)) => self.with_memory(lea, to, At::new(from, imm)),
            (AluOp::Sub, Operand::Imm(imm)) if imm != i32::MIN => {
                self.with_memory(lea, to, At::new(from, -imm));
            }
            (AluOp::Add, Operand::Reg(right)) => {
                let right = self.source(right, SECOND);
                self.with_memory(lea, to, At::indexed(from, right, 0));
            }
            (AluOp::Lsh, Operand::Imm(1)) => {
                self.with_memory(lea, to, At::indexed(from, from, 0));
            }
            (AluOp::Mul, Operand::Imm(imm)) => self.multiply(width, to, from, imm),
            (AluOp::And, Operand::Imm(0xff)) => asm!(self ; movzx Rd(to), Rb(from)),
            (AluOp::And, Operand::Imm(0xffff)) => asm!(self ; movzx Rd(to), Rw(from)),
            (AluOp::Lsh | AluOp::Rsh | AluOp::Arsh, Operand::Reg(count)) if self.features.bmi2 => {
                let count = self.source(count, SECOND);
                self.shift_into(op, width, to, from, count);
            }
            (_, Operand::Reg(right)) if right == dst => return false,
            _ => {
                by_width!(self, width, mov, to, from);
                self.alu(op, width, dst, right, Notes::empty());
            }
        }
        true
    }

    fn rotate(&mut self, width: Width, dst: Reg, src: Reg, left: u8) -> bool {
        let Some(dst) = host(dst) else {
            return false;
        };
        let src = self.source(src, FIRST);
        let right = (width.bits() - left) as i8;
        match (width, self.features.bmi2 && dst != src) {
            (Width::W64, true) => asm!(self ; rorx Rq(dst), Rq(src), right),
            (Width::W32, true) => asm!(self ; rorx Rd(dst), Rd(src), right),
            (_, false) => {
                if dst != src {
                    by_width!(self, width, mov, dst, src);
                }
                match width {
                    Width::W64 => asm!(self ; ror Rq(dst), right),
                    Width::W32 => asm!(self ; ror Rd(dst), right),
                }
            }
        }
        true
    }

    fn extract(
        &mut self,
        width: Width,
        dst: Reg,
        src: Reg,
        (left, right): (u8, u8),
        signed: bool,
    ) -> bool {
        let Some(dst) = host(dst) else {
            return false;
        };
        let src = self.source(src, FIRST);
        let kept = width.bits() - left;
        match (kept, left == right, signed, width) {
            (8, true, false, _) => asm!(self ; movzx Rd(dst), Rb(src)),
            (16, true, false, _) => asm!(self ; movzx Rd(dst), Rw(src)),
            (32, true, false, _) => asm!(self ; mov Rd(dst), Rd(src)),
            (8, true, true, Width::W64) => asm!(self ; movsx Rq(dst), Rb(src)),
            (16, true, true, Width::W64) => asm!(self ; movsx Rq(dst), Rw(src)),
            (32, true, true, Width::W64) => asm!(self ; movsxd Rq(dst), Rd(src)),
            (8, true, true, Width::W32) => asm!(self ; movsx Rd(dst), Rb(src)),
            (16, true, true, Width::W32) => asm!(self ; movsx Rd(dst), Rw(src)),
            _ => {
                if dst != src {
                    by_width!(self, width, mov, dst, src);
                }
                let op = if signed { AluOp::Arsh } else { AluOp::Rsh };
                self.shift_imm(AluOp::Lsh, width, dst, left.into());
                self.shift_imm(op, width, dst, right.into());
            }
        }
        true
    }

    fn bits(&mut self, width: Width, dst: Reg, src: Reg, right: u8, mask: i32) -> bool {
        let Some(to) = host(dst) else {
            return false;
        };
        let src = self.source(src, FIRST);
        if to != src {
            by_width!(self, width, mov, to, src);
        }
        self.shift_imm(AluOp::Rsh, width, to, right.into());
        // A mask without upper bits needs only the lower half.
        let width = if mask >= 0 { Width::W32 } else { width };
        match mask {
            0xff => asm!(self ; movzx Rd(to), Rb(to)),
            0xffff => asm!(self ; movzx Rd(to), Rw(to)),
            _ => self.alu(AluOp::And, width, dst, Operand::Imm(mask), Notes::empty()),
        }
        true
    }

    fn shift_add(&mut self, dst: Reg, base: Reg, index: Reg, left: u8) -> bool {
        let Some(dst) = host(dst) else {
            return false;
        };
        let base = self.source(base, FIRST);
        let at = At {
            base,
            index: Some(self.source(index, SECOND)),
            scale: left,
            off: 0,
        };
        self.with_memory(Opcode::LEA, dst, at);
        true
    }

    fn load_alu(
        &mut self,
        at: Target,
        (size, mem): (Size, MemRef),
        loaded: Option<Reg>,
        op: AluOp,
        width: Width,
        dst: Reg,
    ) -> bool {
        let loaded = loaded.map(host);
        let (Some(to), false) = (host(dst), loaded == Some(None) || !is_direct(mem)) else {
            return false;
        };
        let memory = match (op, loaded) {
            (AluOp::Mov, None) => None,
            (_, None) if size == width.size() => Opcode::with_load(op, width),
            _ => None,
        };
        // A division needs the spare register, and so does a shift without BMI2.
        let is_simple = matches!(
            op,
            AluOp::Add | AluOp::Sub | AluOp::And | AluOp::Or | AluOp::Xor | AluOp::Mul | AluOp::Mov
        );
        if !is_simple {
            return false;
        }
        let Some(from) = self.address(at, mem) else {
            return false;
        };
        if let Some(opcode) = memory {
            self.with_memory(opcode, to, from);
            return true;
        }
        let temporary = match (op, loaded.flatten()) {
            (AluOp::Mov, None) => to,
            (_, Some(loaded)) => loaded,
            (_, None) => match self.spare(from) {
                Some(spare) => spare,
                None => return false,
            },
        };
        self.with_memory(Opcode::load(size), temporary, from);
        if op == AluOp::Mov && temporary == to {
            // Only 32 of the 64 bits are used.
            if width == Width::W32 && size == Size::Dw {
                asm!(self ; mov Rd(to), Rd(to));
            }
            return true;
        }
        self.alu_host(op, width, to, temporary);
        true
    }

    /// `dst op= src` for the simplest operations.
    fn alu_host(&mut self, op: AluOp, width: Width, dst: Host, src: Host) {
        match op {
            AluOp::Add => by_width!(self, width, add, dst, src),
            AluOp::Sub => by_width!(self, width, sub, dst, src),
            AluOp::And => by_width!(self, width, and, dst, src),
            AluOp::Or => by_width!(self, width, or, dst, src),
            AluOp::Xor => by_width!(self, width, xor, dst, src),
            AluOp::Mul => by_width!(self, width, imul, dst, src),
            _ => by_width!(self, width, mov, dst, src),
        }
    }

    /// Emits the immediate of an operation on memory, its last part.
    fn immediate(&mut self, size: Size, imm: i32) {
        match (i8::try_from(imm), size) {
            (Ok(imm), _) => self.code.push_i8(imm),
            (Err(_), Size::B) => self.code.push_i8(imm as i8),
            (Err(_), Size::H) => self.code.push_i16(imm as i16),
            (Err(_), Size::W | Size::Dw) => self.code.push_i32(imm),
        }
    }

    fn update(&mut self, at: Target, size: Size, mem: MemRef, op: AluOp, src: Operand) -> bool {
        if !is_direct(mem) {
            return false;
        }
        match src {
            Operand::Imm(imm) => {
                let Some((opcode, digit)) = Opcode::update_imm(op, size, imm) else {
                    return false;
                };
                let Some(mem) = self.address(at, mem) else {
                    return false;
                };
                self.with_memory(opcode, digit, mem);
                self.immediate(size, imm);
            }
            Operand::Reg(src) => {
                let Some(opcode) = Opcode::update(op, size) else {
                    return false;
                };
                let Some(mem) = self.address(at, mem) else {
                    return false;
                };
                let src = self.source(src, SECOND);
                self.with_memory(opcode, src, mem);
            }
        }
        true
    }

    fn copy(&mut self, at: Target, size: Size, from: MemRef, to: MemRef, via: Option<Reg>) -> bool {
        let via = via.map(host);
        if via == Some(None) || !is_direct(from) || !is_direct(to) {
            return false;
        }
        let via = via.flatten();
        let is_lost = |base: Reg| host(base).is_none() || via == host(base);
        if let MemRef::MapValue { base, .. } | MemRef::Packet { base, .. } = to
            && is_lost(base)
        {
            return false;
        }
        let via = match via {
            Some(via) => via,
            None if self.pins.holds(SECOND) => return false,
            None => SECOND,
        };
        let Some(from) = self.address(at, from) else {
            return false;
        };
        self.with_memory(Opcode::load(size), via, from);
        let Some(to) = self.address(at, to) else {
            return false;
        };
        self.with_memory(Opcode::store(size), via, to);
        true
    }
}

/// Whether the flags after the code of `dst op= …` are those of the branch's comparison.
fn sets_flags(op: AluOp, width: Width, dst: Reg, branch: &Branch) -> bool {
    let sets_zero = matches!(
        op,
        AluOp::Add | AluOp::Sub | AluOp::And | AluOp::Or | AluOp::Xor
    );
    sets_zero
        && matches!(branch.op, JumpOp::Eq | JumpOp::Ne)
        && branch.left == dst
        && branch.right == Operand::Imm(0)
        // The upper half is zero after an operation on the lower one.
        && (branch.width == width || width == Width::W32)
}

/// Whether a zero-extended number can be compared with a constant in memory.
fn compares_in_memory(op: JumpOp, width: Width, size: Size, imm: i32) -> bool {
    let is_unsigned = matches!(
        op,
        JumpOp::Eq | JumpOp::Ne | JumpOp::Gt | JumpOp::Ge | JumpOp::Lt | JumpOp::Le
    );
    let fits = match size {
        Size::B => u8::try_from(imm).is_ok(),
        // An immediate of 16 bits takes long to decode.
        Size::H => (0..=0x7f).contains(&imm),
        Size::W => width == Width::W32 || imm >= 0,
        Size::Dw => width == Width::W64,
    };
    is_unsigned && fits
}
