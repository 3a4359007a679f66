//! The unsigned and the signed interval of a scalar of one width.

use super::interval::{Interval, Word};
use crate::verifier::tnum::Tnum;

/// The intervals of a number read as unsigned and as signed. `U` is `u64` or `u32`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bounds<U: Word> {
    pub(super) u: Interval<U>,
    pub(super) s: Interval<U::Twin>,
}

impl<U: Word> Bounds<U> {
    /// Any number.
    pub(super) const FULL: Self = Self {
        u: Interval::FULL,
        s: Interval::FULL,
    };

    #[inline]
    pub(super) fn constant(value: U) -> Self {
        Self {
            u: Interval::constant(value),
            s: Interval::constant(value.twin()),
        }
    }

    /// An unsigned interval. It is the signed interval as well, unless it crosses the sign.
    #[inline]
    pub(super) fn unsigned(u: Interval<U>) -> Self {
        Self {
            u,
            s: u.twin().unwrap_or(Interval::FULL),
        }
    }

    #[inline]
    pub(super) fn contains(self, value: U) -> bool {
        self.u.contains(value) && self.s.contains(value.twin())
    }

    #[inline]
    pub(super) fn is_subset_of(self, other: Self) -> bool {
        self.u.is_subset_of(other.u) && self.s.is_subset_of(other.s)
    }

    /// Whether no number is in both, by one of the two intervals.
    #[inline]
    pub(super) fn is_apart_from(self, other: Self) -> bool {
        self.u.is_apart_from(other.u) || self.s.is_apart_from(other.s)
    }

    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.u.is_empty() || self.s.is_empty()
    }

    #[inline]
    #[must_use]
    pub(super) fn intersect(self, other: Self) -> Self {
        Self {
            u: self.u.intersect(other.u),
            s: self.s.intersect(other.s),
        }
    }

    /// Narrowed to the smallest and largest number that agree with the known bits.
    #[inline]
    #[must_use]
    pub(super) fn within(self, bits: Tnum) -> Self {
        let (least, most) = (U::cut(bits.min()), U::cut(bits.max()));
        // The sign bit makes a number negative: it is set in the minimum if it may be, and
        // in the maximum only if it must be.
        let signed_least = U::cut(bits.value | bits.mask & U::SIGN);
        let signed_most = U::cut(bits.value | bits.mask & !U::SIGN);
        self.intersect(Self {
            u: Interval::new(least, most),
            s: Interval::new(signed_least.twin(), signed_most.twin()),
        })
    }

    /// Narrows each of the two intervals by the other.
    #[inline]
    #[must_use]
    pub(super) fn agreed(mut self) -> Self {
        if let Some(same) = self.u.twin() {
            self.s = self.s.intersect(same);
        }
        if let Some(same) = self.s.twin() {
            self.u = self.u.intersect(same);
        } else if self.u.max < self.s.min.twin() {
            // Signed, the number is in [min, -1] or in [0, max]; the unsigned interval
            // excludes the former.
            self.s.min = self.u.min.twin();
            self.u.max = self.u.max.min(self.s.max.twin());
        } else if self.s.max.twin() < self.u.min {
            self.s.max = self.u.max.twin();
            self.u.min = self.u.min.max(self.s.min.twin());
        }
        self
    }

    #[inline]
    #[must_use]
    pub(super) fn add(self, other: Self) -> Self {
        Self {
            u: self.u.add_around(other.u),
            s: self.s.add(other.s),
        }
    }

    #[inline]
    #[must_use]
    pub(super) fn sub(self, other: Self) -> Self {
        Self {
            u: self.u.sub_around(other.u),
            s: self.s.sub(other.s),
        }
    }

    #[inline]
    #[must_use]
    pub(super) fn mul(self, other: Self) -> Self {
        Self {
            u: self.u.mul_ends(other.u).unwrap_or(Interval::FULL),
            s: self.s.mul_corners(other.s).unwrap_or(Interval::FULL),
        }
    }
}
