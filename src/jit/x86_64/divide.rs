//! Division and remainder. The host divides in `rdx:rax`; BPF defines the result for a zero
//! divisor and for the one quotient that does not fit.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi};

use super::alu::by_width;
use super::constant_division::Inverse;
use super::division::{Division, Special};
use super::emitter::{Emitter, Stub, asm};
use super::operand::Digit;
use super::regs::{FIRST, Host, RAX, RDX, SECOND};
use crate::isa::{AluOp, Operand, Reg, Width, low32, sign_extend32};
use crate::lower::Notes;

impl Emitter<'_> {
    /// `dst op= src` for a division or a remainder.
    pub(super) fn divide(
        &mut self,
        op: AluOp,
        width: Width,
        dst: Host,
        src: Operand,
        notes: Notes,
    ) {
        let division = Division {
            is_signed: matches!(op, AluOp::Sdiv | AluOp::Smod),
            wants_remainder: matches!(op, AluOp::Mod | AluOp::Smod),
            width,
            dst,
        };
        match src {
            Operand::Imm(imm) => self.divide_by_constant(division, imm),
            Operand::Reg(src) => self.divide_by_register(division, src, notes),
        }
    }

    fn divide_by_constant(&mut self, division: Division, imm: i32) {
        let divisor = match division.width {
            Width::W64 => sign_extend32(imm),
            Width::W32 => low32(sign_extend32(imm)).into(),
        };
        match imm {
            0 => self.by_special(division, Special::Zero),
            -1 if division.is_signed => self.by_special(division, Special::MinusOne),
            _ if !division.is_signed && divisor.is_power_of_two() => {
                self.by_power(division, divisor);
            }
            _ if !division.is_signed && division.width == Width::W32 => {
                self.by_inverse32(division, divisor);
            }
            _ if !division.is_signed && self.features.bmi2 => {
                self.by_inverse64(division, imm, divisor);
            }
            _ => {
                self.constant(FIRST, divisor);
                self.by_register(division, FIRST);
            }
        }
    }

    fn divide_by_register(&mut self, division: Division, src: Reg, notes: Notes) {
        let Division { width, .. } = division;
        let divisor = self.source(src, FIRST);
        let done = self.code.new_dynamic_label();
        if !notes.contains(Notes::DIVISOR_NOT_ZERO) {
            let zero = self.special(division, Special::Zero, done);
            by_width!(self, width, test, divisor, divisor);
            asm!(self ; jz =>zero);
        }
        if division.is_signed && !notes.contains(Notes::NO_OVERFLOW) {
            let minus = self.special(division, Special::MinusOne, done);
            self.with_immediate(Digit::CMP, width, divisor, -1);
            asm!(self ; je =>minus);
        }
        self.by_register(division, divisor);
        asm!(self ; =>done);
    }

    /// The stub for a special divisor.
    fn special(&mut self, division: Division, by: Special, back: DynamicLabel) -> DynamicLabel {
        self.stub(Stub::Division { division, by, back })
    }

    /// Emits the result for a special divisor.
    pub(super) fn by_special(&mut self, division: Division, by: Special) {
        let Division {
            wants_remainder,
            width,
            dst,
            ..
        } = division;
        match (by, wants_remainder, width) {
            (Special::Zero, false, _) | (Special::MinusOne, true, _) => self.constant(dst, 0),
            (Special::Zero, true, Width::W32) => asm!(self ; mov Rd(dst), Rd(dst)),
            (Special::Zero, true, Width::W64) => {}
            // The quotient may not fit: the host would trap.
            (Special::MinusOne, false, Width::W64) => asm!(self ; neg Rq(dst)),
            (Special::MinusOne, false, Width::W32) => asm!(self ; neg Rd(dst)),
        }
    }

    fn by_power(&mut self, division: Division, divisor: u64) {
        let Division { width, dst, .. } = division;
        let count = divisor.trailing_zeros() as i8;
        match (division.wants_remainder, width) {
            (true, Width::W32) => {
                let mask = low32(divisor - 1).cast_signed();
                self.with_immediate(Digit::AND, width, dst, mask);
            }
            (true, Width::W64) => {
                self.constant(FIRST, divisor - 1);
                by_width!(self, width, and, dst, FIRST);
            }
            (false, Width::W64) if count == 0 => {}
            (false, Width::W32) if count == 0 => asm!(self ; mov Rd(dst), Rd(dst)),
            (false, Width::W64) => asm!(self ; shr Rq(dst), count),
            (false, Width::W32) => asm!(self ; shr Rd(dst), count),
        }
    }

    /// Divides 32-bit numbers in 64-bit registers.
    fn by_inverse32(&mut self, division: Division, divisor: u64) {
        let dst = division.dst;
        let Inverse {
            factor,
            is_long,
            shift,
        } = Inverse::of(divisor, 32);
        asm!(self ; mov Rd(FIRST), Rd(dst));
        self.constant(SECOND, factor);
        asm!(self ; imul Rq(FIRST), Rq(SECOND));
        if is_long {
            asm!(self
                ; shr Rq(FIRST), 32
                ; mov Rd(SECOND), Rd(dst)
                ; add Rq(FIRST), Rq(SECOND)
                ; shr Rq(FIRST), shift as i8
            );
        } else {
            asm!(self ; shr Rq(FIRST), (32 + shift) as i8);
        }
        if division.wants_remainder {
            self.multiply(Width::W32, SECOND, FIRST, low32(divisor).cast_signed());
            asm!(self ; sub Rd(dst), Rd(SECOND));
        } else {
            asm!(self ; mov Rd(dst), Rd(FIRST));
        }
    }

    fn by_inverse64(&mut self, division: Division, imm: i32, divisor: u64) {
        let dst = division.dst;
        let Inverse {
            factor,
            is_long,
            shift,
        } = Inverse::of(divisor, 64);
        self.constant(FIRST, factor);
        if dst != RDX {
            asm!(self ; xchg rdx, Rq(dst));
        }
        // The upper half of the product is in the second one.
        asm!(self ; mulx Rq(SECOND), Rq(FIRST), Rq(FIRST));
        if dst != RDX {
            asm!(self ; xchg rdx, Rq(dst));
        }
        if is_long {
            asm!(self
                ; mov Rq(FIRST), Rq(dst)
                ; sub Rq(FIRST), Rq(SECOND)
                ; shr Rq(FIRST), 1
                ; add Rq(SECOND), Rq(FIRST)
                ; shr Rq(SECOND), (shift - 1) as i8
            );
        } else if shift > 0 {
            asm!(self ; shr Rq(SECOND), shift as i8);
        }
        if division.wants_remainder {
            self.multiply(Width::W64, FIRST, SECOND, imm);
            asm!(self ; sub Rq(dst), Rq(FIRST));
        } else {
            asm!(self ; mov Rq(dst), Rq(SECOND));
        }
    }

    /// Divides by a register that is neither 0 nor, in a signed division, -1.
    fn by_register(&mut self, division: Division, divisor: Host) {
        let Division {
            is_signed,
            wants_remainder,
            width,
            dst,
        } = division;
        // The first spare register saves `rdx`, unless it is the divisor, and the second
        // one `rax`.
        let is_on_stack = dst != RDX && divisor == FIRST;
        if is_on_stack {
            asm!(self ; push rdx);
        } else if dst != RDX || divisor == RDX {
            asm!(self ; mov Rq(FIRST), rdx);
        }
        if dst != RAX || divisor == RAX {
            asm!(self ; mov Rq(SECOND), rax);
        }
        let divisor = match divisor {
            RAX => SECOND,
            RDX => FIRST,
            other => other,
        };
        if dst != RAX {
            by_width!(self, width, mov, RAX, dst);
        }
        match (is_signed, width) {
            (false, Width::W64) => asm!(self ; xor edx, edx ; div Rq(divisor)),
            (false, Width::W32) => asm!(self ; xor edx, edx ; div Rd(divisor)),
            (true, Width::W64) => asm!(self ; cqo ; idiv Rq(divisor)),
            (true, Width::W32) => asm!(self ; cdq ; idiv Rd(divisor)),
        }
        let result = if wants_remainder { RDX } else { RAX };
        if result != dst {
            asm!(self ; mov Rq(dst), Rq(result));
        }
        if is_on_stack {
            asm!(self ; pop rdx);
        } else if dst != RDX {
            asm!(self ; mov rdx, Rq(FIRST));
        }
        if dst != RAX {
            asm!(self ; mov rax, Rq(SECOND));
        }
    }
}
