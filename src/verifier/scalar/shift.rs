//! Shifts by a known amount below the width.
//!
//! Bits that cross the middle invalidate the intervals of the lower half, which are derived
//! from the known bits again.

use super::Scalar;
use super::bounds::Bounds;
use super::interval::Interval;
use crate::isa::Width;

impl Scalar {
    /// Left shift, not yet synced.
    pub(super) fn shifted_left(&self, width: Width, by: u32) -> Self {
        let half = Bounds {
            u: match 31u32.checked_sub(by) {
                Some(room) if self.umax32 <= 1 << room => {
                    Interval::new(self.umin32 << by, self.umax32 << by)
                }
                _ => Interval::FULL,
            },
            s: Interval::FULL,
        };
        match width {
            Width::W32 => Self::of_low(self.bits.low().shl(by).low(), half),
            Width::W64 => {
                let wide = Bounds {
                    u: if self.umax > 1 << (63 - by) {
                        Interval::FULL
                    } else {
                        Interval::new(self.umin << by, self.umax << by)
                    },
                    // Followed by `s>>= 32`, this is how compilers sign-extend.
                    s: if by == 32 {
                        let up = |low: i32| i64::from(low) << 32;
                        Interval::new(up(self.smin32), up(self.smax32))
                    } else {
                        Interval::FULL
                    },
                };
                Self::of(self.bits.shl(by), wide, half).within_bits()
            }
        }
    }

    /// Logical right shift, not yet synced.
    pub(super) fn shifted_right(&self, width: Width, by: u32) -> Self {
        match width {
            Width::W32 => {
                let half = Bounds {
                    u: Interval::new(self.umin32 >> by, self.umax32 >> by),
                    s: Interval::FULL,
                };
                Self::of_low(self.bits.low().shr(by), half)
            }
            Width::W64 => {
                let wide = Bounds {
                    u: Interval::new(self.umin >> by, self.umax >> by),
                    s: Interval::FULL,
                };
                Self::of(self.bits.shr(by), wide, Bounds::FULL).within_bits()
            }
        }
    }

    /// Arithmetic right shift, not yet synced.
    pub(super) fn shifted_right_signed(&self, width: Width, by: u32) -> Self {
        let bits = self.bits.sar(by, width);
        match width {
            Width::W32 => {
                let half = Bounds {
                    u: Interval::FULL,
                    s: Interval::new(self.smin32 >> by, self.smax32 >> by),
                };
                Self::of_low(bits, half)
            }
            Width::W64 => {
                let wide = Bounds {
                    u: Interval::FULL,
                    s: Interval::new(self.smin >> by, self.smax >> by),
                };
                Self::of(bits, wide, Bounds::FULL).within_bits()
            }
        }
    }

    /// A 32-bit result: the whole is unknown yet.
    fn of_low(bits: crate::verifier::tnum::Tnum, half: Bounds<u32>) -> Self {
        Self::of(bits, Bounds::FULL, half.within(bits))
    }
}
