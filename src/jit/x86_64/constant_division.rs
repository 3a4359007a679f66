//! Division by a constant as a multiplication: the quotient of every number below 2^bits is
//! a part of its product with the inverse (Granlund and Montgomery, "Division by Invariant
//! Integers using Multiplication", 1994).

/// The inverse of a divisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Inverse {
    /// The factor without bit number `bits`, which is set if `is_long`.
    pub factor: u64,
    pub is_long: bool,
    /// The right shift of the product, after its lowest `bits` are dropped.
    pub shift: u32,
}

impl Inverse {
    /// The inverse for numbers of 32 or 64 bits. The divisor must fit in `bits`, and is not
    /// a power of two.
    pub(super) const fn of(divisor: u64, bits: u32) -> Self {
        let divisor = divisor as u128;
        let one = 1u128 << bits;
        // 2^most is the first power that is not below the divisor.
        let most = 128 - (divisor - 1).leading_zeros();
        let mut shift = 0;
        while shift < most {
            let power = one << shift;
            let factor = power.div_ceil(divisor);
            if factor < one && factor * divisor - power <= 1 << shift {
                return Self {
                    factor: low(factor),
                    is_long: false,
                    shift,
                };
            }
            shift += 1;
        }
        let factor = one * ((1 << most) - divisor) / divisor + 1;
        Self {
            factor: low(factor),
            is_long: true,
            shift: most,
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "it is below 2^64")]
const fn low(number: u128) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quotient(number: u64, divisor: u64, bits: u32) -> u64 {
        let Inverse {
            factor,
            is_long,
            shift,
        } = Inverse::of(divisor, bits);
        let factor = u128::from(factor) + if is_long { 1 << bits } else { 0 };
        // In two steps: the product may have 129 bits.
        let high = (u128::from(number) * (factor >> 1)) + (u128::from(number) * (factor & 1) / 2);
        u64::try_from(high >> (bits - 1) >> shift).unwrap()
    }

    proptest! {
        #[test]
        fn of_all_numbers(number in any::<u64>(), divisor in 3..=u64::MAX, cut in 0..64u32) {
            let divisor = (divisor >> cut).max(3);
            prop_assume!(!divisor.is_power_of_two());
            for number in [number, number / divisor * divisor, u64::MAX, divisor - 1, divisor] {
                prop_assert_eq!(quotient(number, divisor, 64), number / divisor);
                let (number, divisor) = (number & 0xffff_ffff, divisor & 0xffff_ffff);
                if divisor > 2 && !divisor.is_power_of_two() {
                    prop_assert_eq!(quotient(number, divisor, 32), number / divisor);
                    let below = number - (number + 1) % divisor.min(number + 1);
                    prop_assert_eq!(quotient(below, divisor, 32), below / divisor);
                }
            }
        }
    }

    #[test]
    fn some_are_long() {
        assert!(Inverse::of(7, 32).is_long && Inverse::of(7, 64).is_long);
        assert!(!Inverse::of(10, 32).is_long && !Inverse::of(10, 64).is_long);
    }
}
