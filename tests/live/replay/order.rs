//! The order of firings: recordings whose firings came one after the other, and the same with
//! firings changed to begin earlier, so that they overlap others.

use std::sync::Arc;

use bpflab::compare::recording::When;
use bpflab::compare::replay::{MapVerdict, Report, Verdict, Word};
use bpflab::instrument::Firing;
use bpflab::isa::assemble_with;
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType};
use bpflab::vm::events::Event;

use super::changes::change;
use super::replayed;
use super::user_recording::{Recorder, UserRecording};

/// Looks up the element whose key is the context's second word.
const LOOK_UP: &str = "
    *(u32 *)(r10 - 4) = r7
    r1 = map[idx:0]
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out";
const OUT: &str = "
    out: r0 = 0
    exit";
/// Stores the first word there.
const STORE: &str = "*(u64 *)(r0 + 0) = r6";

/// A raw tracepoint with the first two words of its context in `r6` and `r7`, and one map.
fn program(map: MapDef, code: &str) -> Arc<Program> {
    let mut program = Program::new("writes", ProgType::RawTracepoint, Vec::new());
    program.maps = [map].into();
    program.license = "GPL".into();
    let text = format!("r6 = *(u64 *)(r1 + 0)\nr7 = *(u64 *)(r1 + 8)\n{code}\n{OUT}");
    program.insns = assemble_with(&text, &program).unwrap().slots;
    Arc::new(program)
}

fn array() -> MapDef {
    MapDef::new("values", MapType::Array, 4, 8, 4)
}

fn hash() -> MapDef {
    MapDef::new("values", MapType::Hash, 4, 8, 4)
}

/// A recording of firings with these: CPU, first word, second word.
fn recorded(map: MapDef, code: &str, firings: &[(u32, u64, u64)]) -> UserRecording {
    let mut recorder = Recorder::new(vec![program(map, code)], 16);
    for (cpu, first, second) in firings {
        recorder.vm.world().set_cpu(*cpu);
        let context = [first.to_le_bytes(), second.to_le_bytes()].concat();
        recorder.fire(0, &Event::bytes(context));
    }
    recorder.finish()
}

/// Changes a firing to begin before all others had ended.
fn began_early(recording: &mut UserRecording, number: usize) {
    change(recording, number, |firing, _| firing.produced = 0);
}

fn verdict(report: &Report) -> &MapVerdict {
    &report.maps[0].verdict
}

#[track_caller]
fn is_equal(recording: &UserRecording) {
    let report = replayed(recording);
    assert_eq!(report.word(), Word::Equal, "{report:#?}");
}

/// Why the order is unknown.
#[track_caller]
fn unknown(recording: &UserRecording) -> String {
    let report = replayed(recording);
    assert_eq!(report.word(), Word::OrderUnknown, "{report:#?}");
    let MapVerdict::OrderUnknown { why, .. } = verdict(&report) else {
        panic!("{report:#?}");
    };
    let of_program = format!("map values: {why}");
    assert_eq!(
        report.programs[0].verdict,
        Verdict::OrderUnknown(of_program)
    );
    why.clone()
}

#[test]
fn stores_of_two_cpus() {
    let code = [LOOK_UP, STORE].join("\n");
    let mut recording = recorded(array(), &code, &[(0, 5, 1), (1, 6, 1), (1, 7, 2)]);
    is_equal(&recording);
    began_early(&mut recording, 2);
    is_equal(&recording);
    began_early(&mut recording, 1);
    assert_eq!(
        unknown(&recording),
        "firing 0 of CPU 0 and firing 0 of CPU 1 overlapped, and both wrote to element 1"
    );
    // One more after both replaces the element.
    let firings = [(0, 5, 1), (1, 6, 1), (2, 8, 1)];
    let mut recording = recorded(array(), &code, &firings);
    began_early(&mut recording, 1);
    is_equal(&recording);
    began_early(&mut recording, 2);
    unknown(&recording);
}

#[test]
fn a_store_to_a_part_leaves_the_rest() {
    let code = [LOOK_UP, "*(u32 *)(r0 + 0) = r6"].join("\n");
    let firings = [(0, 5, 1), (1, 6, 1), (2, 8, 1)];
    let mut recording = recorded(array(), &code, &firings);
    is_equal(&recording);
    began_early(&mut recording, 1);
    unknown(&recording);
}

#[test]
fn additions_come_to_the_same() {
    let code = [LOOK_UP, "lock *(u64 *)(r0 + 0) += r6"].join("\n");
    let mut recording = recorded(array(), &code, &[(0, 5, 1), (1, 6, 1)]);
    began_early(&mut recording, 1);
    is_equal(&recording);
}

#[test]
fn a_difference_is_seen_beside_a_doubt() {
    let code = [LOOK_UP, STORE].join("\n");
    let mut recording = recorded(array(), &code, &[(0, 5, 1), (1, 6, 1), (1, 7, 2)]);
    began_early(&mut recording, 1);
    let set = |recording: &mut UserRecording, at: u8, value: u8| {
        let mut entries = recording.entries.iter_mut();
        let entry = entries.find(|(when, _, key, _)| *when == When::After && key[0] == at);
        entry.unwrap().3[0] = value;
    };
    // In the other order.
    set(&mut recording, 1, 5);
    unknown(&recording);
    let report = replayed(&recording);
    assert!(
        matches!(
            verdict(&report),
            MapVerdict::OrderUnknown { differing: 1, .. }
        ),
        "{report:#?}"
    );
    // An element that only one CPU wrote.
    set(&mut recording, 2, 9);
    let report = replayed(&recording);
    assert!(
        matches!(verdict(&report), MapVerdict::Different { entries: 1, key, .. } if key[0] == 2),
        "{report:#?}"
    );
}

