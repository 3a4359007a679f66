use super::*;
use crate::isa::{JumpOp, Width};

fn assert_sound(op: JumpOp, width: Width, a: &Set, b: &Set) {
    let taken = Scalar::is_taken(op, width, &a.number, &b.number);
    let edges = [false, true].map(|taken| Scalar::refine(op, width, &a.number, &b.number, taken));
    for &x in &a.members {
        for &y in &b.members {
            let holds = op.eval(width, x, y);
            let what = || {
                format!(
                    "{op:?} {width:?} of {x:#x} in {:x?}, {y:#x} in {:x?}",
                    a.number, b.number
                )
            };
            assert!(taken.is_none_or(|taken| taken == holds), "{}", what());
            let (left, right) = &edges[usize::from(holds)];
            assert!(left.contains(x), "{}: left {left:x?}", what());
            assert!(right.contains(y), "{}: right {right:x?}", what());
            assert!(left.is_consistent() && right.is_consistent(), "{}", what());
        }
    }
}

fn assert_all_sound(a: &Set, b: &Set) {
    for &op in JumpOp::ALL {
        for &width in Width::ALL {
            assert_sound(op, width, a, b);
        }
    }
}

#[test]
fn two_sets_of_one_place() {
    for window in windows(5) {
        let all = sets(&window);
        for a in all.iter().step_by(2) {
            for b in all.iter().step_by(151) {
                assert_all_sound(a, b);
                assert_all_sound(b, a);
            }
        }
    }
}

#[test]
fn two_sets_of_different_places() {
    let all: Vec<Set> = windows(3).iter().flat_map(|window| sets(window)).collect();
    for a in &all {
        for b in all.iter().step_by(5) {
            assert_all_sound(a, b);
        }
    }
}

#[test]
fn a_number_and_itself() {
    for window in windows(5) {
        for Set { number, members } in &sets(&window) {
            for &op in JumpOp::ALL {
                for &width in Width::ALL {
                    for &x in members {
                        let holds = op.eval(width, x, x);
                        let edge = Scalar::refine_same(op, width, number, holds);
                        assert!(edge.contains(x), "{op:?} {width:?} {x:#x} in {number:x?}");
                    }
                }
            }
        }
    }
}

/// Comparisons of constants have the outcome of the instruction.
#[test]
fn constants_are_decided() {
    for window in windows(4) {
        for (x, y) in pairs(&window) {
            let (a, b) = (Scalar::constant(x), Scalar::constant(y));
            for &op in JumpOp::ALL {
                for &width in Width::ALL {
                    let taken = Scalar::is_taken(op, width, &a, &b);
                    assert_eq!(taken, Some(op.eval(width, x, y)));
                }
            }
        }
    }
}
