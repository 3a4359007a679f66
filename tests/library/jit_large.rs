//! Machine code of large programs: branches that don't fit the host's short forms, over
//! long code. (In a build without machine code for the host, the fast interpreter is
//! tested.)

use std::sync::Arc;

use bpflab::Vm;
use bpflab::harness::{EngineKind, RanOn};
use bpflab::isa::assemble;
use bpflab::program::Program;
use bpflab::spec::ProgType;
use bpflab::vm::World;
use bpflab::vm::events::Event;

/// The outcome, as text, of a program on a packet of 64 bytes with this budget.
fn outcome(text: &str, engine: EngineKind, budget: Option<u64>) -> String {
    let mut vm = Vm::with_world(World::default());
    vm.set_engine(engine);
    if let Some(budget) = budget {
        vm.set_budget(budget);
    }
    let program = Program::new("p", ProgType::Xdp, assemble(text).unwrap());
    let handle = vm.load_programs(&[], vec![Arc::new(program)]).unwrap()[0];
    let verdict = &vm.verification("p").unwrap().verdict;
    assert!(verdict.is_accepted(), "{}", verdict.message);
    assert_eq!(vm.engine_of(handle).unwrap(), RanOn::chosen(engine));
    let packet: Vec<u8> = (1..=64).collect();
    match vm.run(handle, &Event::packet(packet)) {
        Ok(mut outcome) => {
            for run in &mut outcome.runs {
                assert_eq!(run.ran_on, RanOn::chosen(engine));
                // The only difference between engines.
                run.ran_on = RanOn::chosen(EngineKind::Checked);
            }
            format!("{outcome:?}")
        }
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn agree(text: &str, budget: Option<u64>) -> String {
    let checked = outcome(text, EngineKind::Checked, budget);
    assert_eq!(outcome(text, EngineKind::default(), budget), checked);
    checked
}

/// `r9` = the packet with at least 64 bytes.
const PACKET: &str = "
    r6 = r1
    r9 = *(u32 *)(r1 + 0)
    r2 = *(u32 *)(r1 + 4)
    r3 = r9
    r3 += 64
    r0 = 0
    if r3 <= r2 goto start
    exit
    start: r7 = *(u8 *)(r9 + 0)
    r8 = *(u8 *)(r9 + 1)";

/// Instructions with long code, to fill the program.
fn filler(n: usize) -> String {
    let one = |at: usize| match at % 4 {
        0 => format!("r1 = *(u64 *)(r9 + {})\n", at % 57),
        1 => "r0 ^= r1\n".to_owned(),
        2 => format!("*(u32 *)(r9 + {}) = r0\n", at % 61),
        _ => format!("lock *(u64 *)(r10 - 8) += r{}\n", at % 2 + 7),
    };
    (0..n).map(one).collect()
}

#[test]
fn branches_over_everything() {
    let (first, second) = (filler(30_000), filler(29_000));
    for taken in [1, 9] {
        let text = format!(
            "{PACKET}
            *(u64 *)(r10 - 8) = r7
            if r7 == {taken} goto half
            {first}
            half: if r8 s> {taken} goto rest
            r0 += 5
            rest: if w7 & 1 goto end
            {second}
            end: r0 += 3
            r1 = *(u64 *)(r10 - 8)
            r0 ^= r1
            exit"
        );
        agree(&text, None);
    }
}

#[test]
fn a_loop_around_everything() {
    let body = filler(30_000);
    let text = format!(
        "{PACKET}
        *(u64 *)(r10 - 8) = r7
        r5 = 0
        again: {body}
        r5 += 1
        if r5 == 4 goto done
        goto again
        done: if w0 == 0 goto end
        r1 = *(u64 *)(r10 - 8)
        r0 ^= r1
        end: exit"
    );
    let end = agree(&text, None);
    assert!(end.contains("insns"), "{end}");
    // Within the third round, before which the code checks the budget.
    let end = agree(&text, Some(75_000));
    assert!(end.contains("budget"), "{end}");
}

#[test]
fn calls_from_everywhere() {
    let calls: String = (0..6_000)
        .map(|at| match at % 3 {
            0 => "call 5\nr7 += r0\n",
            1 => "r1 = r7\ncall small\nr7 ^= r0\n",
            _ => "r1 = *(u64 *)(r9 + 3)\nif r1 == 77 goto stop\n",
        })
        .collect();
    let text = format!(
        "{PACKET}
        r7 = 1
        {calls}
        stop: r0 = r7
        exit
        small: r0 = r1
        r0 *= 31
        exit"
    );
    agree(&text, None);
}