#[test]
fn what_helpers_fill_is_written() {
    let fills = [
        "r1 = r0
        r2 = 8
        call bpf_get_current_comm",
        "r1 = r0
        r2 = 8
        r3 = r6
        call bpf_probe_read_kernel",
        "r1 = r0
        r2 = r6
        r2 &= 7
        r3 = r6
        call bpf_probe_read_kernel",
    ];
    for fill in fills {
        let code = [LOOK_UP, fill].join("\n");
        let mut recording = recorded(array(), &code, &[(0, 5, 1), (1, 6, 1)]);
        is_equal(&recording);
        began_early(&mut recording, 1);
        assert!(unknown(&recording).contains("element 1"), "{fill}");
    }
}

/// Updates if the first word is odd, deletes otherwise.
const UPDATE: &str = "
    *(u32 *)(r10 - 4) = r7
    *(u64 *)(r10 - 16) = r6
    r1 = map[idx:0]
    r2 = r10
    r2 += -4
    r6 &= 1
    if r6 == 0 goto delete
    r3 = r10
    r3 += -16
    r4 = 0
    call bpf_map_update_elem
    goto out
    delete: call bpf_map_delete_elem
    goto out";

#[test]
fn elements_come_and_go() {
    let firings = [(0, 5, 1), (1, 7, 1), (0, 4, 1), (1, 9, 2)];
    let whole = recorded(hash(), UPDATE, &firings);
    is_equal(&whole);
    let mut recording = whole.clone();
    // It was deleted in between, so the first write does not matter.
    began_early(&mut recording, 1);
    is_equal(&recording);
    began_early(&mut recording, 2);
    let why = unknown(&recording);
    assert!(why.contains("both wrote to element 1"), "{why}");
    // Another element is not affected.
    let mut recording = whole;
    began_early(&mut recording, 3);
    is_equal(&recording);
}

/// The replay's map is full where the kernel's was not, since the replay deletes too late.
#[test]
fn room_depends_on_the_order_too() {
    let firings = [
        (0, 1, 1),
        (0, 1, 2),
        (0, 1, 3),
        (0, 1, 4),
        (0, 0, 1),
        (1, 1, 5),
    ];
    let mut recording = recorded(hash(), UPDATE, &firings);
    is_equal(&recording);
    // The last two are swapped in the ring: the one that deletes ends last.
    recording.firings.swap(4, 5);
    let position = Firing::parse(&recording.firings[4]).unwrap().produced;
    change(&mut recording, 5, |firing, _| firing.produced = position);
    change(&mut recording, 4, |firing, _| firing.produced -= 1);
    let why = unknown(&recording);
    assert!(
        why.contains("read a map value that the replay does not have"),
        "{why}"
    );
    assert!(why.contains("element 5"), "{why}");
}

/// A firing that finds no element in the replay takes another path from there on.
#[test]
fn who_is_lost_leaves_doubts() {
    let mut program = Program::clone(&program(hash(), ""));
    program.maps = [
        MapDef::new("known", MapType::Hash, 4, 8, 4),
        MapDef::new("values", MapType::Array, 4, 8, 4),
    ]
    .into();
    // Creates the element if the first word is odd; otherwise counts if it exists.
    let text = format!(
        "r6 = *(u64 *)(r1 + 0)
        r7 = *(u64 *)(r1 + 8)
        {UPDATE}
        {OUT}"
    )
    .replace(
        "delete: call bpf_map_delete_elem",
        "delete: call bpf_map_lookup_elem
        if r0 == 0 goto out
        r1 = map[idx:1]
        r2 = r10
        r2 += -4
        call bpf_map_lookup_elem
        if r0 == 0 goto out
        r1 = 1
        lock *(u64 *)(r0 + 0) += r1",
    );
    program.insns = assemble_with(&text, &program).unwrap().slots;
    let mut recorder = Recorder::new(vec![Arc::new(program)], 16);
    for (cpu, first) in [(0, 1u64), (1, 0)] {
        recorder.vm.world().set_cpu(cpu);
        let context = [first.to_le_bytes(), 2u64.to_le_bytes()].concat();
        recorder.fire(0, &Event::bytes(context));
    }
    let mut recording = recorder.finish();
    is_equal(&recording);
    // The one that counted ends first: the replay does not have the element yet.
    recording.firings.swap(0, 1);
    change(&mut recording, 0, |firing, _| firing.produced = 0);
    let report = replayed(&recording);
    assert_eq!(report.word(), Word::OrderUnknown, "{report:#?}");
    let MapVerdict::OrderUnknown { why, .. } = &report.maps[1].verdict else {
        panic!("{report:#?}");
    };
    assert!(
        why.contains("read a map value that the replay does not have"),
        "{why}"
    );
}
