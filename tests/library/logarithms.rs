//! Programs that compute the position of a number's highest bit by steps, which machine code
//! does by one instruction where it does not count instructions.

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

/// A program that returns the position of the highest bit of the packet's number plus `start`.
fn program(regs: Regs, letter: char, start: u32, step: fn(Regs, char, u32) -> String) -> Program {
    let [sum, rest, _] = regs;
    let first = if letter == 'w' { 16 } else { 32 };
    let distances = std::iter::successors(Some(first), |by| (*by > 1).then_some(by / 2));
    let steps: String = distances.map(|by| step(regs, letter, by)).collect();
    let text = format!(
        "r2 = *(u32 *)(r1 +4)
        r1 = *(u32 *)(r1 +0)
        r3 = r1
        r3 += 8
        if r3 > r2 goto short
        r{rest} = *(u64 *)(r1 +0)
        r{sum} = {start}
        {steps}
        r0 = r{sum}
        exit
        short: r0 = -1
        exit"
    );
    let slots = assemble(&text).unwrap();
    Program::new("p", ProgType::Xdp, slots)
}

/// Numbers around each power of two, with and without an upper half.
fn numbers() -> Vec<u64> {
    let powers = (0..64).map(|position| 1u64 << position);
    let around = powers.flat_map(|power| [power, power - 1, power | 1, power | power / 2]);
    let halves = [0xffff_ffff_0000_0000, 0x8000_0000_0000_0100, u64::MAX];
    around.chain(halves).collect()
}

fn check(engine: EngineKind, counts: bool) {
    // A packet has at least an Ethernet header.
    let packet = |number: u64| Event::packet([number.to_le_bytes(), [0; 8]].concat());
    let packets: Vec<_> = numbers()
        .into_iter()
        .map(|number| (number, packet(number)))
        .collect();
    let steps: [fn(Regs, char, u32) -> String; 2] = [jumping, computing];
    for (regs, start) in [([0, 1, 2], 0), ([6, 7, 8], 1), ([9, 3, 4], 0), ([5, 0, 6], 100)] {
        for (letter, step) in [('r', steps[0]), ('r', steps[1]), ('w', steps[0]), ('w', steps[1])] {
            let program = Arc::new(program(regs, letter, start, step));
            let mut vm = Vm::with_world(World::default());
            vm.set_engine(engine).set_counting(counts);
            let handle = vm.load_programs(&[], vec![program]).unwrap()[0];
            for (number, packet) in &packets {
                let number = match letter {
                    'w' => low32(*number).into(),
                    _ => *number,
                };
                let expected = start + (number | 1).ilog2();
                let outcome = vm.run(handle, packet).unwrap();
                let run = outcome.runs.first().unwrap();
                assert_eq!(run.ran_on.engine, engine);
                assert_eq!(run.returned(), expected, "{number:#x} {letter} {regs:?}");
            }
        }
    }
}

#[test]
fn the_interpreters_find_the_highest_bit() {
    check(EngineKind::Checked, true);
    check(EngineKind::Interp, true);
}

#[test]
fn machine_code_finds_the_highest_bit() {
    if EngineKind::default() == EngineKind::Jit {
        check(EngineKind::Jit, true);
        check(EngineKind::Jit, false);
    }
}
