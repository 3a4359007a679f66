//! Tristate numbers: for each bit of a `u64`, whether it is 0, 1 or unknown.
//!
//! A tnum is the set of all numbers that agree with its known bits ([`Tnum::contains`]).
//! There is no empty tnum: the intersection of two that disagree holds arbitrary numbers,
//! as in the kernel (`kernel/bpf/tnum.c`). Addition and multiplication are those of "Sound,
//! precise, and fast abstract interpretation with tristate numbers" (CGO 2022), as refined
//! by Linux 6.18.

use std::fmt;

use crate::isa::Width;

/// A number of which some bits are known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tnum {
    /// The known bits; zero where a bit is unknown.
    pub value: u64,
    /// One where a bit is unknown.
    pub mask: u64,
}

/// The largest number that the kernel's log prints in decimal.
const DECIMAL_MAX: u64 = u16::MAX as u64;
/// The lower half.
const LOW: u64 = u32::MAX as u64;

impl Tnum {
    /// Any number.
    pub const UNKNOWN: Self = Self {
        value: 0,
        mask: u64::MAX,
    };

    /// The tnum of one number.
    #[must_use]
    pub const fn constant(value: u64) -> Self {
        Self { value, mask: 0 }
    }

    /// The narrowest tnum that contains every number from `min` to `max`: their common
    /// leading bits are known.
    #[must_use]
    pub const fn range(min: u64, max: u64) -> Self {
        let mask = match (min ^ max).leading_zeros() {
            64 => 0,
            common => u64::MAX >> common,
        };
        Self {
            value: min & !mask,
            mask,
        }
    }

    /// Whether every bit is known.
    #[must_use]
    pub const fn is_const(self) -> bool {
        self.mask == 0
    }

    /// Whether no bit is known.
    #[must_use]
    pub const fn is_unknown(self) -> bool {
        self.mask == u64::MAX
    }

    /// The smallest member, unsigned.
    #[must_use]
    pub const fn min(self) -> u64 {
        self.value
    }

    /// The largest member, unsigned.
    #[must_use]
    pub const fn max(self) -> u64 {
        self.value | self.mask
    }

    /// The smallest member above `number`; the largest member if there is none.
    #[must_use]
    pub const fn next_member(self, number: u64) -> u64 {
        if number >= self.max() {
            return self.max();
        }
        // `wrong` are the known bits in which `number` differs; only the highest decides.
        // Down to it, `number` begins like a member. If the member has a 1 there, the
        // member is already greater. Otherwise, and if `number` is a member, the unknown
        // bits above must count up by one. The other bits propagate the carry.
        let wrong = (number ^ self.value) & !self.mask;
        let below = match wrong.leading_zeros() {
            64 => 0,
            zeros => u64::MAX >> zeros,
        };
        let unknown = if wrong & self.value > wrong & number {
            number & !below
        } else {
            (number | !self.mask | below).wrapping_add(1)
        };
        unknown & self.mask | self.value
    }

    /// Whether `number` agrees with the known bits.
    #[must_use]
    pub const fn contains(self, number: u64) -> bool {
        number & !self.mask == self.value
    }

    /// Whether every member of `self` is one of `other`.
    #[must_use]
    pub const fn is_subset_of(self, other: Self) -> bool {
        self.mask & !other.mask == 0 && other.contains(self.value)
    }

