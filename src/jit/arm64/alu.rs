//! Arithmetic. 32-bit operations clear the upper half of their result, as in BPF.

use dynasmrt::DynasmApi;
use dynasmrt::aarch64::{encode_logical_immediate_32bit, encode_logical_immediate_64bit};

use super::emitter::{Emitter, asm, by_width, halves};
use super::regs::{Host, RIGHT, host};
use crate::isa::{AluOp, EndianOp, EndianSize, Operand, Reg, SignedSize, Width, sign_extend32};

impl Emitter<'_> {
    /// `dst = left op right`; both are read before `dst` is written.
    pub(super) fn alu(&mut self, op: AluOp, width: Width, dst: Host, left: Host, right: Operand) {
        let imm = match right {
            Operand::Imm(imm) => imm,
            Operand::Reg(right) => return self.registers(op, width, dst, left, host(right)),
        };
        match op {
            AluOp::Add => self.add_constant(width, dst, left, imm.into()),
            AluOp::Sub => self.add_constant(width, dst, left, -i64::from(imm)),
            AluOp::Or | AluOp::And | AluOp::Xor if is_logical(width, imm) => {
                self.logical(op, width, dst, left, imm);
            }
            AluOp::Mov => self.immediate(width, dst, imm),
            AluOp::Lsh | AluOp::Rsh | AluOp::Arsh => {
                let count = imm.cast_unsigned() & (u32::from(width.bits()) - 1);
                self.shift(op, width, dst, left, count);
            }
            AluOp::Div | AluOp::Mod => self.divide(op, width, dst, left, imm),
            _ => {
                let right = self.operand(right, width, RIGHT);
                self.registers(op, width, dst, left, right);
            }
        }
    }

    /// The same with registers.
    pub(super) fn registers(
        &mut self,
        op: AluOp,
        width: Width,
        dst: Host,
        left: Host,
        right: Host,
    ) {
        match op {
            AluOp::Add => by_width!(self, width, add, dst, left, right),
            AluOp::Sub => by_width!(self, width, sub, dst, left, right),
            AluOp::Mul => by_width!(self, width, mul, dst, left, right),
            AluOp::Or => by_width!(self, width, orr, dst, left, right),
            AluOp::And => by_width!(self, width, and, dst, left, right),
            AluOp::Xor => by_width!(self, width, eor, dst, left, right),
            AluOp::Mov => by_width!(self, width, mov, dst, right),
            // The host masks the count as BPF does.
            AluOp::Lsh => by_width!(self, width, lsl, dst, left, right),
            AluOp::Rsh => by_width!(self, width, lsr, dst, left, right),
            AluOp::Arsh => by_width!(self, width, asr, dst, left, right),
            AluOp::Div | AluOp::Mod | AluOp::Sdiv | AluOp::Smod => {
                self.divide_by(op, width, dst, left, right);
            }
        }
    }

    fn add_constant(&mut self, width: Width, dst: Host, left: Host, value: i64) {
        if width == Width::W64 {
            return self.add(dst, left, value);
        }
        match (halves(value.unsigned_abs()), value < 0) {
            (Some((low, 0)), false) => asm!(self ; add WSP(dst), WSP(left), low),
            (Some((low, 0)), true) => asm!(self ; sub WSP(dst), WSP(left), low),
            (Some((0, high)), false) => asm!(self ; add WSP(dst), WSP(left), high, lsl 12),
            (Some((0, high)), true) => asm!(self ; sub WSP(dst), WSP(left), high, lsl 12),
            _ => {
                self.constant(RIGHT, value.cast_unsigned() & 0xffff_ffff);
                asm!(self ; add W(dst), W(left), W(RIGHT));
            }
        }
    }

    /// A logical operation with a constant that [fits](is_logical).
    fn logical(&mut self, op: AluOp, width: Width, dst: Host, left: Host, imm: i32) {
        let (long, short) = (sign_extend32(imm), imm.cast_unsigned());
        match (op, width) {
            (AluOp::Or, Width::W64) => asm!(self ; orr XSP(dst), X(left), long),
            (AluOp::Or, Width::W32) => asm!(self ; orr WSP(dst), W(left), short),
            (AluOp::And, Width::W64) => asm!(self ; and XSP(dst), X(left), long),
            (AluOp::And, Width::W32) => asm!(self ; and WSP(dst), W(left), short),
            (_, Width::W64) => asm!(self ; eor XSP(dst), X(left), long),
            (_, Width::W32) => asm!(self ; eor WSP(dst), W(left), short),
        }
    }

    /// A shift by less than the width.
    pub(super) fn shift(&mut self, op: AluOp, width: Width, dst: Host, left: Host, count: u32) {
        match (op, width) {
            (_, Width::W64) if count == 0 && dst == left => {}
            // A 32-bit move clears the upper half.
            _ if count == 0 => by_width!(self, width, mov, dst, left),
            (AluOp::Lsh, Width::W64) => asm!(self ; lsl X(dst), X(left), count),
            (AluOp::Lsh, Width::W32) => asm!(self ; lsl W(dst), W(left), count),
            (AluOp::Rsh, Width::W64) => asm!(self ; lsr X(dst), X(left), count),
            (AluOp::Rsh, Width::W32) => asm!(self ; lsr W(dst), W(left), count),
            (_, Width::W64) => asm!(self ; asr X(dst), X(left), count),
            (_, Width::W32) => asm!(self ; asr W(dst), W(left), count),
        }
    }

    /// `dst = -dst`.
    pub(super) fn neg(&mut self, width: Width, dst: Reg) {
        let dst = host(dst);
        by_width!(self, width, neg, dst, dst);
    }

    /// `dst = (sN)src`.
    pub(super) fn movsx(&mut self, width: Width, from: SignedSize, dst: Reg, src: Reg) {
        let (dst, src) = (host(dst), host(src));
        match (width, from) {
            (Width::W64, SignedSize::S8) => asm!(self ; sxtb X(dst), W(src)),
            (Width::W64, SignedSize::S16) => asm!(self ; sxth X(dst), W(src)),
            (Width::W64, SignedSize::S32) => asm!(self ; sxtw X(dst), W(src)),
            (Width::W32, SignedSize::S8) => asm!(self ; sxtb W(dst), W(src)),
            (Width::W32, SignedSize::S16) => asm!(self ; sxth W(dst), W(src)),
            (Width::W32, SignedSize::S32) => asm!(self ; mov W(dst), W(src)),
        }
    }

    /// `dst = op(dst)`: the host is little-endian.
    pub(super) fn endian(&mut self, op: EndianOp, size: EndianSize, dst: Reg) {
        let dst = host(dst);
        let swaps = op != EndianOp::ToLe;
        match (size, swaps) {
            (EndianSize::B16, false) => asm!(self ; uxth W(dst), W(dst)),
            (EndianSize::B16, true) => asm!(self ; rev16 W(dst), W(dst) ; uxth W(dst), W(dst)),
            (EndianSize::B32, false) => asm!(self ; mov W(dst), W(dst)),
            (EndianSize::B32, true) => asm!(self ; rev W(dst), W(dst)),
            (EndianSize::B64, false) => {}
            (EndianSize::B64, true) => asm!(self ; rev X(dst), X(dst)),
        }
    }
}

/// Whether a logical instruction can encode this constant.
pub(super) fn is_logical(width: Width, imm: i32) -> bool {
    match width {
        Width::W64 => encode_logical_immediate_64bit(sign_extend32(imm)).is_some(),
        Width::W32 => encode_logical_immediate_32bit(imm.cast_unsigned()).is_some(),
    }
}
