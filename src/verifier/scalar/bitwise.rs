//! And, or, exclusive or: computed on the known bits, with bounds derived from them.

use super::Scalar;
use super::bounds::Bounds;
use super::interval::Interval;
use crate::isa::low32;
use crate::verifier::tnum::Tnum;

impl Scalar {
    /// Bitwise and: at least the bits known to be set, at most the smaller operand.
    pub(super) fn and(&self, other: &Self) -> Self {
        let bits = self.bits.and(other.bits);
        let wide = Interval::new(bits.min(), self.umax.min(other.umax));
        let half = Interval::new(low32(bits.min()), self.umax32.min(other.umax32));
        other.combined(bits, wide, half)
    }

    /// Bitwise or: at least the larger operand, at most the bits that may be set.
    pub(super) fn or(&self, other: &Self) -> Self {
        let bits = self.bits.or(other.bits);
        let wide = Interval::new(self.umin.max(other.umin), bits.max());
        let half = Interval::new(self.umin32.max(other.umin32), low32(bits.max()));
        other.combined(bits, wide, half)
    }

    /// Bitwise exclusive or: only from the known bits.
    pub(super) fn xor(&self, other: &Self) -> Self {
        let bits = self.bits.xor(other.bits);
        let wide = Interval::new(bits.min(), bits.max());
        let half = Interval::new(low32(bits.min()), low32(bits.max()));
        other.combined(bits, wide, half)
    }

    /// The result with these bits and intervals, not yet synced. If the result and this
    /// operand are constants (as a whole or in their lower halves), the intervals are
    /// ignored.
    fn combined(&self, bits: Tnum, wide: Interval<u64>, half: Interval<u32>) -> Self {
        if bits.is_const() && self.is_const() {
            return Self::constant(bits.value);
        }
        let half = if bits.low().is_const() && self.bits.low().is_const() {
            Bounds::constant(low32(bits.value))
        } else {
            Bounds::unsigned(half)
        };
        Self::of(bits, Bounds::unsigned(wide), half).within_bits()
    }
}
