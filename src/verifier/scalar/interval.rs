//! Intervals of integers of one width and sign, and their arithmetic.

use std::fmt::Debug;

/// The integers that intervals are made of: `u64`, `i64`, `u32` and `i32`.
pub(super) trait Word: Copy + Ord + Debug {
    /// The integer of the same width and the other sign.
    type Twin: Word<Twin = Self>;
    /// The smallest.
    const MIN: Self;
    /// The largest.
    const MAX: Self;
    /// The sign bit, as a bit of a register.
    const SIGN: u64 = 1 << (8 * size_of::<Self>() - 1);
    /// The same bits under the other sign.
    fn twin(self) -> Self::Twin;
    /// The low bits of a register.
    fn cut(bits: u64) -> Self;
    /// The sum, wrapping, and whether it did.
    fn overflowing_add(self, other: Self) -> (Self, bool);
    /// The difference, wrapping, and whether it did.
    fn overflowing_sub(self, other: Self) -> (Self, bool);
    /// The product, or none if it overflows.
    fn checked_mul(self, other: Self) -> Option<Self>;
    /// The next integer, wrapping.
    fn next(self) -> Self;
    /// The one before, wrapping.
    fn previous(self) -> Self;
}

macro_rules! word {
    ($($word:ident $twin:ident $cast:ident)*) => {$(
        impl Word for $word {
            type Twin = $twin;
            const MIN: Self = Self::MIN;
            const MAX: Self = Self::MAX;
            #[inline]
            fn twin(self) -> $twin {
                self.$cast()
            }
            #[inline]
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_possible_wrap,
                reason = "the low bits are what is asked for"
            )]
            fn cut(bits: u64) -> Self {
                bits as Self
            }
            #[inline]
            fn overflowing_add(self, other: Self) -> (Self, bool) {
                self.overflowing_add(other)
            }
            #[inline]
            fn overflowing_sub(self, other: Self) -> (Self, bool) {
                self.overflowing_sub(other)
            }
            #[inline]
            fn checked_mul(self, other: Self) -> Option<Self> {
                self.checked_mul(other)
            }
            #[inline]
            fn next(self) -> Self {
                self.wrapping_add(1)
            }
            #[inline]
            fn previous(self) -> Self {
                self.wrapping_sub(1)
            }
        }
    )*};
}
word! {
    u64 i64 cast_signed
    i64 u64 cast_unsigned
    u32 i32 cast_signed
    i32 u32 cast_unsigned
}

/// The integers from `min` to `max`, both included; none where `min > max`, as a
/// branch that can't be taken leaves behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Interval<W> {
    pub(super) min: W,
    pub(super) max: W,
}

impl<W: Word> Interval<W> {
    /// Any integer of the width.
    pub(super) const FULL: Self = Self {
        min: W::MIN,
        max: W::MAX,
    };

    #[inline]
    pub(super) const fn new(min: W, max: W) -> Self {
        Self { min, max }
    }

    #[inline]
    pub(super) const fn constant(value: W) -> Self {
        Self::new(value, value)
    }

    /// Whether it has no member.
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.min > self.max
    }

    #[inline]
    pub(super) fn contains(self, value: W) -> bool {
        self.min <= value && value <= self.max
    }

    /// Whether both ends lie in `other`'s.
    #[inline]
    pub(super) fn is_subset_of(self, other: Self) -> bool {
        other.min <= self.min && self.max <= other.max
    }

    /// The members of both.
    #[inline]
    #[must_use]
    pub(super) fn intersect(self, other: Self) -> Self {
        Self::new(self.min.max(other.min), self.max.min(other.max))
    }

    /// Whether all of `self` lies above all of `other`, or below.
    #[inline]
    pub(super) fn is_apart_from(self, other: Self) -> bool {
        self.min > other.max || self.max < other.min
    }

    /// The ends under the other sign, if they are in order there: then so is all
    /// between them.
    #[inline]
    pub(super) fn twin(self) -> Option<Interval<W::Twin>> {
        let twin = Interval::new(self.min.twin(), self.max.twin());
        (!twin.is_empty()).then_some(twin)
    }

    /// The sums, if none overflows; else anything.
    #[inline]
    #[must_use]
    pub(super) fn add(self, other: Self) -> Self {
        let (min, below) = self.min.overflowing_add(other.min);
        let (max, above) = self.max.overflowing_add(other.max);
        Self::unless(below | above, min, max)
    }

    /// The sums, if none overflows or all do; else anything.
    #[inline]
    #[must_use]
    pub(super) fn add_around(self, other: Self) -> Self {
        let (min, below) = self.min.overflowing_add(other.min);
        let (max, above) = self.max.overflowing_add(other.max);
        Self::unless(!below & above, min, max)
    }

    /// The differences, if none overflows; else anything.
    #[inline]
    #[must_use]
    pub(super) fn sub(self, other: Self) -> Self {
        let (min, below) = self.min.overflowing_sub(other.max);
        let (max, above) = self.max.overflowing_sub(other.min);
        Self::unless(below | above, min, max)
    }

    /// The differences, if none overflows or all do; else anything.
    #[inline]
    #[must_use]
    pub(super) fn sub_around(self, other: Self) -> Self {
        let (min, below) = self.min.overflowing_sub(other.max);
        let (max, above) = self.max.overflowing_sub(other.min);
        Self::unless(below & !above, min, max)
    }

    #[inline]
    fn unless(torn: bool, min: W, max: W) -> Self {
        if torn {
            Self::FULL
        } else {
            Self::new(min, max)
        }
    }

    /// The products of two intervals of which neither has negative members, if none
    /// overflows.
    #[inline]
    pub(super) fn mul_ends(self, other: Self) -> Option<Self> {
        Some(Self::new(
            self.min.checked_mul(other.min)?,
            self.max.checked_mul(other.max)?,
        ))
    }

    /// The products if none overflows: the extremes are at the corners.
    #[inline]
    pub(super) fn mul_corners(self, other: Self) -> Option<Self> {
        let [a, b, c, d] = [
            self.min.checked_mul(other.min)?,
            self.min.checked_mul(other.max)?,
            self.max.checked_mul(other.min)?,
            self.max.checked_mul(other.max)?,
        ];
        Some(Self::new(a.min(b).min(c.min(d)), a.max(b).max(c.max(d))))
    }

    /// Without `value`, where that is one of the ends.
    #[inline]
    #[must_use]
    pub(super) fn without(self, value: W) -> Self {
        Self::new(
            if self.min == value {
                value.next()
            } else {
                self.min
            },
            if self.max == value {
                value.previous()
            } else {
                self.max
            },
        )
    }
}
