//! Several operations as one, where the host has a form for that.

use dynasmrt::DynasmApi;

use super::alu::by_width;
use super::emitter::{Emitter, asm};
use super::encode::{At, Opcode};
use super::regs::{FIRST, Host, SECOND, host};
use crate::isa::{AluOp, JumpOp, Operand, Reg, Size, Width};
use crate::lower::{Branch, Fused, Notes, Place, Target};

impl Emitter<'_> {
    /// The code of the operations from `at` to `end` as one; false where there is none
    /// that is better than theirs.
    pub(super) fn fused(&mut self, at: Target, end: Target, fused: Fused) -> bool {
        // Nothing leads into it, so that phases follow one another.
        if (at..end - 1).any(|inner| self.counts.edge(inner, inner + 1) != 0) {
            return false;
        }
        let has_code = match fused {
            Fused::Alu {
                op,
                width,
                dst,
                left,
                right,
            } => self.three(op, width, dst, Operand::Reg(left), right),
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
            Fused::LoadAlu {
                size,
                place,
                loaded,
                op,
                width,
                dst,
            } => self.load_alu(at, (size, place), loaded, op, width, dst),
            Fused::Update {
                size,
                place,
                op,
                width: _,
                src,
                dst,
            } => dst.is_none() && self.update(at, size, place, op, src),
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
            Fused::AluBranch { copy: Some(_), .. }
            | Fused::LoadBranch { dst: None, .. }
            | Fused::LoadIndexed { .. }
            | Fused::Select { .. } => {
                return false;
            }
            Fused::AluBranch {
                op,
                width,
                dst,
                src,
                branch,
                copy: None,
            } => {
                let note = self.lowered.note(at);
                let width = if note.contains(Notes::NARROW) {
                    Width::W32
                } else {
                    width
                };
                self.alu(op, width, dst, src, note);
                if !sets_flags(op, width, dst, &branch) {
                    self.compare(branch.op, branch.width, branch.left, branch.right);
                }
                return self.fused_branch(branch, end);
            }
            Fused::LoadBranch {
                size,
                place,
                dst: Some(dst),
                branch,
            } => {
                if !is_direct(place) || !self.load(at, size, dst, place) {
                    return false;
                }
                self.compare(branch.op, branch.width, branch.left, branch.right);
                return self.fused_branch(branch, end);
            }
        };
        if has_code {
            self.take(self.counts.edge(end - 1, end));
        }
        has_code
    }

    /// Goes to the target of the operations before `end`, the comparison being done.
    fn fused_branch(&mut self, branch: Branch, end: Target) -> bool {
        let Branch {
            op,
            when,
            target,
            skips,
            ..
        } = branch;
        self.branch_on(end - 1, op, when, target);
        // The jump that ends it is executed only if it goes to the target.
        let last = if skips { end - 2 } else { end - 1 };
        self.take(self.counts.edge(last, end));
        true
    }

    /// `dst = left op right`.
    fn three(&mut self, op: AluOp, width: Width, dst: Reg, left: Operand, right: Operand) -> bool {
        let Some(to) = host(dst) else {
            return false;
        };
        let Operand::Reg(from) = left else {
            // Whatever is read is read before `dst` is written.
            if right == Operand::Reg(dst) {
                return false;
            }
            self.mov(width, to, left);
            self.alu(op, width, dst, right, Notes::empty());
            return true;
        };
        let from = self.source(from, FIRST);
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
        let right = (width.bits() as u8 - left) as i8;
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
        let kept = width.bits() as u8 - left;
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
        // A mask without the upper bits needs no more than the lower ones.
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
        (size, place): (Size, Place),
        loaded: Option<Reg>,
        op: AluOp,
        width: Width,
        dst: Reg,
    ) -> bool {
        let loaded = loaded.map(host);
        let (Some(to), false) = (host(dst), loaded == Some(None) || !is_direct(place)) else {
            return false;
        };
        let memory = match (op, loaded) {
            (AluOp::Mov, None) => None,
            (_, None) if size == width.size() => Opcode::with_load(op, width),
            _ => None,
        };
        // A division needs the spare register; so does a shift without BMI2.
        let is_simple = matches!(
            op,
            AluOp::Add | AluOp::Sub | AluOp::And | AluOp::Or | AluOp::Xor | AluOp::Mul | AluOp::Mov
        );
        if !is_simple {
            return false;
        }
        let Some(from) = self.place(at, place) else {
            return false;
        };
        if let Some(opcode) = memory {
            self.with_memory(opcode, to, from);
            return true;
        }
        let temporary = match (op, loaded.flatten()) {
            (AluOp::Mov, None) => to,
            (_, loaded) => loaded.unwrap_or(FIRST),
        };
        self.with_memory(Opcode::load(size), temporary, from);
        if op == AluOp::Mov && temporary == to {
            // 32 bits of 64 are meant.
            if width == Width::W32 && size == Size::Dw {
                asm!(self ; mov Rd(to), Rd(to));
            }
            return true;
        }
        self.alu_host(op, width, to, temporary);
        true
    }

    /// `dst op= src` for the simplest of operations.
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

    fn update(&mut self, at: Target, size: Size, place: Place, op: AluOp, src: Operand) -> bool {
        if !is_direct(place) {
            return false;
        }
        match src {
            Operand::Imm(imm) => {
                let Some((opcode, digit)) = Opcode::update_imm(op, size, imm) else {
                    return false;
                };
                let Some(place) = self.place(at, place) else {
                    return false;
                };
                self.with_memory(opcode, digit, place);
                match (i8::try_from(imm), size) {
                    (Ok(imm), _) => self.code.push_i8(imm),
                    (Err(_), Size::B) => self.code.push_i8(imm as i8),
                    (Err(_), Size::H) => self.code.push_i16(imm as i16),
                    (Err(_), Size::W | Size::Dw) => self.code.push_i32(imm),
                }
            }
            Operand::Reg(src) => {
                let Some(opcode) = Opcode::update(op, size) else {
                    return false;
                };
                let Some(place) = self.place(at, place) else {
                    return false;
                };
                let src = self.source(src, SECOND);
                self.with_memory(opcode, src, place);
            }
        }
        true
    }

    fn copy(&mut self, at: Target, size: Size, from: Place, to: Place, via: Option<Reg>) -> bool {
        let via = via.map(host);
        if via == Some(None) || !is_direct(from) || !is_direct(to) {
            return false;
        }
        let via = via.flatten();
        let is_lost = |base: Reg| host(base).is_none() || via == host(base);
        if let Place::MapValue { base, .. } | Place::Packet { base, .. } = to
            && is_lost(base)
        {
            return false;
        }
        let via = via.unwrap_or(SECOND);
        let Some(from) = self.place(at, from) else {
            return false;
        };
        self.with_memory(Opcode::load(size), via, from);
        let Some(to) = self.place(at, to) else {
            return false;
        };
        self.with_memory(Opcode::store(size), via, to);
        true
    }
}

/// Whether an access to this place has code that needs no second way.
const fn is_direct(place: Place) -> bool {
    matches!(
        place,
        Place::Stack { .. } | Place::Context { .. } | Place::MapValue { .. } | Place::Packet { .. }
    )
}

/// Whether the flags after the code of `dst op= …` are those of the comparison.
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
