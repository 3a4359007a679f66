use super::*;
use crate::isa::{AluOp, EndianOp, EndianSize, JumpOp, SignedSize, Width};
use crate::isa::{movsx, neg};
use proptest::prelude::*;

/// Numbers of all lengths, both signs, and those next to powers of two.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (any::<i64>(), 0u32..64).prop_map(|(x, by)| (x >> by).cast_unsigned()),
        (0u32..64, -2i64..=2).prop_map(|(bit, off)| (1u64 << bit).wrapping_add_signed(off)),
        (any::<u32>(), 0u64..4).prop_map(|(low, high)| high << 32 | u64::from(low)),
    ]
}

/// A scalar and one of its members: bits and bounds are generated around the member, each
/// of them optional, synced or not.
fn number() -> impl Strategy<Value = (Scalar, u64)> {
    let parts = (value(), value(), value(), value(), value(), value());
    (parts, any::<[bool; 4]>()).prop_map(|((x, mask, a, b, c, d), [bits, whole, half, sync])| {
        let mut number = Scalar::UNKNOWN;
        if bits {
            number.bits = Tnum {
                value: x & !mask,
                mask,
            };
        }
        if whole {
            let (u, s) = (around(x, a, b), around(x, c, d));
            (number.umin, number.umax) = (u.umin, u.umax);
            (number.smin, number.smax) = (s.smin, s.smax);
        }
        if half {
            let (u, s) = (around(x, a, d), around(x, b, c));
            (number.umin32, number.umax32) = (u.umin32, u.umax32);
            (number.smin32, number.smax32) = (s.smin32, s.smax32);
        }
        if sync {
            number = number.synced();
        }
        (number, x)
    })
}

/// The intervals from the smallest to the largest of three numbers, in each reading.
fn around(x: u64, a: u64, b: u64) -> Scalar {
    let (one, other) = (ends(x, a), ends(x, b));
    Scalar {
        bits: Tnum::UNKNOWN,
        umin: one.umin.min(other.umin),
        umax: one.umax.max(other.umax),
        smin: one.smin.min(other.smin),
        smax: one.smax.max(other.smax),
        umin32: one.umin32.min(other.umin32),
        umax32: one.umax32.max(other.umax32),
        smin32: one.smin32.min(other.smin32),
        smax32: one.smax32.max(other.smax32),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::sample::cases(5_000)))]

    #[test]
    fn arithmetic_holds((a, x) in number(), (b, y) in number(), by in 0u64..64) {
        prop_assert!(a.contains(x) && a.synced().contains(x) && a.synced().is_consistent());
        for &width in Width::ALL {
            for &op in AluOp::ALL {
                let number = Scalar::alu(op, width, &a, &b);
                prop_assert!(number.contains(op.eval(width, x, y)), "{op:?} {width:?} {number:x?}");
                let number = Scalar::alu(op, width, &a, &Scalar::constant(by));
                prop_assert!(number.contains(op.eval(width, x, by)), "{op:?} {width:?} {number:x?}");
            }
            prop_assert!(a.neg(width).contains(neg(width, x)));
            for &from in SignedSize::ALL {
                prop_assert!(a.movsx(width, from).contains(movsx(width, from, x)));
            }
        }
        for &size in EndianSize::ALL {
            for &op in EndianOp::ALL {
                prop_assert!(Scalar::endian(op, size, &a).contains(op.eval(size, x)));
            }
            let bytes = u32::from(size.bits()) / 8;
            prop_assert!(a.to_size(bytes).contains(EndianOp::ToLe.eval(size, x)));
        }
        prop_assert!(a.add_const(y.cast_signed()).contains(x.wrapping_add(y)));
    }

    #[test]
    fn branches_hold((a, x) in number(), (b, y) in number()) {
        for &width in Width::ALL {
            for &op in JumpOp::ALL {
                for (b, y) in [(b, y), (Scalar::constant(y), y), (a, x)] {
                    let holds = op.eval(width, x, y);
                    let taken = Scalar::is_taken(op, width, &a, &b);
                    prop_assert!(taken.is_none_or(|taken| taken == holds), "{op:?} {width:?}");
                    let (left, right) = Scalar::refine(op, width, &a, &b, holds);
                    prop_assert!(left.contains(x), "{op:?} {width:?}: {left:x?}");
                    prop_assert!(right.contains(y), "{op:?} {width:?}: {right:x?}");
                }
                let same = Scalar::refine_same(op, width, &a, op.eval(width, x, x));
                prop_assert!(same.contains(x), "{op:?} {width:?}: {same:x?}");
            }
        }
    }

    /// Constants stay constants, on the fast path too.
    #[test]
    fn constants_stay_constants(x in value(), y in value()) {
        let (a, b) = (Scalar::constant(x), Scalar::constant(y));
        for &width in Width::ALL {
            for &op in AluOp::ALL {
                let number = Scalar::alu(op, width, &a, &b);
                let expected = Scalar::constant(op.eval(width, x, y));
                let known = !number.is_unknown();
                prop_assert!(!known || number == expected, "{op:?} {width:?} {number:x?}");
                let bounded = Scalar::bounded(op, width, &a, &b);
                prop_assert_eq!(number, bounded.unwrap_or(Scalar::UNKNOWN));
            }
        }
    }
}