    /// Whether some number may be a member of both: no known bit differs.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        (self.value ^ other.value) & !self.mask & !other.mask == 0
    }

    /// Whether every member is a multiple of `size`, a power of two or 0; for 0, always
    /// true.
    #[must_use]
    pub const fn is_aligned(self, size: u64) -> bool {
        size == 0 || self.max() & (size - 1) == 0
    }

    /// The intersection. A bit on which both disagree becomes 1.
    #[must_use]
    pub const fn intersect(self, other: Self) -> Self {
        Self::of(self.value | other.value, self.mask & other.mask)
    }

    /// The narrowest tnum that contains both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self::of(
            self.value & other.value,
            self.mask | other.mask | (self.value ^ other.value),
        )
    }

    /// The lower half, with the upper bits zero.
    #[must_use]
    pub const fn low(self) -> Self {
        self.truncate(32)
    }

    /// The low `bits` bits, with the others zero.
    #[must_use]
    pub const fn truncate(self, bits: u8) -> Self {
        let keep = match bits {
            0..=63 => (1 << bits) - 1,
            _ => u64::MAX,
        };
        Self {
            value: self.value & keep,
            mask: self.mask & keep,
        }
    }

    /// The upper half of `self` with the lower half of `low`.
    #[must_use]
    pub const fn with_low(self, low: Self) -> Self {
        Self {
            value: self.value & !LOW | low.value & LOW,
            mask: self.mask & !LOW | low.mask & LOW,
        }
    }

    /// The bits that an operation of this width uses.
    #[must_use]
    pub const fn at(self, width: Width) -> Self {
        self.truncate(width.bits())
    }

    /// A tnum with this mask; clears the unknown bits of the value.
    const fn of(value: u64, mask: u64) -> Self {
        Self {
            value: value & !mask,
            mask,
        }
    }

    /// The sum, wrapping: a bit is unknown where a carry may or may not arrive.
    #[must_use]
    pub const fn add(self, other: Self) -> Self {
        let least = self.value.wrapping_add(other.value);
        let most = least.wrapping_add(self.mask.wrapping_add(other.mask));
        Self::of(least, (most ^ least) | self.mask | other.mask)
    }

    /// The difference, wrapping: a bit is unknown where a borrow may or may not arrive.
    #[must_use]
    pub const fn sub(self, other: Self) -> Self {
        let middle = self.value.wrapping_sub(other.value);
        let most = middle.wrapping_add(self.mask);
        let least = middle.wrapping_sub(other.mask);
        Self::of(middle, (most ^ least) | self.mask | other.mask)
    }

    /// The negation, wrapping.
    #[must_use]
    pub const fn neg(self) -> Self {
        Self::constant(0).sub(self)
    }

    /// The product, wrapping: long multiplication. An unknown bit of `self` joins the sums
    /// with and without its term.
    #[must_use]
    pub const fn mul(self, other: Self) -> Self {
        let mut sum = Self::constant(0);
        let (mut bits, mut term) = (self, other);
        while bits.max() != 0 {
            if bits.value & 1 != 0 {
                sum = sum.add(term);
            } else if bits.mask & 1 != 0 {
                sum = sum.union(sum.add(term));
            }
            bits = bits.shr(1);
            term = term.shl(1);
        }
        sum
    }

    /// Bitwise and.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        let value = self.value & other.value;
        Self {
            value,
            mask: self.max() & other.max() & !value,
        }
    }

    /// Bitwise or.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        let value = self.value | other.value;
        Self {
            value,
            mask: (self.mask | other.mask) & !value,
        }
    }

    /// Bitwise exclusive or.
    #[must_use]
    pub const fn xor(self, other: Self) -> Self {
        Self::of(self.value ^ other.value, self.mask | other.mask)
    }

    /// Left shift, modulo 64.
    #[must_use]
    pub const fn shl(self, by: u32) -> Self {
        Self {
            value: self.value.wrapping_shl(by),
            mask: self.mask.wrapping_shl(by),
        }
    }

    /// Logical right shift, modulo 64.
    #[must_use]
    pub const fn shr(self, by: u32) -> Self {
        Self {
            value: self.value.wrapping_shr(by),
            mask: self.mask.wrapping_shr(by),
        }
    }

    /// Arithmetic right shift, modulo the width, filled with the sign bit, known or not.
    /// With 32 bits, the lower half is shifted and the upper half is zero.
    #[must_use]
    pub const fn sar(self, by: u32, width: Width) -> Self {
        // Move the sign to bit 63, shift, and move back.
        let up = 64 - width.bits() as u32;
        let by = by % width.bits() as u32;
        Self {
            value: self
                .value
                .wrapping_shl(up)
                .cast_signed()
                .wrapping_shr(by)
                .cast_unsigned()
                >> up,
            mask: self
                .mask
                .wrapping_shl(up)
                .cast_signed()
                .wrapping_shr(by)
                .cast_unsigned()
                >> up,
        }
        .at(width)
    }
}

