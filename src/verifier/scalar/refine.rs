//! Refines both operands of a conditional jump (`regs_refine_cond_op`).

use super::Scalar;
use super::bounds::Bounds;
use super::interval::{Interval, Word};
use crate::isa::{JumpOp, Width, low32};
use crate::verifier::tnum::Tnum;

impl Scalar {
    /// Both operands on the branch where the condition holds (`taken`) or not, synced. On
    /// an impossible branch they may be inconsistent: see [`Self::sanitized`].
    #[must_use]
    pub fn refine(op: JumpOp, width: Width, dst: &Self, src: &Self, taken: bool) -> (Self, Self) {
        let (a, b) = edge(op, width, dst, src, taken);
        (a.synced(), b.synced())
    }

    /// A register compared with itself: it gets the refinements of both operands, and is
    /// synced for each of them.
    #[must_use]
    pub fn refine_same(op: JumpOp, width: Width, number: &Self, taken: bool) -> Self {
        let (a, b) = edge(op, width, number, number, taken);
        Self::of(
            a.bits.intersect(b.bits),
            a.wide().intersect(b.wide()),
            a.half().intersect(b.half()),
        )
        .synced()
        .synced()
    }

    /// Excludes `value`.
    fn exclude(&mut self, width: Width, value: u64) {
        match width {
            Width::W64 => self.set_wide(self.wide().without(value)),
            Width::W32 => self.set_half(self.half().without(low32(value))),
        }
    }

    /// Makes both the same number.
    fn equate(&mut self, width: Width, other: &mut Self) {
        match width {
            Width::W64 => {
                let both = Self::of(
                    self.bits.intersect(other.bits),
                    self.wide().intersect(other.wide()),
                    self.half(),
                );
                other.set_wide(both.wide());
                other.bits = both.bits;
                *self = both;
            }
            Width::W32 => {
                let half = self.half().intersect(other.half());
                let low = self.bits.low().intersect(other.bits.low());
                for number in [self, other] {
                    number.set_half(half);
                    number.bits = number.bits.with_low(low);
                }
            }
        }
    }

    fn set_wide(&mut self, wide: Bounds<u64>) {
        *self = Self::of(self.bits, wide, self.half());
    }

    fn set_half(&mut self, half: Bounds<u32>) {
        *self = Self::of(self.bits, self.wide(), half);
    }
}

/// Both operands where the condition holds (`taken`) or not, not yet synced.
fn edge(op: JumpOp, width: Width, dst: &Scalar, src: &Scalar, taken: bool) -> (Scalar, Scalar) {
    let (mut a, mut b) = (*dst, *src);
    match (taken, op.negated()) {
        (true, _) => refine(op, width, &mut a, &mut b),
        (false, Some(negated)) => refine(negated, width, &mut a, &mut b),
        (false, None) => {
            if let Some((number, bits)) = beside_constant(width, &mut a, &mut b) {
                // Only the bits are kept: with the intervals, the scalar would be
                // inconsistent on an impossible branch.
                let bits = number.bits.and(Tnum::constant(!bits));
                *number = Scalar::of(bits, Bounds::FULL, Bounds::FULL);
            }
        }
    }
    (a, b)
}

/// Assumes that the condition holds for `a` and `b`.
fn refine(op: JumpOp, width: Width, a: &mut Scalar, b: &mut Scalar) {
    match op {
        JumpOp::Eq => a.equate(width, b),
        JumpOp::Ne => {
            if let Some((number, value)) = beside_constant(width, a, b) {
                number.exclude(width, value);
            }
        }
        JumpOp::Set => match beside_constant(width, a, b) {
            // It is not known which of several bits is set.
            Some((number, bit)) if bit.is_power_of_two() => {
                number.bits = number.bits.or(Tnum::constant(bit));
            }
            _ => {}
        },
        JumpOp::Gt | JumpOp::Ge | JumpOp::Sgt | JumpOp::Sge => refine(op.swapped(), width, b, a),
        JumpOp::Lt | JumpOp::Le | JumpOp::Slt | JumpOp::Sle => match width {
            Width::W64 => {
                let (x, y) = a.wide().order(op, b.wide());
                a.set_wide(x);
                b.set_wide(y);
            }
            Width::W32 => {
                let (x, y) = a.half().order(op, b.half());
                a.set_half(x);
                b.set_half(y);
            }
        },
    }
}

/// The other operand and the constant, if one of the two is constant.
fn beside_constant<'a>(
    width: Width,
    a: &'a mut Scalar,
    b: &'a mut Scalar,
) -> Option<(&'a mut Scalar, u64)> {
    let (left, right) = (a.bits.at(width), b.bits.at(width));
    if right.is_const() {
        Some((a, right.value))
    } else if left.is_const() {
        Some((b, left.value))
    } else {
        None
    }
}

impl<U: Word> Bounds<U> {
    fn without(self, value: U) -> Self {
        Self {
            u: self.u.without(value),
            s: self.s.without(value.twin()),
        }
    }

    /// Both, where this one is less than the other, or at most equal.
    fn order(mut self, op: JumpOp, mut other: Self) -> (Self, Self) {
        match op {
            JumpOp::Lt => self.u.order(&mut other.u, true),
            JumpOp::Le => self.u.order(&mut other.u, false),
            JumpOp::Slt => self.s.order(&mut other.s, true),
            _ => self.s.order(&mut other.s, false),
        }
        (self, other)
    }
}

impl<W: Word> Interval<W> {
    /// Narrows both to where this one is less than the other or, unless `strictly`, equal.
    fn order(&mut self, other: &mut Self, strictly: bool) {
        let (most, least) = if strictly {
            (other.max.previous(), self.min.next())
        } else {
            (other.max, self.min)
        };
        self.max = self.max.min(most);
        other.min = other.min.max(least);
    }
}
