//! Truncation, and extension with zeros or with the sign.

use super::Scalar;
use super::bounds::Bounds;
use super::interval::Interval;
use crate::isa::{EndianOp, EndianSize, SignedSize, Width, low32};
use crate::verifier::tnum::Tnum;

impl Scalar {
    /// The lower half, zero-extended (`zext_32_to_64`); not yet synced.
    #[must_use]
    pub fn zext32(&self) -> Self {
        let half = self.half();
        let wide = Bounds {
            u: Interval::new(u64::from(self.umin32), u64::from(self.umax32)),
            s: if self.smin32 >= 0 && self.smax32 >= 0 {
                Interval::new(i64::from(self.smin32), i64::from(self.smax32))
            } else {
                Interval::new(0, i64::from(u32::MAX))
            },
        };
        Self::of(self.bits.low(), wide, half)
    }

    /// The low `bytes` bytes, fewer than 8, zero-extended: the result of a load of that
    /// size (`coerce_reg_to_size`).
    #[must_use]
    pub fn to_size(&self, bytes: u32) -> Self {
        let Some(keep) = low_bytes(bytes) else {
            return *self;
        };
        let u = if self.umin & !keep == self.umax & !keep {
            Interval::new(self.umin & keep, self.umax & keep)
        } else {
            Interval::new(0, keep)
        };
        let wide = Bounds {
            u,
            s: Interval::new(u.min.cast_signed(), u.max.cast_signed()),
        };
        let half = if bytes < 4 { Bounds::FULL } else { self.half() };
        let bits = Tnum {
            value: self.bits.value & keep,
            mask: self.bits.mask & keep,
        };
        Self::of(bits, wide, half).synced()
    }

    /// The low `bytes` bytes, fewer than 8, sign-extended: the result of a sign-extending
    /// load (`coerce_reg_to_size_sx`).
    #[must_use]
    pub fn to_size_signed(&self, bytes: u32) -> Self {
        let Some(keep) = low_bytes(bytes) else {
            return *self;
        };
        let extend = |value: u64| {
            let unused = keep.leading_zeros();
            (value << unused).cast_signed() >> unused
        };
        if let Some(value) = self.value() {
            return Self::constant(extend(value).cast_unsigned());
        }
        let (min, max) = (self.smin.cast_unsigned(), self.smax.cast_unsigned());
        if min & !keep == max & !keep {
            let (a, b) = (extend(min), extend(max));
            let ends = Interval::new(a.min(b), a.max(b));
            if let Some(u) = ends.twin() {
                let wide = Bounds { u, s: ends };
                return Self::of(Tnum::range(u.min, u.max), wide, wide.low());
            }
        }
        let most = (keep >> 1).cast_signed();
        let wide = Bounds {
            u: Interval::FULL,
            s: Interval::new(!most, most),
        };
        let half = Bounds {
            u: Interval::FULL,
            s: wide.low().s,
        };
        Self::of(Tnum::UNKNOWN, wide, half)
    }

    /// The low bits, sign-extended to the width; with 32 bits, the upper half is zero.
    #[must_use]
    pub fn movsx(&self, width: Width, from: SignedSize) -> Self {
        let bytes = u32::from(from.bits()) / 8;
        match width {
            Width::W64 => self.to_size_signed(bytes),
            Width::W32 => self.low_to_size_signed(bytes).zext32().synced(),
        }
    }

    /// The number in another byte order, truncated to the size. Converting to the CPU's own
    /// byte order keeps the intervals; the other keeps only the known bits.
    #[must_use]
    pub fn endian(op: EndianOp, size: EndianSize, dst: &Self) -> Self {
        let bytes = u32::from(size.bits()) / 8;
        if op == EndianOp::ToLe {
            return dst.to_size(bytes).synced();
        }
        let bits = Tnum {
            value: op.eval(size, dst.bits.value),
            mask: op.eval(size, dst.bits.mask),
        };
        Self::of(bits, Bounds::FULL, Bounds::FULL)
            .to_size(bytes)
            .synced()
    }

    /// Replaces the lower half; the upper half is not refined.
    #[must_use]
    pub fn with_low32(&self, low: &Self) -> Self {
        let high = !u64::from(u32::MAX);
        let wide = Bounds {
            u: Interval::new(self.umin & high, self.umax | !high),
            s: Interval::new(
                (self.smin.cast_unsigned() & high).cast_signed(),
                (self.smax.cast_unsigned() | !high).cast_signed(),
            ),
        };
        Self::of(self.bits.with_low(low.bits), wide, low.half()).synced()
    }

    /// Like [`Self::to_size_signed`] within the lower half (`coerce_subreg_to_size_sx`);
    /// the 64-bit intervals stay.
    fn low_to_size_signed(&self, bytes: u32) -> Self {
        let Some(keep) = low_bytes(bytes).map(low32) else {
            return *self;
        };
        let extend = |value: u32| {
            let unused = keep.leading_zeros();
            (value << unused).cast_signed() >> unused
        };
        if let Some(value) = self.value() {
            let low = extend(low32(value)).cast_unsigned();
            return Self::of(
                Tnum::constant(u64::from(low)),
                self.wide(),
                Bounds::constant(low),
            );
        }
        let (min, max) = (self.smin32.cast_unsigned(), self.smax32.cast_unsigned());
        if min & !keep == max & !keep {
            let (a, b) = (extend(min), extend(max));
            let ends = Interval::new(a.min(b), a.max(b));
            if let Some(u) = ends.twin() {
                let bits = Tnum::range(u64::from(u.min), u64::from(u.max));
                return Self::of(bits, self.wide(), Bounds { u, s: ends });
            }
        }
        let most = (keep >> 1).cast_signed();
        let half = Bounds {
            u: Interval::FULL,
            s: Interval::new(!most, most),
        };
        Self::of(Tnum::UNKNOWN.low(), self.wide(), half)
    }
}

impl Bounds<u64> {
    /// The lower halves of the ends.
    fn low(self) -> Bounds<u32> {
        let s = |end: i64| low32(end.cast_unsigned()).cast_signed();
        Bounds {
            u: Interval::new(low32(self.u.min), low32(self.u.max)),
            s: Interval::new(s(self.s.min), s(self.s.max)),
        }
    }
}

/// The mask of the low `bytes` bytes, for 1 to 7 bytes.
const fn low_bytes(bytes: u32) -> Option<u64> {
    match bytes {
        1..8 => Some((1 << (8 * bytes)) - 1),
        _ => None,
    }
}
