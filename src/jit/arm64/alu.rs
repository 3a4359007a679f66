//! Arithmetic. What has 32 bits clears the upper half of its result, as in BPF.

use dynasmrt::DynasmApi;
use dynasmrt::aarch64::{encode_logical_immediate_32bit, encode_logical_immediate_64bit};

use super::emitter::{Emitter, asm, by_width, halves};
use super::regs::{Host, SECOND, host};
use crate::isa::{AluOp, EndianOp, EndianSize, Operand, Reg, SignedSize, Width, sign_extend32};

impl Emitter<'_> {
    /// `dst op= src`.
    pub(super) fn alu(&mut self, op: AluOp, width: Width, dst: Reg, src: Operand) {
        let dst = host(dst);
        match (op, src) {
            (AluOp::Add, Operand::Imm(imm)) => self.add_constant(width, dst, imm.into()),
            (AluOp::Sub, Operand::Imm(imm)) => self.add_constant(width, dst, -i64::from(imm)),
            (AluOp::Or | AluOp::And | AluOp::Xor, Operand::Imm(imm)) if is_logical(width, imm) => {
                self.logical(op, width, dst, imm);
            }
            (AluOp::Mov, Operand::Imm(imm)) => match width {
                Width::W64 => self.constant(dst, sign_extend32(imm)),
                Width::W32 => self.constant(dst, imm.cast_unsigned().into()),
            },
            (AluOp::Lsh | AluOp::Rsh | AluOp::Arsh, Operand::Imm(imm)) => {
                self.shift(op, width, dst, imm);
            }
            (AluOp::Div | AluOp::Mod | AluOp::Sdiv | AluOp::Smod, src) => {
                self.divide(op, width, dst, src);
            }
            (op, src) => {
                let src = self.operand(src, width, SECOND);
                self.registers(op, width, dst, src);
            }
        }
    }

    fn registers(&mut self, op: AluOp, width: Width, dst: Host, src: Host) {
        match op {
            AluOp::Add => by_width!(self, width, add, dst, dst, src),
            AluOp::Sub => by_width!(self, width, sub, dst, dst, src),
            AluOp::Mul => by_width!(self, width, mul, dst, dst, src),
            AluOp::Or => by_width!(self, width, orr, dst, dst, src),
            AluOp::And => by_width!(self, width, and, dst, dst, src),
            AluOp::Xor => by_width!(self, width, eor, dst, dst, src),
            AluOp::Mov => by_width!(self, width, mov, dst, src),
            // The host masks the count as BPF does.
            AluOp::Lsh => by_width!(self, width, lsl, dst, dst, src),
            AluOp::Rsh => by_width!(self, width, lsr, dst, dst, src),
            AluOp::Arsh => by_width!(self, width, asr, dst, dst, src),
            AluOp::Div | AluOp::Mod | AluOp::Sdiv | AluOp::Smod => {
                self.divide_by(op, width, dst, src);
            }
        }
    }

    fn add_constant(&mut self, width: Width, dst: Host, value: i64) {
        if width == Width::W64 {
            return self.add(dst, dst, value);
        }
        match (halves(value.unsigned_abs()), value < 0) {
            (Some((low, 0)), false) => asm!(self ; add WSP(dst), WSP(dst), low),
            (Some((low, 0)), true) => asm!(self ; sub WSP(dst), WSP(dst), low),
            (Some((0, high)), false) => asm!(self ; add WSP(dst), WSP(dst), high, lsl 12),
            (Some((0, high)), true) => asm!(self ; sub WSP(dst), WSP(dst), high, lsl 12),
            _ => {
                self.constant(SECOND, value.cast_unsigned() & 0xffff_ffff);
                asm!(self ; add W(dst), W(dst), W(SECOND));
            }
        }
    }

    /// With a constant that [fits](is_logical).
    fn logical(&mut self, op: AluOp, width: Width, dst: Host, imm: i32) {
        let (long, short) = (sign_extend32(imm), imm.cast_unsigned());
        match (op, width) {
            (AluOp::Or, Width::W64) => asm!(self ; orr XSP(dst), X(dst), long),
            (AluOp::Or, Width::W32) => asm!(self ; orr WSP(dst), W(dst), short),
            (AluOp::And, Width::W64) => asm!(self ; and XSP(dst), X(dst), long),
            (AluOp::And, Width::W32) => asm!(self ; and WSP(dst), W(dst), short),
            (_, Width::W64) => asm!(self ; eor XSP(dst), X(dst), long),
            (_, Width::W32) => asm!(self ; eor WSP(dst), W(dst), short),
        }
    }

    fn shift(&mut self, op: AluOp, width: Width, dst: Host, imm: i32) {
        let count = imm.cast_unsigned() & (u32::from(width.bits()) - 1);
        match (op, width) {
            (_, Width::W64) if count == 0 => {}
            // The upper half goes.
            (_, Width::W32) if count == 0 => asm!(self ; mov W(dst), W(dst)),
            (AluOp::Lsh, Width::W64) => asm!(self ; lsl X(dst), X(dst), count),
            (AluOp::Lsh, Width::W32) => asm!(self ; lsl W(dst), W(dst), count),
            (AluOp::Rsh, Width::W64) => asm!(self ; lsr X(dst), X(dst), count),
            (AluOp::Rsh, Width::W32) => asm!(self ; lsr W(dst), W(dst), count),
            (_, Width::W64) => asm!(self ; asr X(dst), X(dst), count),
            (_, Width::W32) => asm!(self ; asr W(dst), W(dst), count),
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

/// Whether a logical instruction has this constant in it.
pub(super) fn is_logical(width: Width, imm: i32) -> bool {
    match width {
        Width::W64 => encode_logical_immediate_64bit(sign_extend32(imm)).is_some(),
        Width::W32 => encode_logical_immediate_32bit(imm.cast_unsigned()).is_some(),
    }
}
