//! `bpf_fastcall` spills, and the stack of call chains. Each figure was seen on Linux 6.18.

use super::*;
use crate::spec::AttachType;
use crate::util::Pc;

/// The final stack size of the first function, from 16 bytes.
fn left(prog_type: ProgType, text: &str, touched: &[(u32, i32)]) -> u32 {
    let structure = of(prog_type, text);
    let mut usage = Usage::new(&structure);
    usage.grow_stack(0, 16);
    for &(pc, off) in touched {
        usage.touch_stack(0, &structure.info(Pc(pc)), off);
    }
    structure.final_stack_depths(&mut usage);
    usage.stack_depth(0)
}

#[test]
fn spills_around_calls_that_keep_registers_can_go() {
    // 8 is get_smp_processor_id, 7 get_prandom_u32.
    let around = |call: u32| {
        format!("r1 = 1\n*(u64 *)(r10 - 8) = r1\ncall {call}\nr1 = *(u64 *)(r10 - 8)\nr0 = 0\nexit")
    };
    let pattern = [(1, -8), (3, -8)];
    assert_eq!(left(ProgType::Xdp, &around(8), &pattern), 0);
    assert_eq!(left(ProgType::Tracepoint, &around(8), &pattern), 0);
    assert_eq!(left(ProgType::SocketFilter, &around(8), &pattern), 16);
    assert_eq!(left(ProgType::Xdp, &around(7), &pattern), 16);
    // Another access to the slot.
    assert_eq!(left(ProgType::Xdp, &around(8), &[(1, -8), (4, -8)]), 16);
    // An access above the slot.
    let text = "r1 = 1\n*(u64 *)(r10 - 8) = r1\n*(u64 *)(r10 - 16) = r1\ncall 8\n\
                r1 = *(u64 *)(r10 - 16)\nr0 = 0\nexit";
    assert_eq!(left(ProgType::Xdp, text, &[(1, -8), (2, -16), (4, -16)]), 8);
}

#[test]
fn pairs_nest() {
    let text = "r1 = 1\nr2 = 1\n*(u64 *)(r10 - 8) = r1\n*(u64 *)(r10 - 16) = r2\ncall 8\n\
                r2 = *(u64 *)(r10 - 16)\nr1 = *(u64 *)(r10 - 8)\nr0 = 0\nexit";
    assert_eq!(left(ProgType::Xdp, text, &[]), 0);
    assert_eq!(of(ProgType::Xdp, text).info(Pc(4)).fastcall_spills, 2);
    // The inner pair has to be the lower one.
    let crossed = text
        .replace("- 8) = r1", "- 24) = r1")
        .replace("r1 = *(u64 *)(r10 - 8)", "r1 = *(u64 *)(r10 - 24)");
    assert_eq!(left(ProgType::Xdp, &crossed, &[]), 16);
}

/// A jump between the spill and the fill breaks the pattern.
#[test]
fn a_pattern_is_entered_at_its_first_instruction() {
    let jump = |off: u32| {
        format!(
            "r1 = 1\nif r1 == 0 goto +{off}\n*(u64 *)(r10 - 8) = r1\ncall 8\n\
             r1 = *(u64 *)(r10 - 8)\nr0 = 0\nexit"
        )
    };
    assert_eq!(left(ProgType::Xdp, &jump(0), &[]), 0);
    assert_eq!(left(ProgType::Xdp, &jump(1), &[]), 16);
    assert_eq!(left(ProgType::Xdp, &jump(2), &[]), 16);
    assert_eq!(left(ProgType::Xdp, &jump(3), &[]), 0);
}

/// A spill around a clobbering call stays, and so does the stack.
#[test]
fn one_call_that_keeps_nothing_keeps_the_stack() {
    let text = "r1 = 1\n*(u64 *)(r10 - 8) = r1\ncall 8\nr1 = *(u64 *)(r10 - 8)\n\
                *(u64 *)(r10 - 8) = r1\ncall 7\nr1 = *(u64 *)(r10 - 8)\nr0 = 0\nexit";
    let structure = of(ProgType::Xdp, text);
    assert!(structure.subprograms[0].keep_fastcall_stack);
    assert_eq!(left(ProgType::Xdp, text, &[]), 16);
}

/// A chain of functions that call each other, with these depths.
fn chain(prog_type: ProgType, depths: &[u32]) -> String {
    chain_at(prog_type, None, depths)
}

