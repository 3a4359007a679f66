//! Division and remainder. What the host does with zero and with the one quotient that
//! does not fit is what BPF says: the quotient of zero is 0, so that the remainder is
//! what was there, and the other wraps around.

use dynasmrt::DynasmApi;

use super::emitter::{Emitter, asm, by_width};
use super::regs::{FIRST, Host, SECOND};
use crate::isa::{AluOp, Operand, Width, low32, sign_extend32};

impl Emitter<'_> {
    /// `dst op= src` for a division or a remainder.
    pub(super) fn divide(&mut self, op: AluOp, width: Width, dst: Host, src: Operand) {
        if let Operand::Imm(imm) = src {
            let divisor = match width {
                Width::W64 => sign_extend32(imm),
                Width::W32 => low32(sign_extend32(imm)).into(),
            };
            if divisor.is_power_of_two() && matches!(op, AluOp::Div | AluOp::Mod) {
                return self.by_power(op, width, dst, divisor);
            }
        }
        let src = self.operand(src, width, SECOND);
        self.divide_by(op, width, dst, src);
    }

    fn by_power(&mut self, op: AluOp, width: Width, dst: Host, divisor: u64) {
        let count = divisor.trailing_zeros();
        match (op, width) {
            (AluOp::Mod, _) if count == 0 => self.constant(dst, 0),
            // A mask of the low bits.
            (AluOp::Mod, Width::W64) => asm!(self ; and XSP(dst), X(dst), divisor - 1),
            (AluOp::Mod, Width::W32) => asm!(self ; and WSP(dst), W(dst), (divisor - 1) as u32),
            (_, Width::W64) if count == 0 => {}
            (_, Width::W32) if count == 0 => asm!(self ; mov W(dst), W(dst)),
            (_, Width::W64) => asm!(self ; lsr X(dst), X(dst), count),
            (_, Width::W32) => asm!(self ; lsr W(dst), W(dst), count),
        }
    }

    /// The same with any divisor.
    pub(super) fn divide_by(&mut self, op: AluOp, width: Width, dst: Host, src: Host) {
        match op {
            AluOp::Div => by_width!(self, width, udiv, dst, dst, src),
            AluOp::Sdiv => by_width!(self, width, sdiv, dst, dst, src),
            AluOp::Mod => by_width!(self, width, udiv, FIRST, dst, src),
            _ => by_width!(self, width, sdiv, FIRST, dst, src),
        }
        if matches!(op, AluOp::Mod | AluOp::Smod) {
            // dst - quotient * src
            by_width!(self, width, msub, dst, FIRST, src, dst);
        }
    }
}
