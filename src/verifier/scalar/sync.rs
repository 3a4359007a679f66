//! Refines the known bits and the intervals of a scalar by each other.
//!
//! No member is lost. The order and the number of the steps are the kernel's
//! (`reg_bounds_sync`), because another order would give other bounds.

use super::Scalar;
use super::bounds::Bounds;
use super::interval::Interval;
use crate::isa::low32;
use crate::verifier::tnum::Tnum;

/// The bits of the upper half.
const HIGH: u64 = !(u32::MAX as u64);

impl Scalar {
    /// The same members, with bits and intervals refined by each other.
    #[must_use]
    pub fn synced(self) -> Self {
        // Neither a constant nor an unknown number can be refined.
        if self.exact().is_some() || self.is_unknown() {
            return self;
        }
        let mut number = self.within_bits();
        // Each round may use the results of the previous one.
        for _ in 0..3 {
            let before = number;
            number = number.deduced();
            if number == before {
                break;
            }
        }
        number.with_common_bits().within_bits()
    }

    /// Whether bits and intervals are consistent, by the kernel's checks
    /// (`reg_bounds_sanity_check`).
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        self.exact().is_some() || self.contradiction().is_none()
    }

    /// The kernel's line about an inconsistent scalar, found in `context` (`alu`,
    /// `true_reg1`, …): the error line of a program that is loaded with
    /// `BPF_F_TEST_REG_INVARIANTS`, otherwise a line of the log.
    #[must_use]
    pub fn violation(&self, context: &str) -> Option<String> {
        let words = self.contradiction()?;
        let Self {
            bits: Tnum { value, mask },
            umin,
            umax,
            smin,
            smax,
            umin32,
            umax32,
            smin32,
            smax32,
        } = self;
        Some(format!(
            "verifier bug: REG INVARIANTS VIOLATION ({context}): {words} \
             u64=[{umin:#x}, {umax:#x}] s64=[{smin:#x}, {smax:#x}] \
             u32=[{umin32:#x}, {umax32:#x}] s32=[{smin32:#x}, {smax32:#x}] \
             var_off=({value:#x}, {mask:#x})"
        ))
    }

    /// The kernel's text for an inconsistency.
    fn contradiction(&self) -> Option<&'static str> {
        let (wide, half) = (self.wide(), self.half());
        if wide.is_empty() || half.is_empty() {
            return Some("range bounds violation");
        }
        let low = self.bits.low();
        if self.is_const() && wide != Bounds::constant(self.bits.value) {
            return Some("const tnum out of sync with range bounds");
        }
        if low.is_const() && half != Bounds::constant(low32(low.value)) {
            return Some("const subreg tnum out of sync with range bounds");
        }
        None
    }

    /// The scalar, or only its bits if it is inconsistent: the kernel continues with this.
    #[must_use]
    pub fn sanitized(self) -> Self {
        if self.is_consistent() {
            self
        } else {
            Self::of(self.bits, Bounds::FULL, Bounds::FULL)
        }
    }

    /// The intersection, or a superset.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        Self::of(
            self.bits.intersect(other.bits),
            self.wide().intersect(other.wide()),
            self.half().intersect(other.half()),
        )
        .synced()
    }

    /// Narrows the intervals to the known bits (`__update_reg_bounds`). Gives a constant if
    /// only one number that agrees with the bits is in the unsigned interval.
    #[inline]
    pub(super) fn within_bits(self) -> Self {
        let (bits, wide) = (self.bits, self.wide().within(self.bits));
        let Interval { min, max } = wide.u;
        let next = bits.next_member(min);
        let only = if bits.contains(min) {
            (next > max).then_some(min)
        } else {
            let last = next == bits.max() || next <= max && bits.next_member(next) > max;
            last.then_some(next)
        };
        match only {
            Some(value) => Self::constant(value),
            None => Self::of(bits, wide, self.half().within(bits)),
        }
    }

    /// One round of deduction (`__reg_deduce_bounds`).
    fn deduced(self) -> Self {
        let wide = self.wide();
        let half = self
            .half()
            .in_low_of_unsigned(wide.u)
            .in_low_of_signed(wide.s)
            .in_low_across(wide.u.min, wide.u.max)
            .in_low_across(wide.s.min.cast_unsigned(), wide.s.max.cast_unsigned())
            .agreed();
        Self::of(self.bits, wide.agreed(), half).raised()
    }

    /// Narrows the 64-bit intervals to ends whose lower half is possible
    /// (`__reg_deduce_mixed_bounds`).
    fn raised(mut self) -> Self {
        let end = |bits: u64, low: u32| bits & HIGH | u64::from(low);
        let (min, max) = (self.umin32, self.umax32);
        self.umin = self.umin.max(end(self.umin, min));
        self.umax = self.umax.min(end(self.umax, max));
        let signed = |bits: i64, low| end(bits.cast_unsigned(), low).cast_signed();
        self.smin = self.smin.max(signed(self.smin, min));
        self.smax = self.smax.min(signed(self.smax, max));

        // A number that fits 32 signed bits and has a non-negative lower half equals that
        // half.
        let fits = i64::from(i32::MIN) <= self.smin && self.smax <= i64::from(i32::MAX);
        if self.smin32 >= 0 && fits {
            self.smin = i64::from(self.smin32);
            self.smax = i64::from(self.smax32);
            self.umin = self.smin.cast_unsigned();
            self.umax = self.smax.cast_unsigned();
            self.bits = self.bits.intersect(Tnum::range(self.umin, self.umax));
        }
        self
    }

    /// Makes the common leading bits of both ends known (`__reg_bound_offset`).
    fn with_common_bits(mut self) -> Self {
        let whole = self.bits.intersect(Tnum::range(self.umin, self.umax));
        let low = Tnum::range(u64::from(self.umin32), u64::from(self.umax32));
        self.bits = whole.with_low(whole.low().intersect(low));
        self
    }
}

impl Bounds<u32> {
    /// Narrowed to the lower halves of an unsigned interval, if the upper half is constant.
    fn in_low_of_unsigned(mut self, of: Interval<u64>) -> Self {
        if of.min >> 32 == of.max >> 32 {
            self.u = self
                .u
                .intersect(Interval::new(low32(of.min), low32(of.max)));
            self.in_signed_low(of.min, of.max)
        } else {
            self
        }
    }

    /// Narrowed to the lower halves of a signed interval, if the upper half is constant.
    fn in_low_of_signed(mut self, of: Interval<i64>) -> Self {
        let (min, max) = (of.min.cast_unsigned(), of.max.cast_unsigned());
        if min >> 32 == max >> 32 {
            let low = Interval::new(low32(min), low32(max));
            if !low.is_empty() {
                self.u = self.u.intersect(low);
            }
            self.in_signed_low(min, max)
        } else {
            self
        }
    }

    /// Narrowed to the lower halves from `min` to `max` if their upper halves are
    /// consecutive and the lower half crosses zero, from negative through -1 and 0.
    fn in_low_across(mut self, min: u64, max: u64) -> Self {
        let follows = low32(min >> 32).wrapping_add(1) == low32(max >> 32);
        let low = Interval::new(low32(min).cast_signed(), low32(max).cast_signed());
        if follows && low.min < 0 && low.max >= 0 {
            self.s = self.s.intersect(low);
        }
        self
    }

    /// Narrowed to the lower halves of `min` and `max`, if they are in signed order.
    fn in_signed_low(mut self, min: u64, max: u64) -> Self {
        let low = Interval::new(low32(min).cast_signed(), low32(max).cast_signed());
        if !low.is_empty() {
            self.s = self.s.intersect(low);
        }
        self
    }
}
