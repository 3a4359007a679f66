//! Programs that compute the position of a number's highest bit by steps, for which machine code
//! that does not count instructions has an instruction of the processor.

use std::sync::Arc;

use bpflab::Vm;
use bpflab::harness::EngineKind;
use bpflab::isa::{assemble, low32};
use bpflab::program::Program;
use bpflab::spec::ProgType;
use bpflab::vm::World;
use bpflab::vm::events::Event;

/// Numbers of the registers that a program uses: for the result, what is left of the number, and
/// a distance.
type Regs = [u8; 3];

/// A step that jumps over a shift and an addition.
fn jumping([sum, rest, step]: Regs, letter: char, by: u32) -> String {
    format!(
        "r{step} = {} ll
        if {letter}{rest} < {letter}{step} goto below{by}
        {letter}{rest} >>= {by}
        r{sum} += {by}
        below{by}:\n",
        1u64 << by
    )
}

/// A step with a distance that is 0 or `by`.
fn computing([sum, rest, step]: Regs, letter: char, by: u32) -> String {
    let limit = (1u64 << by) - 1;
    format!(
        "r{step} = {limit} ll
        if {letter}{rest} > {letter}{step} goto above{by}
        r{step} = 0
        goto shift{by}
        above{by}: r{step} = {by}
        shift{by}: {letter}{rest} >>= {letter}{step}
        r{sum} += r{step}\n"
    )
}

/// The steps for all distances from the first on.
fn steps(regs: Regs, letter: char, first: u32, step: fn(Regs, char, u32) -> String) -> String {
    let distances = std::iter::successors(Some(first), |by| (*by > 1).then_some(by / 2));
    distances.map(|by| step(regs, letter, by)).collect()
}

/// A program that has the packet's number in `r1`, and does this.
fn program(code: &str) -> Arc<Program> {
    let text = format!(
        "r2 = *(u32 *)(r1 +4)
        r1 = *(u32 *)(r1 +0)
        r3 = r1
        r3 += 8
        if r3 > r2 goto short
        r1 = *(u64 *)(r1 +0)
        {code}
        exit
        short: r0 = -1
        exit"
    );
    let slots = assemble(&text).unwrap();
    Arc::new(Program::new("p", ProgType::Xdp, slots))
}

/// The numbers at which the result changes, for the number itself and for its thousandth, and
/// those with a special upper half.
fn numbers() -> Vec<u64> {
    let powers = (0..64).map(|position| 1u64 << position);
    let thousands = (0..54).step_by(6).map(|position| 1000u64 << position);
    let limits = powers.chain(thousands);
    let around = limits.flat_map(|limit| [limit - 1, limit]);
    let halves = [0xffff_ffff_0000_0000, 0x8000_0000_0000_0100, u64::MAX];
    around.chain(halves).collect()
}

/// Runs a program on all numbers, with every engine, with and without counts.
fn check(code: &str, expected: impl Fn(u64) -> u32) {
    let program = program(code);
    let jit = (EngineKind::default() == EngineKind::Jit).then_some(EngineKind::Jit);
    let engines = [(EngineKind::Checked, true), (EngineKind::Interp, true)];
    let jits = [true, false].into_iter();
    let jits = jits.filter_map(|counts| Some((jit?, counts)));
    for (engine, counts) in engines.into_iter().chain(jits) {
        let mut vm = Vm::with_world(World::default());
        vm.set_engine(engine).set_counting(counts);
        let handle = vm.load_programs(&[], vec![Arc::clone(&program)]).unwrap()[0];
        for number in numbers() {
            // A packet has at least an Ethernet header.
            let packet = Event::packet([number.to_le_bytes(), [0; 8]].concat());
            let outcome = vm.run(handle, &packet).unwrap();
            let run = outcome.runs.first().unwrap();
            assert_eq!(run.ran_on.engine, engine);
            assert_eq!(
                run.returned(),
                expected(number),
                "{engine}, counts {counts}, {number:#x}: {code}"
            );
        }
    }
}

const FORMS: [fn(Regs, char, u32) -> String; 2] = [jumping, computing];

#[test]
fn in_all_forms() {
    for (regs, start) in [([0, 3, 2], 0), ([6, 7, 8], 100)] {
        for form in FORMS {
            let [sum, rest, _] = regs;
            for (letter, first) in [('r', 32), ('w', 16)] {
                let steps = steps(regs, letter, first, form);
                let code = format!("r{rest} = r1\n r{sum} = {start}\n {steps} r0 = r{sum}");
                check(&code, |number| {
                    let number = if letter == 'w' {
                        low32(number).into()
                    } else {
                        number
                    };
                    start + (number | 1).ilog2()
                });
            }
        }
    }
}

/// The steps are followed by uses of the number, and of another one that is set among them.
#[test]
fn with_live_registers() {
    for form in FORMS {
        let steps = steps([0, 1, 2], 'r', 16, form);
        let code = format!(
            "r4 = r1
            r0 = 0
            r2 = 0x100000000 ll
            if r1 < r2 goto upper
            r0 = 32
            r1 >>= 32
            upper: r5 = 3
            {steps}
            r4 &= 0xff00
            r0 += r4
            r5 <<= 20
            r0 += r5"
        );
        check(&code, |number| {
            (number | 1).ilog2() + (low32(number) & 0xff00) + (3 << 20)
        });
    }
}

/// As clang compiles the logarithm of a quotient: the dividend is compared.
#[test]
fn of_a_quotient() {
    for form in FORMS {
        let steps = steps([0, 1, 2], 'r', 16, form);
        let code = format!(
            "r3 = r1
            r1 /= 1000
            r4 = r1
            r0 = 0
            r2 = {} ll
            if r3 < r2 goto upper
            r0 = 32
            r1 >>= 32
            upper: {steps}
            r4 &= 0xff00
            r0 += r4",
            1000u64 << 32
        );
        check(&code, |number| {
            let quotient = number / 1000;
            (quotient | 1).ilog2() + (low32(quotient) & 0xff00)
        });
    }
}

/// The second one begins where the first one ends.
#[test]
fn two_after_each_other() {
    for form in FORMS {
        let one = steps([0, 1, 2], 'r', 32, form);
        let two = steps([3, 4, 2], 'r', 32, form);
        let two = two.replace("below", "under").replace("above", "over");
        let two = two.replace("shift", "move");
        let code =
            format!("r4 = r1\n r4 >>= 9\n r0 = 0\n r3 = 0\n {one} {two} r3 <<= 8\n r0 += r3");
        check(&code, |number| {
            (number | 1).ilog2() + (((number >> 9) | 1).ilog2() << 8)
        });
    }
}
