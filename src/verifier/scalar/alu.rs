//! Arithmetic: `dst = dst op src` as `adjust_scalar_min_max_vals` computes it.
//!
//! Sums, differences and products are computed for each interval separately, for the whole
//! number and the lower half; the other operations are in `bitwise` and `shift`.

use super::Scalar;
use super::bounds::Bounds;
use crate::isa::{AluOp, Width, low32};
use crate::verifier::tnum::Tnum;

impl Scalar {
    /// The destination after the operation. Unknown for division, modulo, and shifts by an
    /// unknown amount or by at least the width.
    #[must_use]
    #[inline]
    pub fn alu(op: AluOp, width: Width, dst: &Self, src: &Self) -> Self {
        let mut number = *dst;
        number.apply(op, width, src);
        number
    }

    /// Performs the operation on the destination, in place: see [`alu`](Self::alu). Returns whether
    /// the kernel computes the result (`is_safe_to_compute_dst_reg_range`); otherwise it is unknown.
    #[inline]
    pub(crate) fn apply(&mut self, op: AluOp, width: Width, src: &Self) -> bool {
        use AluOp::{Add, And, Mul, Or, Sub, Xor};
        if matches!(op, Add | Sub | Mul | And | Or | Xor)
            && let (Some(a), Some(b)) = (self.exact(), src.exact())
        {
            *self = Self::constant(op.eval(width, a, b));
            return true;
        }
        let bounded = Self::bounded(op, width, self, src);
        *self = bounded.unwrap_or(Self::UNKNOWN);
        bounded.is_some()
    }

    /// The destination after the operation, from the bits and the intervals; `None` where the kernel
    /// doesn't track it.
    #[inline(never)]
    pub(super) fn bounded(op: AluOp, width: Width, dst: &Self, src: &Self) -> Option<Self> {
        let number = Self::computed(op, width, dst, src)?;
        Some(match width {
            Width::W64 if op == AluOp::Mov => *src,
            Width::W64 => number.synced(),
            Width::W32 => number.zext32().synced(),
        })
    }

    /// The result, neither extended nor synced; `None` where the kernel doesn't track it.
    fn computed(op: AluOp, width: Width, dst: &Self, src: &Self) -> Option<Self> {
        Some(match op {
            AluOp::Mov => *src,
            AluOp::Add => dst.plus(src),
            AluOp::Sub => dst.minus(src),
            AluOp::Mul => dst.times(src),
            AluOp::And => dst.and(src),
            AluOp::Or => dst.or(src),
            AluOp::Xor => dst.xor(src),
            AluOp::Lsh => dst.shifted_left(width, src.shift_amount(width)?),
            AluOp::Rsh => dst.shifted_right(width, src.shift_amount(width)?),
            AluOp::Arsh => dst.shifted_right_signed(width, src.shift_amount(width)?),
            AluOp::Div | AluOp::Sdiv | AluOp::Mod | AluOp::Smod => return None,
        })
    }

    /// Splits a `dst` that is 0 or -1 (or whose lower half is) before `op` with a constant,
    /// so that the two values are explored separately (`maybe_fork_scalars`): a selection
    /// without a branch, `r1 s>>= 63; r1 &= 8`.
    ///
    /// The current state continues with the second value; the first one is pushed, at the
    /// same instruction.
    #[must_use]
    pub fn fork(op: AluOp, dst: &Self, src: &Self) -> Option<(Self, Self)> {
        if !matches!(op, AluOp::And | AluOp::Or) || !src.is_const() {
            return None;
        }
        if (dst.smin, dst.smax) == (-1, 0) {
            Some((Self::ZERO, Self::constant(u64::MAX)))
        } else if (dst.smin32, dst.smax32) == (-1, 0) {
            let known = |low| {
                let bits = dst.bits.with_low(Tnum::constant(u64::from(low)));
                Self::of(bits, dst.wide(), Bounds::constant(low))
            };
            Some((known(0), known(u32::MAX)))
        } else {
            None
        }
    }

    /// The negation: zero minus the number.
    #[must_use]
    pub fn neg(&self, width: Width) -> Self {
        Self::alu(AluOp::Sub, width, &Self::ZERO, self)
    }

    /// The number plus a constant: refines a register that is linked to another at a
    /// distance. (For a 32-bit addition, [`Self::alu`] is used.)
    #[must_use]
    pub fn add_const(&self, delta: i64) -> Self {
        let delta = Self::constant(delta.cast_unsigned());
        Self::alu(AluOp::Add, Width::W64, self, &delta)
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

    /// The shift amount, if it is known and below the width. With 32 bits, the lower half
    /// must be known and the whole number below the width.
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
