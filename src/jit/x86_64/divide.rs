//! Division and remainder, which the host does in `rdx:rax`, and of which BPF says what
//! comes of zero and of the one quotient that does not fit.

use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::alu::by_width;
use super::emitter::{Emitter, asm};
use super::regs::{FIRST, Host, RAX, RDX, SECOND};
use crate::isa::{AluOp, Operand, Width, low32, sign_extend32};

impl Emitter<'_> {
    /// `dst op= src` for a division or a remainder.
    pub(super) fn divide(&mut self, op: AluOp, width: Width, dst: Host, src: Operand) {
        let is_signed = matches!(op, AluOp::Sdiv | AluOp::Smod);
        let wants_remainder = matches!(op, AluOp::Mod | AluOp::Smod);
        match src {
            Operand::Imm(imm) => {
                let divisor = match width {
                    Width::W64 => sign_extend32(imm),
                    Width::W32 => low32(sign_extend32(imm)).into(),
                };
                match imm {
                    0 => return self.by_zero(width, dst, wants_remainder),
                    -1 if is_signed => return self.by_minus_one(width, dst, wants_remainder),
                    _ if !is_signed && divisor.is_power_of_two() => {
                        return self.by_power(width, dst, wants_remainder, divisor);
                    }
                    _ => {}
                }
                self.constant(FIRST, divisor);
                self.by_first(is_signed, wants_remainder, width, dst);
            }
            Operand::Reg(src) => {
                let src = self.source(src, FIRST);
                by_width!(self, width, mov, FIRST, src);
                let (zero, minus, done) = (
                    self.code.new_dynamic_label(),
                    self.code.new_dynamic_label(),
                    self.code.new_dynamic_label(),
                );
                by_width!(self, width, test, FIRST, FIRST);
                asm!(self ; jz =>zero);
                if is_signed {
                    self.compare_with(width, FIRST, -1);
                    asm!(self ; je =>minus);
                }
                self.by_first(is_signed, wants_remainder, width, dst);
                asm!(self ; jmp =>done ; =>zero);
                self.by_zero(width, dst, wants_remainder);
                if is_signed {
                    asm!(self ; jmp =>done ; =>minus);
                    self.by_minus_one(width, dst, wants_remainder);
                }
                asm!(self ; =>done);
            }
        }
    }

    /// The quotient is 0; the remainder what was there.
    fn by_zero(&mut self, width: Width, dst: Host, wants_remainder: bool) {
        match (wants_remainder, width) {
            (false, _) => self.constant(dst, 0),
            (true, Width::W32) => asm!(self ; mov Rd(dst), Rd(dst)),
            (true, Width::W64) => {}
        }
    }

    /// The quotient may not fit, which the host would trap.
    fn by_minus_one(&mut self, width: Width, dst: Host, wants_remainder: bool) {
        match (wants_remainder, width) {
            (true, _) => self.constant(dst, 0),
            (false, Width::W64) => asm!(self ; neg Rq(dst)),
            (false, Width::W32) => asm!(self ; neg Rd(dst)),
        }
    }

    fn by_power(&mut self, width: Width, dst: Host, wants_remainder: bool, divisor: u64) {
        if wants_remainder {
            self.constant(FIRST, divisor - 1);
            by_width!(self, width, and, dst, FIRST);
        } else {
            let count = divisor.trailing_zeros() as i8;
            match width {
                Width::W64 if count == 0 => {}
                Width::W32 if count == 0 => asm!(self ; mov Rd(dst), Rd(dst)),
                Width::W64 => asm!(self ; shr Rq(dst), count),
                Width::W32 => asm!(self ; shr Rd(dst), count),
            }
        }
    }

    /// Divides `dst` by [`FIRST`], which is neither 0 nor, in a signed division, -1.
    fn by_first(&mut self, is_signed: bool, wants_remainder: bool, width: Width, dst: Host) {
        if dst != RAX {
            asm!(self ; mov Rq(SECOND), rax);
        }
        if dst != RDX {
            asm!(self ; push rdx);
        }
        by_width!(self, width, mov, RAX, dst);
        match (is_signed, width) {
            (false, Width::W64) => asm!(self ; xor edx, edx ; div Rq(FIRST)),
            (false, Width::W32) => asm!(self ; xor edx, edx ; div Rd(FIRST)),
            (true, Width::W64) => asm!(self ; cqo ; idiv Rq(FIRST)),
            (true, Width::W32) => asm!(self ; cdq ; idiv Rd(FIRST)),
        }
        let result = if wants_remainder { RDX } else { RAX };
        asm!(self ; mov Rq(FIRST), Rq(result));
        if dst != RDX {
            asm!(self ; pop rdx);
        }
        if dst != RAX {
            asm!(self ; mov rax, Rq(SECOND));
        }
        asm!(self ; mov Rq(dst), Rq(FIRST));
    }
}
