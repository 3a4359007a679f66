//! Results from the log of Linux 6.18.44 that differ in other versions.

use super::*;
use crate::isa::{AluOp, EndianOp, EndianSize, JumpOp, Width};

const W64: Width = Width::W64;

fn masked(mask: u64) -> Scalar {
    Scalar::alu(AluOp::And, W64, &Scalar::UNKNOWN, &Scalar::constant(mask))
}

/// A scalar on one branch of a comparison with a constant.
fn edge(op: JumpOp, number: &Scalar, value: u64, taken: bool) -> Scalar {
    Scalar::refine(op, W64, number, &Scalar::constant(value), taken).0
}

#[test]
fn one_number_is_left_between_bits_and_ends() {
    let number = edge(JumpOp::Ge, &masked(0x88), 9, true);
    assert_eq!((number.umin, number.umax, number.value()), (9, 0x88, None));
    assert_eq!(
        edge(JumpOp::Gt, &number, 0x80, false),
        Scalar::constant(0x80)
    );
    assert_eq!(
        edge(JumpOp::Gt, &number, 0x80, true),
        Scalar::constant(0x88)
    );
}

#[test]
fn a_number_is_not_known_to_be_itself() {
    let number = masked(0xff);
    assert_eq!(Scalar::is_taken(JumpOp::Eq, W64, &number, &number), None);
    let above = Scalar::refine_same(JumpOp::Gt, W64, &number, true);
    assert_eq!((above.umin, above.umax), (1, 254));
    let above = Scalar::refine_same(JumpOp::Gt, W64, &masked(1), true);
    assert_eq!(above, Scalar::constant(1));
}

#[test]
fn a_cleared_bit_leaves_the_ends_behind() {
    let number = edge(JumpOp::Ge, &masked(0x7fff), 8, true);
    assert_eq!((number.umin, number.umax), (8, 0x7fff));
    let number = edge(JumpOp::Set, &number, 0x1f, false);
    assert_eq!((number.umin, number.umax), (0, 0x7fe0));
}

#[test]
fn bytes_are_swapped_bit_by_bit() {
    let swapped = |op, size, number: Scalar| Scalar::endian(op, size, &number);
    let number = swapped(EndianOp::ToBe, EndianSize::B16, masked(0xff));
    assert_eq!((number.umax, number.bits.mask), (0xff00, 0xff00));
    let number = swapped(EndianOp::Bswap, EndianSize::B64, Scalar::constant(0x1234));
    assert_eq!(number.value(), Some(0x3412 << 48));
}

#[test]
fn quotients_are_unknown() {
    let (a, b) = (Scalar::constant(100), Scalar::constant(5));
    for op in [AluOp::Div, AluOp::Mod, AluOp::Sdiv, AluOp::Smod] {
        for &width in Width::ALL {
            assert!(Scalar::alu(op, width, &a, &b).is_unknown());
        }
    }
}

#[test]
fn negation_is_zero_minus() {
    let number = masked(0xff).neg(W64);
    assert_eq!((number.smin, number.smax), (-255, 0));
    let number = number.neg(Width::W32);
    assert_eq!((number.umin, number.umax, number.bits.mask), (0, 255, 255));
}

#[test]
fn a_choice_without_a_branch_forks() {
    let sign = Scalar::alu(AluOp::Arsh, W64, &Scalar::UNKNOWN, &Scalar::constant(63));
    let eight = Scalar::constant(8);
    let (zero, ones) = Scalar::fork(AluOp::And, &sign, &eight).unwrap();
    assert_eq!((zero.value(), ones.value()), (Some(0), Some(u64::MAX)));
    let low = Scalar::alu(
        AluOp::Arsh,
        Width::W32,
        &Scalar::UNKNOWN,
        &Scalar::constant(31),
    );
    let (zero, ones) = Scalar::fork(AluOp::Or, &low, &eight).unwrap();
    assert_eq!(
        (zero.value(), ones.value()),
        (Some(0), Some(u64::from(u32::MAX)))
    );
    assert_eq!((ones.umin, ones.umax32), (0, u32::MAX));
}
