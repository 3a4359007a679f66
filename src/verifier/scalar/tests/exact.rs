//! Results that are exactly these: soundness alone would allow wider ones, for which the kernel's
//! verdicts and counts are others.

use super::super::bounds::Bounds;
use super::super::interval::Interval;
use super::super::{Scalar, low32};
use crate::isa::{AluOp, Width};
use crate::verifier::tnum::Tnum;

/// A scalar whose 64-bit intervals are these and nothing else is known.
fn wide(u: (u64, u64), s: (i64, i64)) -> Scalar {
    Scalar {
        umin: u.0,
        umax: u.1,
        smin: s.0,
        smax: s.1,
        ..Scalar::UNKNOWN
    }
}

/// Sets one of the eight bounds.
fn set_bound(number: &mut Scalar, bound: usize, value: u64) {
    let low = low32(value);
    match bound {
        0 => number.umin = value,
        1 => number.umax = value,
        2 => number.smin = value.cast_signed(),
        3 => number.smax = value.cast_signed(),
        4 => number.umin32 = low,
        5 => number.umax32 = low,
        6 => number.smin32 = low.cast_signed(),
        _ => number.smax32 = low.cast_signed(),
    }
}

#[test]
fn a_constant_is_exact_if_all_bounds_agree() {
    for value in [0, 4, 1 << 31, u64::from(u32::MAX), 1 << 63, u64::MAX] {
        assert_eq!(Scalar::constant(value).exact(), Some(value));
    }
    for one in 0..8 {
        for other in 0..8 {
            let mut number = Scalar::constant(4);
            set_bound(&mut number, one, 3);
            set_bound(&mut number, other, 3);
            assert_eq!(number.exact(), None, "bounds {one} and {other}");
        }
    }
}

/// `maybe_fork_scalars`.
#[test]
fn a_mask_is_split_into_its_two_values() {
    let eight = Scalar::constant(8);
    let mask = wide((0, u64::MAX), (-1, 0));
    let values = (Scalar::ZERO, Scalar::constant(u64::MAX));
    for op in [AluOp::And, AluOp::Or] {
        assert_eq!(Scalar::fork(op, &mask, &eight), Some(values));
        let unknown = Scalar::fork(op, &mask, &Scalar::UNKNOWN);
        assert_eq!(unknown, None, "{op:?} with an unknown number");
    }
    assert_eq!(Scalar::fork(AluOp::Xor, &mask, &eight), None);
    for other in [(-1, 1), (0, 0), (-2, 0), (1, 0)] {
        let other = wide((0, u64::MAX), other);
        assert_eq!(Scalar::fork(AluOp::And, &other, &eight), None);
    }

    let half = Scalar {
        smin32: -1,
        smax32: 0,
        ..Scalar::UNKNOWN
    };
    let (zero, ones) = Scalar::fork(AluOp::And, &half, &eight).unwrap();
    for (value, low) in [(zero, 0), (ones, u32::MAX)] {
        assert_eq!(value.bits.low(), Tnum::constant(low.into()));
        assert_eq!((value.umin32, value.umax32), (low, low));
        let signed = low.cast_signed();
        assert_eq!((value.smin32, value.smax32), (signed, signed));
        assert_eq!((value.umin, value.umax), (0, u64::MAX), "the upper half");
    }
}

/// The kernel shifts by an amount only if bits and bounds agree on it.
#[test]
fn an_amount_is_known_if_bits_and_bounds_agree() {
    let number = Scalar::range(1, 3);
    let unknown = |width| Scalar::alu(AluOp::Lsh, width, &number, &Scalar::UNKNOWN);
    let by = |width, amount: &Scalar| Scalar::alu(AluOp::Lsh, width, &number, amount);
    for (width, bounds) in [(Width::W64, 0..4), (Width::W32, 4..8)] {
        let known = by(width, &Scalar::constant(2));
        assert_eq!((known.umin, known.umax), (4, 12));
        for bound in bounds {
            let mut amount = Scalar::constant(2);
            set_bound(&mut amount, bound, 1);
            assert_eq!(by(width, &amount), unknown(width), "bound {bound}");
        }
        let amount = Scalar {
            bits: Tnum::UNKNOWN,
            ..Scalar::constant(2)
        };
        assert_eq!(by(width, &amount), unknown(width), "bits");
    }
}

/// `coerce_reg_to_size`.
#[test]
fn a_shorter_load_keeps_bounds_within_its_size() {
    let byte = |number: Scalar| {
        let byte = number.to_size(1);
        (byte.umin, byte.umax)
    };
    assert_eq!(byte(Scalar::range(0x110, 0x120)), (0x10, 0x20));
    assert_eq!(byte(Scalar::range(0xf0, 0x110)), (0, 0xff));
    assert_eq!(byte(Scalar::range(0x110, 0x210)), (0, 0xff));
    // Bounds of the lower half are those of four bytes, not of fewer.
    let half = Scalar {
        smin32: -5,
        smax32: 5,
        ..Scalar::UNKNOWN
    };
    let signed = |bytes| {
        let number = half.to_size(bytes);
        (number.smin32, number.smax32)
    };
    assert_eq!(signed(4), (-5, 5));
    assert_eq!(signed(2), (0, 0xffff));
}

#[test]
fn the_lower_half_extended_has_its_bounds() {
    let number = Scalar::range(5, 10).zext32();
    assert_eq!((number.smin, number.smax), (5, 10));
    let half = Scalar {
        smin32: -5,
        smax32: 5,
        ..Scalar::UNKNOWN
    };
    let number = half.zext32();
    assert_eq!((number.smin, number.smax), (0, i64::from(u32::MAX)));
}

/// One of the two 64-bit intervals is enough to know the upper half.
#[test]
fn a_new_lower_half_leaves_the_upper_one() {
    let (ends, signed) = (
        (0x1_0000_0005, 0x1_0000_0010),
        (0x1_0000_0005, 0x1_0000_0010),
    );
    let low = Scalar::constant(7);
    for number in [
        wide(ends, (i64::MIN, i64::MAX)),
        wide((0, u64::MAX), signed),
    ] {
        assert_eq!(number.with_low32(&low), Scalar::constant(0x1_0000_0007));
    }
}

#[test]
fn a_move_copies_what_is_known() {
    let number = wide((5, 10), (i64::MIN, i64::MAX));
    let moved = Scalar::bounded(AluOp::Mov, Width::W64, &Scalar::UNKNOWN, &number);
    assert_eq!(moved, Some(number));
}

#[test]
fn a_number_is_in_both_intervals() {
    let bounds = Bounds::<u64> {
        u: Interval::new(0, 10),
        s: Interval::new(5, 20),
    };
    for (value, expected) in [(3, false), (7, true), (15, false)] {
        assert_eq!(bounds.contains(value), expected, "{value}");
    }
    assert!(!bounds.is_empty() && !Bounds::<u64>::FULL.is_empty());
    let (u, s) = (Interval::new(2, 1), Interval::new(2, 1));
    assert!(Bounds::<u64> { u, s: bounds.s }.is_empty());
    assert!(Bounds::<u64> { u: bounds.u, s }.is_empty());
}
