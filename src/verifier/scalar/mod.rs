//! The numbers of the verifier: what is known of a register that holds no pointer.
//!
//! A [`Scalar`] says of a 64-bit number which bits are known, and between which ends
//! it lies, read as unsigned and as signed, whole and by its low half. A number is a
//! member if it satisfies all five ([`Scalar::contains`]); each is kept as narrow as
//! the kernel's, by letting the five teach each other ([`Scalar::synced`]).
//!
//! Every function here is the kernel's of 6.18 (`kernel/bpf/verifier.c`), in result
//! and not only in spirit: a narrower result would accept what the kernel refuses, a
//! wider one the reverse, and the log shows either. That goes for results that
//! contradict themselves too, which a branch that can't be taken leaves behind
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

/// A number of which some bits and some bounds are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scalar {
    /// The known bits; the kernel's `var_off`.
    pub bits: Tnum,
    /// The least, unsigned.
    pub umin: u64,
    /// The greatest, unsigned.
    pub umax: u64,
    /// The least, signed.
    pub smin: i64,
    /// The greatest, signed.
    pub smax: i64,
    /// The least of the low half, unsigned.
    pub umin32: u32,
    /// The greatest of the low half, unsigned.
    pub umax32: u32,
    /// The least of the low half, signed.
    pub smin32: i32,
    /// The greatest of the low half, signed.
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

    /// Just this number.
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

    /// The number, if every bit is known.
    #[must_use]
    #[inline]
    pub const fn value(&self) -> Option<u64> {
        if self.is_const() {
            Some(self.bits.value)
        } else {
            None
        }
    }

    /// The number, if the bits and all ends agree on it. (Of a number that contradicts
    /// itself, the kernel keeps the bits alone.)
    #[inline]
    fn exact(&self) -> Option<u64> {
        let value = self.value()?;
        (*self == Self::constant(value)).then_some(value)
    }

    /// Whether nothing at all is known.
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

    /// Whether a state that was safe with `other` is with `self`: bits and intervals
    /// lie within `other`'s, each by itself. It is enough for the members of `self` to
    /// be members of `other`, and it is the kernel's rule (`range_within` and
    /// `tnum_in`).
    #[must_use]
    #[inline]
    pub fn is_subset_of(&self, other: &Self) -> bool {
        self.wide().is_subset_of(other.wide())
            && self.half().is_subset_of(other.half())
            && self.bits.is_subset_of(other.bits)
    }

    /// The intervals of the whole.
    #[inline]
    const fn wide(&self) -> Bounds<u64> {
        Bounds {
            u: Interval::new(self.umin, self.umax),
            s: Interval::new(self.smin, self.smax),
        }
    }

    /// The intervals of the low half.
    #[inline]
    const fn half(&self) -> Bounds<u32> {
        Bounds {
            u: Interval::new(self.umin32, self.umax32),
            s: Interval::new(self.smin32, self.smax32),
        }
    }

    /// A number with these bits and intervals, which have not yet met.
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
