//! Arithmetic: `dst = dst op src` as `adjust_scalar_min_max_vals` computes it.
//!
//! Sums, differences and products are computed in each interval by itself, whole and
//! low half; the other operations are in `bitwise` and `shift`.

use super::Scalar;
use crate::isa::{AluOp, Width, low32};

impl Scalar {
    /// What the destination holds after the operation. Nothing is known of quotients,
    /// of remainders, and of shifts by an unknown amount or by the width and more.
    #[must_use]
    pub fn alu(op: AluOp, width: Width, dst: &Self, src: &Self) -> Self {
        let result = match op {
            AluOp::Mov => *src,
            AluOp::Div | AluOp::Sdiv | AluOp::Mod | AluOp::Smod => return Self::UNKNOWN,
            AluOp::Add => dst.plus(src),
            AluOp::Sub => dst.minus(src),
            AluOp::Mul => dst.times(src),
            AluOp::And => dst.and(src),
            AluOp::Or => dst.or(src),
            AluOp::Xor => dst.xor(src),
            AluOp::Lsh | AluOp::Rsh | AluOp::Arsh => {
                let Some(by) = src.shift_amount(width) else {
                    return Self::UNKNOWN;
                };
                match op {
                    AluOp::Lsh => dst.shifted_left(width, by),
                    AluOp::Rsh => dst.shifted_right(width, by),
                    _ => dst.shifted_right_signed(width, by),
                }
            }
        };
        match (op, width) {
            (AluOp::Mov, Width::W64) => result,
            (_, Width::W64) => result.synced(),
            (_, Width::W32) => result.zext32().synced(),
        }
    }

    /// The negation: zero minus the number.
    #[must_use]
    pub fn neg(&self, width: Width) -> Self {
        Self::alu(AluOp::Sub, width, &Self::ZERO, self)
    }

    /// The number plus a constant: what is known of a register that was made from
    /// another by adding, after something was learnt of the other.
    #[must_use]
    pub fn add_const(&self, delta: i64) -> Self {
        self.plus(&Self::constant(delta.cast_unsigned())).synced()
    }

    /// The sum, not yet synced.
    fn plus(&self, other: &Self) -> Self {
        Self::of(
            self.bits.add(other.bits),
            self.wide().add(other.wide()),
            self.half().add(other.half()),
        )
    }

    /// The difference, not yet synced.
    fn minus(&self, other: &Self) -> Self {
        Self::of(
            self.bits.sub(other.bits),
            self.wide().sub(other.wide()),
            self.half().sub(other.half()),
        )
    }

    /// The product, not yet synced.
    fn times(&self, other: &Self) -> Self {
        Self::of(
            self.bits.mul(other.bits),
            self.wide().mul(other.wide()),
            self.half().mul(other.half()),
        )
    }

    /// The amount to shift by, if it is known and below the width; of 32 bits the low
    /// half must be known, and the whole number below the width.
    fn shift_amount(&self, width: Width) -> Option<u32> {
        let known = match width {
            Width::W64 => self.is_const() && self.umin == self.umax && self.smin == self.smax,
            Width::W32 => {
                self.bits.low().is_const()
                    && self.umin32 == self.umax32
                    && self.smin32 == self.smax32
            }
        };
        let by = match width {
            Width::W64 => low32(self.umin),
            Width::W32 => self.umin32,
        };
        (known && self.umax < u64::from(width.bits())).then_some(by)
    }
}
