//! Division and remainder. For zero and for the one quotient that does not fit, the host
//! does what BPF defines: a quotient by zero is 0, so that the remainder is the dividend,
//! and the overflowing quotient wraps around.

use dynasmrt::DynasmApi;

use super::emitter::{Emitter, asm, by_width};
use super::regs::{Host, PARTIAL, RIGHT};
use crate::isa::{AluOp, Operand, Width, low32, sign_extend32};

impl Emitter<'_> {
    /// `dst = left op imm` for an unsigned division or remainder.
    pub(super) fn divide(&mut self, op: AluOp, width: Width, dst: Host, left: Host, imm: i32) {
        let divisor = match width {
            Width::W64 => sign_extend32(imm),
            Width::W32 => low32(sign_extend32(imm)).into(),
        };
        let count = divisor.trailing_zeros();
        match (op, width) {
            _ if !divisor.is_power_of_two() => {
                let right = self.operand(Operand::Imm(imm), width, RIGHT);
                self.divide_by(op, width, dst, left, right);
            }
            (AluOp::Div, _) => self.shift(AluOp::Rsh, width, dst, left, count),
            _ if count == 0 => self.constant(dst, 0),
            // A mask of the low bits.
            (_, Width::W64) => asm!(self ; and XSP(dst), X(left), divisor - 1),
            (_, Width::W32) => asm!(self ; and WSP(dst), W(left), (divisor - 1) as u32),
        }
    }

    /// The same with any divisor, for all four operations.
    pub(super) fn divide_by(
        &mut self,
        op: AluOp,
        width: Width,
        dst: Host,
        left: Host,
        right: Host,
    ) {
        match op {
            AluOp::Div => by_width!(self, width, udiv, dst, left, right),
            AluOp::Sdiv => by_width!(self, width, sdiv, dst, left, right),
            AluOp::Mod => by_width!(self, width, udiv, PARTIAL, left, right),
            _ => by_width!(self, width, sdiv, PARTIAL, left, right),
        }
        if matches!(op, AluOp::Mod | AluOp::Smod) {
            // left - quotient * right
            by_width!(self, width, msub, dst, PARTIAL, right, left);
        }
    }
}
