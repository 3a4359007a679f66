//! Conditions of two scalars that always or never hold (`is_scalar_branch_taken`).

use super::Scalar;
use super::bounds::Bounds;
use super::interval::{Interval, Word};
use crate::isa::{JumpOp, Width};

impl Scalar {
    /// Whether the jump is taken, if that is known.
    #[must_use]
    pub fn is_taken(op: JumpOp, width: Width, dst: &Self, src: &Self) -> Option<bool> {
        match op {
            JumpOp::Eq => dst.equals(width, src),
            JumpOp::Ne => dst.equals(width, src).map(|equal| !equal),
            JumpOp::Set => dst.shares_bit(width, src),
            _ => match width {
                Width::W64 => dst.wide().ordered(op, src.wide()),
                Width::W32 => dst.half().ordered(op, src.half()),
            },
        }
    }

    /// Whether both are the same number, if that is known.
    fn equals(&self, width: Width, other: &Self) -> Option<bool> {
        let (a, b) = (self.bits.at(width), other.bits.at(width));
        if a.is_const() && b.is_const() {
            return Some(a.value == b.value);
        }
        let apart = match width {
            // The lower halves may differ although the whole intervals overlap.
            Width::W64 => {
                self.wide().is_apart_from(other.wide()) || self.half().is_apart_from(other.half())
            }
            Width::W32 => self.half().is_apart_from(other.half()),
        };
        (apart || !a.overlaps(b)).then_some(false)
    }

    /// Whether both have some set bit in common, for a constant operand.
    fn shares_bit(&self, width: Width, other: &Self) -> Option<bool> {
        let (mut a, mut b) = (self.bits.at(width), other.bits.at(width));
        if !b.is_const() {
            (a, b) = (b, a);
        }
        if !b.is_const() {
            None
        } else if a.min() & b.value != 0 {
            Some(true)
        } else if a.max() & b.value == 0 {
            Some(false)
        } else {
            None
        }
    }
}

impl<U: Word> Bounds<U> {
    /// Whether an order comparison holds, if that is known.
    fn ordered(self, op: JumpOp, other: Self) -> Option<bool> {
        match op {
            JumpOp::Gt => other.u.is_below(self.u),
            JumpOp::Ge => self.u.is_below(other.u).map(|below| !below),
            JumpOp::Lt => self.u.is_below(other.u),
            JumpOp::Le => other.u.is_below(self.u).map(|below| !below),
            JumpOp::Sgt => other.s.is_below(self.s),
            JumpOp::Sge => self.s.is_below(other.s).map(|below| !below),
            JumpOp::Slt => self.s.is_below(other.s),
            JumpOp::Sle => other.s.is_below(self.s).map(|below| !below),
            JumpOp::Eq | JumpOp::Ne | JumpOp::Set => None,
        }
    }
}

impl<W: Word> Interval<W> {
    /// Whether each member is less than each of `other`; `None` if this depends on the
    /// members.
    fn is_below(self, other: Self) -> Option<bool> {
        if self.max < other.min {
            Some(true)
        } else if self.min >= other.max {
            Some(false)
        } else {
            None
        }
    }
}