fn chain_at(prog_type: ProgType, attach_type: Option<AttachType>, depths: &[u32]) -> String {
    let calls = depths.len() - 1;
    let text = "call pc+1\nexit\n".repeat(calls) + "r0 = 0\nexit";
    // The structure of a tracing program needs an attach target.
    let mut program = program(ProgType::Xdp, &text);
    let structure = structure(&program).unwrap();
    (program.prog_type, program.expected_attach_type) = (prog_type, attach_type);
    let mut usage = Usage::new(&structure);
    for (function, depth) in (0..).zip(depths) {
        usage.grow_stack(function, *depth);
    }
    match check_max_stack_depth(&program, &structure, &usage, false) {
        Ok(()) => "ok".to_owned(),
        Err(reject) => reject.message().to_owned(),
    }
}

#[test]
fn chains_of_calls_have_a_limit() {
    let xdp = |depths: &[u32]| chain(ProgType::Xdp, depths);
    assert_eq!(xdp(&[256, 256]), "ok");
    let error = "combined stack size of 3 calls is 528. Too large";
    assert_eq!(xdp(&[256, 256, 8]), error);
    let error = "combined stack size of 2 calls is 528. Too large";
    assert_eq!(xdp(&[512, 8]), error);
    let error = "combined stack size of 3 calls is 624. Too large";
    assert_eq!(xdp(&[48, 64, 512]), error);
    assert_eq!(xdp(&[64; 8]), "ok");
    assert_eq!(
        xdp(&[72; 8]),
        "combined stack size of 7 calls is 560. Too large"
    );
    assert_eq!(xdp(&[0; 9]), "the call stack of 8 frames is too deep !");
}

/// In tracing programs, a function of 64 bytes or more has a private stack.
#[test]
fn watching_programs_have_private_stacks() {
    for prog_type in [
        ProgType::Kprobe,
        ProgType::Tracepoint,
        ProgType::PerfEvent,
        ProgType::RawTracepoint,
    ] {
        assert_eq!(chain(prog_type, &[256, 256, 8]), "ok");
        assert_eq!(chain(prog_type, &[512, 512, 512]), "ok");
    }
    let error = "combined stack size of 2 calls is 528. Too large";
    assert_eq!(chain(ProgType::RawTracepointWritable, &[512, 8]), error);
    let tracing = |attach_type| chain_at(ProgType::Tracing, Some(attach_type), &[512, 8]);
    assert_eq!(tracing(AttachType::TraceRawTp), "ok");
    assert_eq!(tracing(AttachType::TraceFentry), "ok");
    assert_eq!(tracing(AttachType::TraceIter), error);
}

/// An asynchronous callback is not part of the chain. A function that both call uses the
/// common stack.
#[test]
fn callbacks_that_run_later_have_the_stack_for_themselves() {
    let text = "r2 = 0 ll\nr0 = 0\nexit\nr0 = 0\nexit";
    let mut program = program(ProgType::Xdp, text);
    program.insns[0] = RawInsn::new(0x18, 2, 4, 0, 3);
    let structure = structure(&program).unwrap();
    let mut usage = Usage::new(&structure);
    usage.grow_stack(0, 512);
    usage.grow_stack(1, 512);
    let message = |usage: &Usage| {
        let checked = check_max_stack_depth(&program, &structure, usage, false);
        checked.err().map(|reject| reject.message().to_owned())
    };
    let error = "combined stack size of 2 calls is 1024. Too large";
    assert_eq!(message(&usage).as_deref(), Some(error));
    usage.call_later(1);
    assert_eq!(message(&usage), None);
}

/// Dead code is removed; rewritten instructions add stack.
#[test]
fn statistics_show_the_stack_after_rewriting() {
    let text = "call pc+4\nr0 = 0\nmay_goto +1\ngoto -2\nexit\nr0 = 0\nexit";
    let structure = of(ProgType::Xdp, text);
    let mut usage = Usage::new(&structure);
    usage.grow_stack(0, 8);
    let shown = |seen: &dyn Fn(Pc) -> bool| structure.reported_depths(&usage, seen, |_| true);
    assert_eq!(shown(&|_| true), [24, 0]);
    assert_eq!(shown(&|pc| pc < Pc(5)), [24]);
    assert_eq!(shown(&|pc| pc != Pc(3)), [8, 0]);

    let looping = of(ProgType::Xdp, "r1 = 1\ncall 181\nr0 = 0\nexit");
    let usage = Usage::new(&looping);
    let shown = |plain: bool| looping.reported_depths(&usage, |_| true, |_| plain);
    assert_eq!((shown(true), shown(false)), (vec![24], vec![0]));
}
