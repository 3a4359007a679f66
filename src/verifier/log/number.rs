//! Scalars and their bounds in the log's notation: small numbers in decimal, others in
//! hexadecimal. Equal bounds share one number; unlimited bounds are omitted.

use std::fmt::{self, Display};

use crate::verifier::scalar::Scalar;

/// A number printed as unsigned (`verbose_unum`).
pub(super) struct Unsigned(pub u64);

impl Display for Unsigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if u16::try_from(self.0).is_ok() {
            write!(f, "{}", self.0)
        } else {
            write!(f, "{:#x}", self.0)
        }
    }
}

/// A number printed as signed (`verbose_snum`).
pub(super) struct Signed(pub i64);

impl Display for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if i16::try_from(self.0).is_ok() {
            write!(f, "{}", self.0)
        } else {
            write!(f, "{:#x}", self.0)
        }
    }
}

/// A bound: its name, and its value unless it is unlimited.
struct Bound {
    name: &'static str,
    number: Option<u64>,
}

impl Bound {
    fn unsigned(name: &'static str, number: u64, widest: u64) -> Self {
        let number = (number != widest).then_some(number);
        Self { name, number }
    }

    fn signed(name: &'static str, number: i64, widest: i64) -> Self {
        Self::unsigned(name, number.cast_unsigned(), widest.cast_unsigned())
    }

    /// A 32-bit bound shares the number of a 64-bit one if both print the same: in decimal
    /// they do, in hexadecimal the sign is not extended.
    fn signed32(name: &'static str, number: i32, widest: i32) -> Self {
        let printed = match i16::try_from(number) {
            Ok(small) => i64::from(small).cast_unsigned(),
            Err(_) => u64::from(number.cast_unsigned()),
        };
        let number = (number != widest).then_some(printed);
        Self { name, number }
    }

    fn is_signed(&self) -> bool {
        self.name.starts_with('s')
    }

    fn is_negative(&self) -> bool {
        self.is_signed() && self.number.is_some_and(|number| number.cast_signed() < 0)
    }

    fn prints_like(&self, other: &Self) -> bool {
        self.number == other.number && self.is_negative() == other.is_negative()
    }
}

/// The bounds of a scalar, comma-separated (`print_scalar_ranges`). Minima are grouped with
/// minima, maxima with maxima.
pub(super) fn ranges(
    f: &mut fmt::Formatter<'_>,
    scalar: &Scalar,
    separator: &mut &str,
) -> fmt::Result {
    let mut bounds = [
        Bound::signed("smin", scalar.smin, i64::MIN),
        Bound::signed("smax", scalar.smax, i64::MAX),
        Bound::unsigned("umin", scalar.umin, 0),
        Bound::unsigned("umax", scalar.umax, u64::MAX),
        Bound::signed32("smin32", scalar.smin32, i32::MIN),
        Bound::signed32("smax32", scalar.smax32, i32::MAX),
        Bound::unsigned("umin32", scalar.umin32.into(), 0),
        Bound::unsigned("umax32", scalar.umax32.into(), u32::MAX.into()),
    ];
    let mut rest = &mut bounds[..];
    while let Some((bound, later)) = rest.split_first_mut() {
        if let Some(number) = bound.number {
            write!(f, "{}{}=", std::mem::replace(separator, ","), bound.name)?;
            // Minima and maxima alternate: skip every second bound.
            for twin in later.iter_mut().skip(1).step_by(2) {
                if twin.prints_like(bound) {
                    twin.number = None;
                    write!(f, "{}=", twin.name)?;
                }
            }
            if bound.is_signed() {
                Signed(number.cast_signed()).fmt(f)?;
            } else {
                Unsigned(number).fmt(f)?;
            }
        }
        rest = later;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Text(Scalar);

    impl Display for Text {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            ranges(f, &self.0, &mut "")
        }
    }

    #[test]
    fn the_small_are_in_decimal() {
        let unsigned = [0, 65535, 65536, u64::MAX].map(|n| Unsigned(n).to_string());
        assert_eq!(unsigned, ["0", "65535", "0x10000", "0xffffffffffffffff"]);
        let signed = [-32768, -32769, 32767, 32768].map(|n| Signed(n).to_string());
        assert_eq!(signed, ["-32768", "0xffffffffffff7fff", "32767", "0x8000"]);
    }

    #[test]
    fn the_widest_bounds_say_nothing() {
        assert_eq!(Text(Scalar::UNKNOWN).to_string(), "");
    }

    #[test]
    fn equal_bounds_share_their_number() {
        let byte = Scalar {
            umin: 0,
            umax: 255,
            smin: 0,
            smax: 255,
            umin32: 0,
            umax32: 255,
            smin32: 0,
            smax32: 255,
            ..Scalar::UNKNOWN
        };
        assert_eq!(
            Text(byte).to_string(),
            "smin=smin32=0,smax=umax=smax32=umax32=255"
        );
    }

    /// In decimal, -655 prints the same at any width; as unsigned it differs, and in
    /// hexadecimal the widths differ.
    #[test]
    fn the_sign_tells_numbers_apart() {
        let below = Scalar {
            smin: -655,
            smax: -40000,
            umin: (-655_i64).cast_unsigned(),
            smin32: -655,
            smax32: -40000,
            ..Scalar::UNKNOWN
        };
        assert_eq!(
            Text(below).to_string(),
            "smin=smin32=-655,smax=0xffffffffffff63c0,umin=0xfffffffffffffd71,smax32=0xffff63c0"
        );
    }
}
