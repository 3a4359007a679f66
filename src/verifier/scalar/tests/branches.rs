use super::*;
use crate::isa::{JumpOp, Width};
use crate::sample::step;

fn assert_sound(op: JumpOp, width: Width, a: &Set, b: &Set) {
    let taken = Scalar::is_taken(op, width, &a.number, &b.number);
    let edges = [false, true].map(|taken| Scalar::refine(op, width, &a.number, &b.number, taken));
    let operands = || format!("{op:?} {width:?} of {:x?}, {:x?}", a.number, b.number);
    let mut is_reached = [false; 2];
    for &x in &a.members {
        for &y in &b.members {
            let holds = op.eval(width, x, y);
            let (left, right) = &edges[usize::from(holds)];
            assert!(
                taken.is_none_or(|taken| taken == holds) && left.contains(x) && right.contains(y),
                "{}: {x:#x} with {y:#x}: taken {taken:?}, left {left:x?}, right {right:x?}",
                operands()
            );
            is_reached[usize::from(holds)] = true;
        }
    }
    for ((left, right), is_reached) in edges.iter().zip(is_reached) {
        let are_consistent = left.is_consistent() && right.is_consistent();
        assert!(are_consistent || !is_reached, "{}: {edges:x?}", operands());
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
        for a in all.iter().step_by(2 * step()) {
            for b in all.iter().step_by(401) {
                assert_all_sound(a, b);
                assert_all_sound(b, a);
            }
        }
    }
}

#[test]
fn two_sets_of_different_places() {
    let all: Vec<Set> = windows(3).iter().flat_map(|window| sets(window)).collect();
    for a in all.iter().step_by(step()) {
        for b in all.iter().step_by(5) {
            assert_all_sound(a, b);
        }
    }
}

#[test]
fn a_number_and_itself() {
    for window in windows(5) {
        for Set { number, members } in sets(&window).iter().step_by(step()) {
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
