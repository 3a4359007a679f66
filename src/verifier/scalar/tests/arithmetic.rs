use super::*;
use crate::isa::{AluOp, EndianOp, EndianSize, SignedSize, Width};
use crate::isa::{movsx, neg};
use crate::sample::step;

/// Each result must be a member of the scalar.
fn assert_holds(number: &Scalar, result: u64, what: impl Fn() -> String) {
    assert!(
        number.contains(result),
        "{}: {result:#x} is not in {number:x?}",
        what()
    );
    assert!(number.is_consistent(), "{}: {number:x?}", what());
}

fn assert_sound(op: AluOp, width: Width, a: &Set, b: &Set) {
    let number = Scalar::alu(op, width, &a.number, &b.number);
    let operands = || format!("{op:?} {width:?} of {:x?}, {:x?}", a.number, b.number);
    assert!(number.is_consistent(), "{}: {number:x?}", operands());
    for &x in &a.members {
        for &y in &b.members {
            let result = op.eval(width, x, y);
            assert!(
                number.contains(result),
                "{}: {x:#x} with {y:#x} gives {result:#x}, which is not in {number:x?}",
                operands()
            );
        }
    }
}

fn assert_all_sound(a: &Set, b: &Set) {
    for &op in AluOp::ALL {
        for &width in Width::ALL {
            assert_sound(op, width, a, b);
        }
    }
}

#[test]
fn two_sets_of_one_place() {
    for window in windows(5) {
        let all = sets(&window);
        for a in all.iter().step_by(step()) {
            for b in all.iter().step_by(199) {
                assert_all_sound(a, b);
            }
        }
    }
}

#[test]
fn two_sets_of_different_places() {
    let all: Vec<Set> = windows(3).iter().flat_map(|window| sets(window)).collect();
    for a in all.iter().step_by(step()) {
        for b in all.iter().step_by(3) {
            assert_all_sound(a, b);
        }
    }
}

#[test]
fn shifts_by_every_amount() {
    for window in windows(5) {
        for a in sets(&window).iter().step_by(step()) {
            for by in 0..64 {
                let b = Set {
                    number: Scalar::constant(by),
                    members: vec![by],
                };
                for op in [AluOp::Lsh, AluOp::Rsh, AluOp::Arsh] {
                    for &width in Width::ALL {
                        assert_sound(op, width, a, &b);
                    }
                }
            }
        }
    }
}

/// Windows in which the sign bit of some bytes changes.
fn byte_windows() -> Vec<Vec<u64>> {
    let middles = [7, 8, 15, 16, 31, 32, 63].map(|bit| window(1 << bit, 1, 6));
    let more = [
        window(0, 1 << 5, 6),
        window(1 << 31, 1 << 13, 6),
        window(u64::MAX << 31, 1, 6),
        window(0xabc_0000_0080, 1, 6),
    ];
    windows(6).into_iter().chain(middles).chain(more).collect()
}

#[test]
fn one_set() {
    // Making the sets takes most of the time.
    for window in byte_windows().into_iter().step_by(step()) {
        for Set { number, members } in &sets(&window) {
            let check = |result: &Scalar, what: &str, concrete: &dyn Fn(u64) -> u64| {
                for &x in members {
                    assert_holds(result, concrete(x), || {
                        format!("{what} of {x:#x} in {number:x?}")
                    });
                }
            };
            for &width in Width::ALL {
                check(&number.neg(width), "neg", &|x| neg(width, x));
                for &from in SignedSize::ALL {
                    check(&number.movsx(width, from), "movsx", &|x| {
                        movsx(width, from, x)
                    });
                }
            }
            for &from in SignedSize::ALL {
                let bytes = u32::from(from.size().bytes());
                let cut = u64::MAX >> (64 - 8 * bytes);
                check(&number.to_size(bytes), "to_size", &|x| x & cut);
                let signed = number.to_size_signed(bytes);
                check(&signed, "to_size_signed", &|x| movsx(Width::W64, from, x));
            }
            for &op in EndianOp::ALL {
                for &size in EndianSize::ALL {
                    let result = Scalar::endian(op, size, number);
                    check(&result, "endian", &|x| op.eval(size, x));
                }
            }
            check(&number.zext32().synced(), "zext32", &|x| {
                u64::from(low32(x))
            });
            for delta in [0, 1, -1, i64::from(i32::MIN), i64::MAX] {
                let result = number.add_const(delta);
                check(&result, "add_const", &|x| x.wrapping_add_signed(delta));
            }
        }
    }
}

#[test]
fn a_low_half_is_replaced() {
    let all: Vec<Set> = windows(3).iter().flat_map(|window| sets(window)).collect();
    for a in &all {
        for b in &all {
            let number = a.number.with_low32(&b.number);
            for &x in &a.members {
                for &y in &b.members {
                    let mixed = x & !u64::from(u32::MAX) | u64::from(low32(y));
                    assert_holds(&number, mixed, || format!("{x:#x} with {y:#x}"));
                }
            }
        }
    }
}

/// The two scalars of a fork together contain every member.
#[test]
fn a_fork_has_every_member() {
    let mut forks = 0;
    for window in windows(6) {
        for Set { number, members } in &sets(&window) {
            let Some((zero, ones)) = Scalar::fork(AluOp::And, number, &Scalar::constant(8)) else {
                continue;
            };
            forks += 1;
            for &x in members {
                assert!(
                    zero.contains(x) || ones.contains(x),
                    "{x:#x} in {number:x?}"
                );
            }
            assert_eq!(Scalar::fork(AluOp::Xor, number, &Scalar::ZERO), None);
            assert_eq!(Scalar::fork(AluOp::Or, number, &Scalar::UNKNOWN), None);
        }
    }
    assert!(forks > 3, "{forks}");
}
