//! Intervals of integers of one width and signedness, and their arithmetic.

use std::fmt::Debug;

/// The integer types of intervals: `u64`, `i64`, `u32` and `i32`.
pub(super) trait Word: Copy + Ord + Debug {
    /// The integer type of the same width and the other signedness.
    type Twin: Word<Twin = Self>;
    /// The smallest.
    const MIN: Self;
    /// The largest.
    const MAX: Self;
    /// The sign bit, as a bit of a register.
    const SIGN: u64 = 1 << (8 * size_of::<Self>() - 1);
    /// The same bits as the other type.
    fn twin(self) -> Self::Twin;
    /// The low bits of a register.
    fn cut(bits: u64) -> Self;
    /// The sum, wrapping, and whether it did.
    fn overflowing_add(self, other: Self) -> (Self, bool);
    /// The difference, wrapping, and whether it did.
    fn overflowing_sub(self, other: Self) -> (Self, bool);
    /// The product; `None` if it overflows.
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

/// The integers from `min` to `max`, both included. Empty if `min > max`, which happens on
/// branches that can't be taken.
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

    /// Whether it is empty.
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.min > self.max
    }

    #[inline]
    pub(super) fn contains(self, value: W) -> bool {
        self.min <= value && value <= self.max
    }

    /// Whether both ends are within `other`.
    #[inline]
    pub(super) fn is_subset_of(self, other: Self) -> bool {
        other.min <= self.min && self.max <= other.max
    }

    /// The intersection.
    #[inline]
    #[must_use]
    pub(super) fn intersect(self, other: Self) -> Self {
        Self::new(self.min.max(other.min), self.max.min(other.max))
    }

    /// Whether the two intervals have no common member.
    #[inline]
    pub(super) fn is_apart_from(self, other: Self) -> bool {
        self.min > other.max || self.max < other.min
    }

    /// The interval of the other signedness, if the ends keep their order.
    #[inline]
    pub(super) fn twin(self) -> Option<Interval<W::Twin>> {
        let twin = Interval::new(self.min.twin(), self.max.twin());
        (!twin.is_empty()).then_some(twin)
    }

    /// The interval of the sums, if none overflows; otherwise the full interval.
    #[inline]
    #[must_use]
    pub(super) fn add(self, other: Self) -> Self {
        let (min, below) = self.min.overflowing_add(other.min);
        let (max, above) = self.max.overflowing_add(other.max);
        Self::unless(below | above, min, max)
    }

    /// The interval of the sums, if none or all overflow; otherwise the full interval.
    #[inline]
    #[must_use]
    pub(super) fn add_around(self, other: Self) -> Self {
        let (min, below) = self.min.overflowing_add(other.min);
        let (max, above) = self.max.overflowing_add(other.max);
        Self::unless(!below & above, min, max)
    }

    /// The interval of the differences, if none overflows; otherwise the full interval.
    #[inline]
    #[must_use]
    pub(super) fn sub(self, other: Self) -> Self {
        let (min, below) = self.min.overflowing_sub(other.max);
        let (max, above) = self.max.overflowing_sub(other.min);
        Self::unless(below | above, min, max)
    }

    /// The interval of the differences, if none or all overflow; otherwise the full
    /// interval.
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

    /// The interval of the products of two non-negative intervals, if none overflows.
    #[inline]
    pub(super) fn mul_ends(self, other: Self) -> Option<Self> {
        Some(Self::new(
            self.min.checked_mul(other.min)?,
            self.max.checked_mul(other.max)?,
        ))
    }

    /// The interval of the products, if none overflows: the extremes are at the corners.
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

    /// Removes `value` if it is one of the ends.
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
