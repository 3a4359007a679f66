//! Fills of spilled scalars.

use std::sync::Arc;

use crate::isa::assemble;
use crate::program::Program;
use crate::spec::ProgType;
use crate::verifier::{Options, Verdict, verify};

/// Spills r8, whose bits `mask` leaves unknown, fills r1 with sign extension, and uses r8 where
/// the filled number is `number`.
fn filled(mask: &str, number: i32, then: &str) -> Verdict {
    let text = format!(
        "r8 = *(u32 *)(r1 +0)
        {mask}
        *(u64 *)(r10 -8) = r8
        *(u64 *)(r10 -16) = 0
        r1 = *(s32 *)(r10 -8)
        r0 = 0
        if r1 != {number} goto out
        {then}
        out: exit"
    );
    let insns = assemble(&text).unwrap();
    let program = Arc::new(Program::new("fill", ProgType::SocketFilter, insns));
    verify(&program, &Options::default()).verdict
}

/// Linux 6.18 takes r8 for -1 here, and r8 >> 32 for 0 after the addition; it is 1.
#[test]
fn a_fill_that_extends_the_sign_is_another_number() {
    let then = "r8 += 1\nr8 >>= 32\nr8 *= 64\nr2 = r10\nr2 += r8\nr0 = *(u8 *)(r2 -8)";
    let verdict = filled("r7 = 0", -1, then);
    assert_eq!(
        verdict.message,
        "invalid variable-offset read from stack R2 var_off=(0x0; 0x40) off=-8 size=1"
    );
}

#[test]
fn a_fill_without_a_sign_to_extend_is_the_same_number() {
    let then = "r2 = r10\nr2 += r8\nr0 = *(u8 *)(r2 -16)";
    assert!(filled("r8 &= 0xff", 7, then).is_accepted());
    assert!(!filled("r8 &= 0xff", 17, then).is_accepted());
}
