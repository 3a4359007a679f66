//! What is found, and what is not.

use crate::isa::{Reg, Width};
use crate::lower::Passes;
use crate::lower::tests::lowered;

/// What is found in a program that gets r1 from a helper and returns r0; in all of them r0 to
/// r5 may be written.
fn found(code: &str) -> Vec<(Reg, Reg, Width, i32)> {
    let text = format!("call 5\n r1 = r0\n {code}\n exit");
    let lowered = lowered(&text, &[], Passes::all()).unwrap();
    let found = lowered.logarithms.iter();
    found
        .map(|it| (it.dst, it.input.src, it.input.width, it.plus))
        .collect()
}

/// Steps that each compare, shift, and add to r0.
fn steps(start: i32, distances: &[u32]) -> String {
    let steps = distances.iter().zip(0..).map(|(by, number)| {
        let least = 1u64 << by;
        format!(
            "r2 = {least} ll
            if r1 < r2 goto below{number}
            r1 >>= {by}
            r0 += {by}
            below{number}:"
        )
    });
    format!("r0 = {start}\n{}", steps.collect::<Vec<_>>().join("\n"))
}

#[test]
fn steps_that_shift_and_add() {
    let all = [32, 16, 8, 4, 2, 1];
    // The input is the register from which r1 is copied.
    let expected = |plus| [(Reg::R0, Reg::R0, Width::W64, plus)];
    assert_eq!(found(&steps(0, &all)), expected(0));
    assert_eq!(found(&steps(7, &all)), expected(7));
    assert_eq!(found(&steps(0, &all[..5])), [], "a step is missing");
    // A step that is never taken.
    assert_eq!(found(&steps(0, &[32, 16, 8, 8, 4, 2, 1])), expected(0));
    assert_eq!(
        found(&steps(0, &[32, 16, 4, 8, 2, 1])),
        [],
        "they are not in order"
    );
    assert_eq!(found(&steps(-1, &all)), [], "the sum wraps");
    let wrong = steps(0, &all).replace("r0 += 4", "r0 += 5");
    assert_eq!(found(&wrong), [], "a number is wrong");
}

/// As in the tools of BCC and libbpf: the distances are computed.
fn computed() -> String {
    let steps = [(4, 0xffff), (3, 0xff), (2, 0xf), (1, 3)];
    let steps = steps.map(|(shift, limit)| {
        format!(
            "w3 = 1
            if w1 > {limit} goto above{shift}
            w3 = 0
            above{shift}: w3 <<= {shift}
            w1 >>= w3
            w2 |= w3"
        )
    });
    let steps = steps.join("\n");
    format!("w2 = 0\n {steps}\n w1 >>= 1\n w2 |= w1\n r0 = r2")
}

#[test]
fn distances_that_are_computed() {
    let computed = computed();
    assert_eq!(found(&computed), [(Reg::R2, Reg::R0, Width::W32, 0)]);
    // A live register that the steps change.
    let live = format!("{computed}\n r0 += r1");
    assert_eq!(found(&live), []);
    // One that they set to a number.
    let number = format!("{computed}\n r0 += r4").replacen("w2 = 0", "w2 = 0\n w4 = 9", 1);
    assert_eq!(found(&number), [(Reg::R2, Reg::R0, Width::W32, 0)]);
    // One copy of the input; with two, the steps begin after them.
    let copied = format!("w4 = w1\n{computed}\n r0 += r4");
    assert_eq!(found(&copied), [(Reg::R2, Reg::R0, Width::W32, 0)]);
    let two = format!("w4 = w1\n w5 = w1\n{computed}\n r0 += r4\n r0 += r5");
    assert_eq!(found(&two), [(Reg::R2, Reg::R1, Width::W32, 0)]);
    // The steps do not look at the upper half.
    let wide = computed
        .replace("w1", "r1")
        .replace("w2", "r2")
        .replace("w3", "r3");
    assert_eq!(found(&wide), []);
    let halves = format!("r1 <<= 32\n r1 >>= 32\n{wide}");
    assert_eq!(found(&halves), [(Reg::R2, Reg::R0, Width::W32, 0)]);
}

/// As clang compiles the logarithm of `r3 / 1000`: the first steps compare the dividend.
#[test]
fn quotients() {
    let code = |power: u64, divisor: u32, limit: u64| {
        let later = steps(0, &[8, 4, 2, 1]).replacen("r0 = 0", "", 1);
        format!(
            "r3 = r1
            r0 = 0
            r2 = {} ll
            r1 /= {divisor}
            if r3 < r2 goto a
            r1 >>= 32
            r0 += 32
            a: if r1 < 0x10000 goto b
            r1 >>= 16
            r0 += 16
            b: r2 = {limit} ll
            if r3 < r2 goto c
            r0 += 0
            c: {later}",
            power << 32
        )
    };
    let expected = [(Reg::R0, Reg::R0, Width::W64, 0)];
    assert_eq!(found(&code(1000, 1000, 0)), expected);
    assert_eq!(found(&code(1, 1, 0)), expected);
    assert_eq!(found(&code(0x7fff_ffff, 0x7fff_ffff, 0)), expected);
    assert_eq!(found(&code(1001, 1000, 0)), [], "another multiple");
    assert_eq!(
        found(&code(1000, 1000, 1500)),
        [],
        "not decided by the quotient"
    );
}

/// The code after the steps is before them, as in a loop that a compiler turned round.
#[test]
fn paths_that_meet_before_the_start() {
    let text = "
        r6 = 0
        goto steps
        meet: *(u32 *)(r10 -4) = r1
        r0 = 0
        exit
        steps: call 7
        r1 = r0
        r0 = 1
        if w1 < 0x10000 goto a
        w1 >>= 16
        r0 += 16
        a: if w1 < 0x100 goto b
        w1 >>= 8
        r0 += 8
        b: if w1 < 0x10 goto c
        w1 >>= 4
        r0 += 4
        c: if w1 < 4 goto d
        w1 >>= 2
        r0 += 2
        d: if w1 < 2 goto e
        r0 += 1
        e: r1 = r0
        goto meet";
    let lowered = lowered(text, &[], Passes::all()).unwrap();
    let [found] = &*lowered.logarithms else {
        panic!("{:?}", lowered.logarithms)
    };
    assert_eq!(
        (found.dst, found.input.width, found.plus),
        (Reg::R0, Width::W32, 1)
    );
    assert!(lowered.ops[found.end as usize].target().is_none());
}

/// A helper reads its own arguments: what the steps leave in others is dead at the call.
#[test]
fn calls_after_the_steps() {
    let steps = computed();
    // bpf_get_prandom_u32(void)
    let call = format!("{steps}\n r1 = r10\n r1 += -8\n r2 = 0\n call 7");
    let found = found(&format!("*(u64 *)(r10 -8) = 0\n{call}"));
    assert_eq!(found, [(Reg::R2, Reg::R1, Width::W32, 0)]);
}
