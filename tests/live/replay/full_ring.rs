//! Full rings: a record that could not be sent is not compared in a replay either.

use std::sync::Arc;

use bpflab::compare::replay::Word;
use bpflab::isa::assemble_with;
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType};
use bpflab::vm::events::Event;

use super::replayed;
use super::user_recording::Recorder;

/// A raw tracepoint program that sends records of 64 bytes with this code; the first eight bytes
/// are its argument, which is in `r6`.
fn program(text: &str) -> Arc<Program> {
    let mut program = Program::new("sends", ProgType::RawTracepoint, Vec::new());
    program.maps = [MapDef::new("events", MapType::Ringbuf, 0, 0, 4096)].into();
    program.license = "GPL".into();
    let text = format!("r6 = *(u64 *)(r1 + 0)\n{text}\nexit");
    program.insns = assemble_with(&text, &program).unwrap().slots;
    Arc::new(program)
}

fn is_equal(text: &str) {
    let mut recorder = Recorder::new(vec![program(text)], 8);
    recorder.forgets = true;
    for number in 0..100u64 {
        recorder.fire(0, &Event::bytes(number.to_le_bytes().to_vec()));
    }
    let recording = recorder.finish();
    assert!(
        recording.outputs.len() < 60,
        "there was room for {}",
        recording.outputs.len()
    );
    let report = replayed(&recording);
    assert_eq!(report.word(), Word::Equal, "{report:#?}");
    assert_eq!(report.outputs[0].replayed, recording.outputs.len() as u64);
    assert_eq!(
        report.programs[0].raced,
        100 - recording.outputs.len() as u64
    );
}

#[test]
fn a_record_that_is_copied() {
    is_equal(
        "*(u64 *)(r10 - 64) = r6
        r1 = 0
        *(u64 *)(r10 - 56) = r1
        *(u64 *)(r10 - 48) = r1
        *(u64 *)(r10 - 40) = r1
        *(u64 *)(r10 - 32) = r1
        *(u64 *)(r10 - 24) = r1
        *(u64 *)(r10 - 16) = r1
        *(u64 *)(r10 - 8) = r1
        r1 = map[idx:0]
        r2 = r10
        r2 += -64
        r3 = 64
        r4 = 0
        call bpf_ringbuf_output",
    );
}

#[test]
fn a_record_that_is_reserved() {
    is_equal(
        "r1 = map[idx:0]
        r2 = 64
        r3 = 0
        call bpf_ringbuf_reserve
        if r0 == 0 goto out
        *(u64 *)(r0 + 0) = r6
        r1 = r0
        r2 = 0
        call bpf_ringbuf_submit
        r0 = 1
        exit
        out: r0 = 7",
    );
}