impl fmt::Display for Tnum {
    /// Formats as the kernel does: a number, in decimal up to 65535, or `(value; mask)` in
    /// hex.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { value, mask: 0 } if value <= DECIMAL_MAX => write!(f, "{value}"),
            Self { value, mask: 0 } => write!(f, "{value:#x}"),
            Self { value, mask } => write!(f, "({value:#x}; {mask:#x})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::AluOp;
    use proptest::prelude::*;

    /// Every tnum of four bits, placed at the bottom, across the middle and at the top.
    fn small() -> Vec<Tnum> {
        let mut all = Vec::new();
        for place in [0, 30, 60] {
            for mask in 0..16u64 {
                for value in (0..16u64).filter(|value| value & mask == 0) {
                    all.push(Tnum { value, mask }.shl(place));
                }
            }
        }
        all
    }

    fn members(set: Tnum) -> Vec<u64> {
        // The next subset of a mask: counting in its bits only.
        let mut all = vec![set.value];
        let mut part = 0u64;
        loop {
            part = part.wrapping_sub(set.mask) & set.mask;
            if part == 0 {
                return all;
            }
            all.push(set.value | part);
        }
    }

    type Binary = fn(Tnum, Tnum) -> Tnum;
    const OPERATIONS: &[(AluOp, Binary)] = &[
        (AluOp::Add, Tnum::add),
        (AluOp::Sub, Tnum::sub),
        (AluOp::Mul, Tnum::mul),
        (AluOp::And, Tnum::and),
        (AluOp::Or, Tnum::or),
        (AluOp::Xor, Tnum::xor),
    ];

    #[test]
    fn arithmetic_contains_every_concrete_result() {
        let small = small();
        for &a in &small {
            for &b in &small {
                for (op, of_sets) in OPERATIONS {
                    let result = of_sets(a, b);
                    assert_eq!(result.value & result.mask, 0);
                    for x in members(a) {
                        for y in members(b) {
                            let number = op.eval64(x, y);
                            assert!(
                                result.contains(number),
                                "{a} {op:?} {b} = {result}: {number:#x}"
                            );
                        }
                    }
                }
            }
        }
    }

    /// Nothing smaller contains all results.
    #[test]
    fn sums_and_differences_are_the_narrowest() {
        let small: Vec<_> = small().into_iter().filter(|a| a.max() < 16).collect();
        for &a in &small {
            for &b in &small {
                for (op, of_sets) in &OPERATIONS[..2] {
                    let pairs = members(a).into_iter();
                    let pairs = pairs.flat_map(|x| members(b).into_iter().map(move |y| (x, y)));
                    let results = pairs.map(|(x, y)| Tnum::constant(op.eval64(x, y)));
                    assert_eq!(
                        Some(of_sets(a, b)),
                        results.reduce(Tnum::union),
                        "{a} {op:?} {b}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_lattice_is_that_of_sets() {
        let small = small();
        for &a in &small {
            for &b in &small {
                let both = members(a)
                    .into_iter()
                    .filter(|&x| b.contains(x))
                    .collect::<Vec<_>>();
                assert_eq!(a.overlaps(b), !both.is_empty());
                assert_eq!(a.is_subset_of(b), both.len() == members(a).len());
                if a.overlaps(b) {
                    assert_eq!(members(a.intersect(b)).len(), both.len());
                }
                let union = a.union(b);
                assert!(a.is_subset_of(union) && b.is_subset_of(union));
            }
        }
    }

    #[test]
    fn shifts_act_on_each_member() {
        for a in small() {
            for by in 0..64 {
                for x in members(a) {
                    assert!(a.shl(by).contains(x << by));
                    assert!(a.shr(by).contains(x >> by));
                    for width in [Width::W32, Width::W64] {
                        let number = AluOp::Arsh.eval(width, x, u64::from(by));
                        assert!(a.sar(by, width).contains(number));
                    }
                }
            }
        }
    }

    #[test]
    fn a_range_is_its_common_leading_bits() {
        for min in 0..32u64 {
            for max in min..32 {
                let set = Tnum::range(min, max);
                let narrowest = (min..=max).map(Tnum::constant).reduce(Tnum::union);
                assert_eq!(Some(set), narrowest);
            }
        }
        assert_eq!(Tnum::range(0, u64::MAX), Tnum::UNKNOWN);
        assert_eq!(Tnum::range(7, 7), Tnum::constant(7));
    }

    #[test]
    fn members_follow_each_other() {
        for a in small() {
            let mut all = members(a);
            all.sort_unstable();
            for &x in &all {
                for number in [x.wrapping_sub(1), x, x.wrapping_add(1), x ^ 8, x ^ 1 << 33] {
                    let next = all.iter().find(|&&member| member > number);
                    assert_eq!(
                        a.next_member(number),
                        *next.unwrap_or(&a.max()),
                        "{a} {number:#x}"
                    );
                }
            }
        }
        for mask in 0..64 {
            for value in (0..64).filter(|value| value & mask == 0) {
                let a = Tnum { value, mask };
                for number in 0..70 {
                    let next = (number + 1..64).find(|&next| a.contains(next));
                    assert_eq!(
                        a.next_member(number),
                        next.unwrap_or(a.max()),
                        "{a} {number}"
                    );
                }
            }
        }
    }

    #[test]
    fn text_is_the_kernel_s() {
        assert_eq!(Tnum::constant(65535).to_string(), "65535");
        assert_eq!(Tnum::constant(65536).to_string(), "0x10000");
        assert_eq!(Tnum::range(0, 255).to_string(), "(0x0; 0xff)");
    }

    proptest! {
        #[test]
        fn arithmetic_at_full_width(
            masks: [u64; 2], values: [u64; 2], parts: [u64; 2], which in 0..OPERATIONS.len()
        ) {
            let [a, b] = [0, 1].map(|i| Tnum::of(values[i], masks[i]));
            let (op, of_sets) = OPERATIONS[which];
            let [x, y] = [a.value | parts[0] & a.mask, b.value | parts[1] & b.mask];
            prop_assert!(of_sets(a, b).contains(op.eval64(x, y)));
            prop_assert_eq!(a.with_low(b).low(), b.low());
        }
    }
}
