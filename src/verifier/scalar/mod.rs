//! Scalars: the possible values of a register that doesn't hold a pointer.
//!
//! A [`Scalar`] has the known bits of a 64-bit number and four intervals: unsigned and
//! signed, of the whole number and of its lower half. A number is a member if it agrees
//! with all five ([`Scalar::contains`]). Each of the five is as narrow as the kernel's,
//! because they are refined by each other ([`Scalar::synced`]).
//!
//! Every function returns exactly what the one in Linux 6.18 returns
//! (`kernel/bpf/verifier.c`): a narrower result would accept programs that the kernel
//! rejects, a wider one would reject programs that it accepts, and both would show in the
//! log. This includes inconsistent results on branches that can't be taken
//! ([`Scalar::is_consistent`]).

mod alu;
mod bitwise;
mod bounds;
mod compare;
mod extend;
mod interval;
mod refine;
mod shift;
mod sync;

#[cfg(test)]
mod tests;

use self::bounds::Bounds;
use self::interval::Interval;
use super::tnum::Tnum;
use crate::isa::low32;

/// A set of 64-bit numbers, given by known bits and bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scalar {
    /// The known bits; the kernel's `var_off`.
    pub bits: Tnum,
    /// The minimum, unsigned.
    pub umin: u64,
    /// The maximum, unsigned.
    pub umax: u64,
    /// The minimum, signed.
    pub smin: i64,
    /// The maximum, signed.
    pub smax: i64,
    /// The minimum of the lower half, unsigned.
    pub umin32: u32,
    /// The maximum of the lower half, unsigned.
    pub umax32: u32,
    /// The minimum of the lower half, signed.
    pub smin32: i32,
    /// The maximum of the lower half, signed.
    pub smax32: i32,
}

impl Scalar {
    /// Any number.
    pub const UNKNOWN: Self = Self {
        bits: Tnum::UNKNOWN,
        umin: u64::MIN,
        umax: u64::MAX,
        smin: i64::MIN,
        smax: i64::MAX,
        umin32: u32::MIN,
        umax32: u32::MAX,
        smin32: i32::MIN,
        smax32: i32::MAX,
    };

    /// Zero.
    pub const ZERO: Self = Self::constant(0);

    /// The scalar with one member.
    #[must_use]
    pub const fn constant(value: u64) -> Self {
        let low = low32(value);
        Self {
            bits: Tnum::constant(value),
            umin: value,
            umax: value,
            smin: value.cast_signed(),
            smax: value.cast_signed(),
            umin32: low,
            umax32: low,
            smin32: low.cast_signed(),
            smax32: low.cast_signed(),
        }
    }

    /// The numbers from `umin` to `umax`, unsigned.
    #[must_use]
    pub fn range(umin: u64, umax: u64) -> Self {
        Self {
            umin,
            umax,
            ..Self::UNKNOWN
        }
        .synced()
    }

    /// Whether every bit is known.
    #[must_use]
    #[inline]
    pub const fn is_const(&self) -> bool {
        self.bits.is_const()
    }

    /// The value, if every bit is known.
    #[must_use]
    #[inline]
    pub const fn value(&self) -> Option<u64> {
        if self.is_const() {
            Some(self.bits.value)
        } else {
            None
        }
    }

    /// The value, if the bits and all bounds agree on it. (For an inconsistent scalar, the
    /// kernel uses only the bits.)
    #[inline]
    fn exact(&self) -> Option<u64> {
        let value = self.value()?;
        // Without a branch for each bound.
        let wide = (self.umin ^ value)
            | (self.umax ^ value)
            | (self.smin.cast_unsigned() ^ value)
            | (self.smax.cast_unsigned() ^ value);
        let low = low32(value);
        let half = (self.umin32 ^ low)
            | (self.umax32 ^ low)
            | (self.smin32.cast_unsigned() ^ low)
            | (self.smax32.cast_unsigned() ^ low);
        (wide == 0 && half == 0).then_some(value)
    }

    /// Whether any number is possible.
    #[must_use]
    #[inline]
    pub const fn is_unknown(&self) -> bool {
        self.bits.is_unknown()
            && self.umin == u64::MIN
            && self.umax == u64::MAX
            && self.smin == i64::MIN
            && self.smax == i64::MAX
            && self.umin32 == u32::MIN
            && self.umax32 == u32::MAX
            && self.smin32 == i32::MIN
            && self.smax32 == i32::MAX
    }

    /// Whether `value` is a member: it agrees with the known bits and with all four
    /// intervals.
    #[must_use]
    pub fn contains(&self, value: u64) -> bool {
        self.bits.contains(value)
            && self.wide().contains(value)
            && self.half().contains(low32(value))
    }

    /// Whether `other` subsumes `self`: the bits and each interval are within those of
    /// `other` (`range_within` and `tnum_in`). This implies that each member of `self` is
    /// one of `other`.
    #[must_use]
    #[inline]
    pub fn is_subset_of(&self, other: &Self) -> bool {
        self.wide().is_subset_of(other.wide())
            && self.half().is_subset_of(other.half())
            && self.bits.is_subset_of(other.bits)
    }

    /// The intervals of the whole number.
    #[inline]
    const fn wide(&self) -> Bounds<u64> {
        Bounds {
            u: Interval::new(self.umin, self.umax),
            s: Interval::new(self.smin, self.smax),
        }
    }

    /// The intervals of the lower half.
    #[inline]
    const fn half(&self) -> Bounds<u32> {
        Bounds {
            u: Interval::new(self.umin32, self.umax32),
            s: Interval::new(self.smin32, self.smax32),
        }
    }

    /// A scalar with these bits and intervals, not yet synced.
    #[inline]
    const fn of(bits: Tnum, wide: Bounds<u64>, half: Bounds<u32>) -> Self {
        Self {
            bits,
            umin: wide.u.min,
            umax: wide.u.max,
            smin: wide.s.min,
            smax: wide.s.max,
            umin32: half.u.min,
            umax32: half.u.max,
            smin32: half.s.min,
            smax32: half.s.max,
        }
    }
}
