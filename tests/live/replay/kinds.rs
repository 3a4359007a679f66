//! Verdicts compared with what was really compared, for each map type and each way in which a
//! program may not have been recorded.

use std::sync::Arc;

use bpflab::compare::recording::{How, LeftOut, When};
use bpflab::compare::replay::{MapVerdict, NotCompared, Report, Verdict, Word};
use bpflab::isa::assemble_with;
use bpflab::program::{Initial, MapDef, Program};
use bpflab::spec::{MapFlags, MapType, ProgType};
use bpflab::vm::events::Event;

use super::user_recording::{Recorder, UserRecording};
use super::{UNREADABLE, is_equal_as_far_as_it_can_be, replayed};

fn program(name: &str, maps: &Arc<[MapDef]>, code: &str) -> Arc<Program> {
    let mut program = Program::new(name, ProgType::RawTracepoint, Vec::new());
    program.maps = maps.clone();
    program.license = "GPL".into();
    let text = format!("{code}\nout: r0 = 0\nexit");
    program.insns = assemble_with(&text, &program).unwrap().slots;
    Arc::new(program)
}

/// A map of each type that a recorded program can use, and code that uses it.
fn kinds() -> Vec<(MapDef, &'static str)> {
    const UPDATE: &str = "
        r6 = *(u64 *)(r1 + 0)
        *(u64 *)(r10 - 8) = 0
        *(u64 *)(r10 - 16) = r6
        r1 = map[idx:0]
        r2 = r10
        r2 += -8
        r3 = r10
        r3 += -16
        r4 = 0
        call bpf_map_update_elem";
    const PUSH: &str = "
        r6 = *(u64 *)(r1 + 0)
        *(u64 *)(r10 - 8) = r6
        r1 = map[idx:0]
        r2 = r10
        r2 += -8
        r3 = 0
        call bpf_map_push_elem";
    const LOOK_UP: &str = "
        *(u64 *)(r10 - 8) = 0
        r1 = map[idx:0]
        r2 = r10
        r2 += -8
        call bpf_map_lookup_elem";
    const SEND: &str = "
        r6 = *(u64 *)(r1 + 0)
        *(u64 *)(r10 - 8) = r6
        r1 = map[idx:0]
        r2 = r10
        r2 += -8
        r3 = 8
        r4 = 0
        call bpf_ringbuf_output";
    const SEND_PERF: &str = "
        r6 = *(u64 *)(r1 + 0)
        *(u64 *)(r10 - 8) = r6
        r2 = map[idx:0]
        w3 = -1
        r4 = r10
        r4 += -8
        r5 = 8
        call bpf_perf_event_output";
    const STACK: &str = "
        r2 = map[idx:0]
        r3 = 0
        call bpf_get_stackid";
    const JUMP: &str = "
        r2 = map[idx:0]
        r3 = 1
        call bpf_tail_call";
    let inner = || MapDef::new("inner", MapType::Array, 4, 8, 1);
    let outer = |map_type| MapDef::new("map", map_type, 4, 4, 2).with_inner(Box::new(inner()));
    let map = |map_type, key, value, most| MapDef::new("map", map_type, key, value, most);
    let trie = map(MapType::LpmTrie, 8, 8, 4).with_flags(MapFlags::NO_PREALLOC);
    vec![
        (map(MapType::Array, 4, 8, 1), UPDATE),
        (map(MapType::PercpuArray, 4, 8, 1), UPDATE),
        (map(MapType::Hash, 4, 8, 4), UPDATE),
        (map(MapType::PercpuHash, 4, 8, 4), UPDATE),
        (map(MapType::LruHash, 4, 8, 64), UPDATE),
        (map(MapType::LruPercpuHash, 4, 8, 64), UPDATE),
        (trie, UPDATE),
        (map(MapType::Queue, 0, 8, 8), PUSH),
        (map(MapType::Stack, 0, 8, 8), PUSH),
        (map(MapType::BloomFilter, 0, 8, 8), PUSH),
        (map(MapType::Ringbuf, 0, 0, 4096), SEND),
        (map(MapType::PerfEventArray, 4, 4, 4), SEND_PERF),
        (map(MapType::StackTrace, 4, 80, 8), STACK),
        (map(MapType::ProgArray, 4, 4, 2), JUMP),
        (outer(MapType::ArrayOfMaps), LOOK_UP),
        (outer(MapType::HashOfMaps), LOOK_UP),
    ]
}

fn user_recording(def: &MapDef, code: &str, firings: u64) -> UserRecording {
    let programs = vec![program("uses", &[def.clone()].into(), code)];
    let mut recorder = Recorder::new(programs, 8);
    for number in 0..firings {
        recorder.fire(0, &Event::bytes((7 + number).to_le_bytes().to_vec()));
    }
    recorder.finish()
}

/// The verdict on the map, or on its records.
fn word_of_map(report: &Report) -> Word {
    match (&report.maps[..], &report.outputs[..]) {
        ([map], []) => map.verdict.word(),
        ([], [output]) => output.verdict.word(),
        _ => panic!("{report:#?}"),
    }
}

/// A map is equal only if a change of its final contents or of its records is detected; every
/// other map is named as not compared.
#[test]
fn a_map_is_equal_only_if_a_change_in_it_is_seen() {
    for (def, code) in kinds() {
        let kind = def.map_type;
        let mut recording = user_recording(&def, code, 3);
        let report = replayed(&recording);
        is_equal_as_far_as_it_can_be(&recording, &report);
        let is_named = UNREADABLE.contains(&kind);
        assert_eq!(
            word_of_map(&report) == Word::NothingCompared,
            is_named,
            "{kind}"
        );
        let after = recording
            .entries
            .iter_mut()
            .rfind(|(when, ..)| *when == When::After);
        match (after, recording.outputs.last_mut()) {
            (Some((.., value)), _) => value[0] ^= 0x40,
            (None, Some((.., bytes))) => bytes[0] ^= 0x40,
            // A map that is empty or can't be read.
            (None, None) => {
                let entry = (When::After, 0, vec![1, 0, 0, 0], vec![1, 0, 0, 0]);
                recording.entries.push(entry);
            }
        }
        let report = replayed(&recording);
        let expected = match (is_named, kind) {
            (true, _) => Word::NothingCompared,
            (false, MapType::LruHash | MapType::LruPercpuHash) => Word::NothingCompared,
            (false, _) => Word::Different,
        };
        assert_eq!(word_of_map(&report), expected, "{kind}: {report:#?}");
        assert!(!report.is_fine(), "{kind}");
        for map in &report.maps {
            if let MapVerdict::Different { is_outside, .. } = map.verdict {
                assert!(is_outside, "no firing did it: {kind}");
            }
        }
    }
}

/// Without an event nothing is equal, whatever the map holds.
#[test]
fn without_an_event_nothing_is_compared() {
    for (def, code) in kinds() {
        let kind = def.map_type;
        let report = replayed_silently(&user_recording(&def, code, 0));
        assert_eq!(report.word(), Word::NothingCompared, "{kind}: {report:#?}");
        let never = Verdict::NotCompared(NotCompared::NeverRan);
        assert_eq!(report.programs[0].verdict, never);
        for map in &report.maps {
            assert_eq!(map.verdict.word(), Word::NothingCompared, "{kind}");
        }
        assert_eq!(report.outputs, [], "{kind}");
    }
}

/// Maps and outputs of a program that was not recorded are not compared; others are.
#[test]
fn what_was_not_recorded_is_named() {
    for (def, code) in kinds() {
        let kind = def.map_type;
        let maps: Arc<[MapDef]> = [def, MapDef::new("own", MapType::Array, 4, 8, 1)].into();
        let count = "
            *(u32 *)(r10 - 4) = 0
            r1 = map[idx:1]
            r2 = r10
            r2 += -4
            call bpf_map_lookup_elem
            if r0 == 0 goto out
            r1 = 1
            lock *(u64 *)(r0 + 0) += r1";
        let print = "
            *(u32 *)(r10 - 8) = 0x000a6968
            r1 = r10
            r1 += -8
            r2 = 4
            call bpf_trace_printk";
        let programs = [("uses", code), ("counts", count), ("prints", print)];
        let programs = programs.map(|(name, code)| program(name, &maps, code));
        let mut recorder = Recorder::new(programs.to_vec(), 8);
        recorder.fire(1, &Event::bytes(vec![1; 8]));
        let mut recording = recorder.finish();
        let why = || "a reason".to_owned();
        recording.how = vec![
            (0, How::OutputsOnly { why: why() }),
            (2, How::OutputsOnly { why: why() }),
        ];
        recording.left_out = vec![LeftOut::new("probe", "not attached: no kprobes")];
        let report = replayed_silently(&recording);
        assert_eq!(report.word(), Word::PartlyCompared, "{kind}: {report:#?}");
        let gaps = report.gaps();
        let gaps: Vec<_> = gaps.iter().map(|gap| (gap.kind, &*gap.name)).collect();
        let is_output = matches!(kind, MapType::Ringbuf | MapType::PerfEventArray);
        let of_map = match is_output {
            true => ("output", "map"),
            false => ("map", "map"),
        };
        let programs = ["uses", "prints", "probe"].map(|name| ("program", name));
        // Through a map of maps it may be any map that a program uses.
        let of_own = kind.holds_maps().then_some(("map", "own"));
        let expected: Vec<_> = programs
            .into_iter()
            .chain([of_map])
            .chain(of_own)
            .chain([("output", "printk")])
            .collect();
        assert_eq!(gaps, expected, "{kind}");
        let find = |name: &str| {
            let mut programs = report.programs.iter();
            programs.find(|program| program.name == name).unwrap()
        };
        assert_eq!(find("counts").verdict.word(), Word::Equal, "{kind}");
        let unrecorded = Verdict::NotCompared(NotCompared::Unrecorded(why()));
        assert_eq!(find("uses").verdict, unrecorded);
        let own = report.maps.iter().find(|map| map.name == "own").unwrap();
        assert_eq!(
            own.verdict == MapVerdict::Equal(1),
            of_own.is_none(),
            "{kind}: {own:?}"
        );
        // Without the recorded program nothing is compared.
        recording.firings.clear();
        recording.sequences.fill(0);
        recording.entries.retain(|(when, ..)| *when == When::Before);
        let before: Vec<_> = recording.entries.clone();
        let after = before
            .into_iter()
            .map(|(_, map, key, value)| (When::After, map, key, value));
        recording.entries.extend(after);
        let report = replayed_silently(&recording);
        assert_eq!(report.word(), Word::NothingCompared, "{kind}: {report:#?}");
    }
}

/// Queues return the first value, stacks the last: the order of the rest is compared.
#[test]
fn what_is_left_in_queues_and_stacks_is_compared_in_its_order() {
    for map_type in [MapType::Queue, MapType::Stack] {
        let def = MapDef::new("map", map_type, 0, 8, 8);
        let push = kinds()
            .into_iter()
            .find(|(def, _)| def.map_type == map_type);
        let pop = "
            r1 = map[idx:0]
            r2 = r10
            r2 += -8
            call bpf_map_pop_elem";
        let maps: Arc<[MapDef]> = [def].into();
        let push = program("push", &maps, push.unwrap().1);
        let programs = vec![push, program("pop", &maps, pop)];
        let mut recorder = Recorder::new(programs, 8);
        for (fired, number) in [(0, 1), (0, 2), (0, 3), (1, 0), (0, 4)] {
            recorder.fire(fired, &Event::bytes(u64::to_le_bytes(number).to_vec()));
        }
        let mut recording = recorder.finish();
        let left: Vec<u8> = recording
            .entries
            .iter()
            .filter(|(when, ..)| *when == When::After)
            .map(|(.., value)| value[0])
            .collect();
        match map_type {
            MapType::Queue => assert_eq!(left, [2, 3, 4]),
            _ => assert_eq!(left, [1, 2, 4]),
        }
        let report = replayed(&recording);
        assert_eq!(report.word(), Word::Equal, "{map_type}: {report:#?}");
        assert_eq!(report.maps[0].verdict, MapVerdict::Equal(3));
        let last = recording.entries.len() - 1;
        let moved = recording.entries.remove(last);
        recording.entries.insert(last - 1, moved);
        let report = replayed(&recording);
        assert!(
            matches!(
                report.maps[0].verdict,
                MapVerdict::Different { entries: 2, .. }
            ),
            "{map_type}: {report:#?}"
        );
    }
}

/// Contents before the recording are what the programs read.
#[test]
fn a_queue_that_was_not_empty_is_set() {
    for map_type in [MapType::Queue, MapType::Stack] {
        let def = MapDef::new("map", map_type, 0, 8, 8);
        let code = "
            r1 = map[idx:0]
            r2 = r10
            r2 += -8
            call bpf_map_pop_elem";
        let mut recorder = Recorder::new(vec![program("pop", &[def].into(), code)], 8);
        let values = [5u64, 6, 7];
        for value in values {
            let map = recorder.vm.map("map").unwrap();
            let written = map
                .raw()
                .write(&[], &value.to_le_bytes(), Default::default());
            written.unwrap();
        }
        recorder.fire(0, &Event::bytes(vec![0; 8]));
        let mut recording = recorder.finish();
        let before =
            values.map(|value| (When::Before, 0, Vec::new(), value.to_le_bytes().to_vec()));
        recording.entries.extend(before);
        let report = replayed(&recording);
        assert_eq!(report.word(), Word::Equal, "{map_type}: {report:#?}");
        assert_eq!(report.maps[0].verdict, MapVerdict::Equal(2));
    }
}

/// The prog array of a replay has the object's programs; a change of the array while recording is
/// detected.
#[test]
fn a_prog_array_that_was_changed_is_seen() {
    let mut def = MapDef::new("jumps", MapType::ProgArray, 4, 4, 2);
    def.initial = vec![Initial::Program {
        index: 1,
        name: "second".to_owned(),
    }];
    let jump = "
        r2 = map[idx:0]
        r3 = 1
        call bpf_tail_call";
    let maps: Arc<[MapDef]> = [def].into();
    let programs = vec![
        program("first", &maps, jump),
        program("second", &maps, "r1 = 0"),
    ];
    let mut recorder = Recorder::new(programs, 8);
    recorder.fire(0, &Event::bytes(vec![0; 8]));
    let mut recording = recorder.finish();
    let report = replayed(&recording);
    assert_eq!(report.word(), Word::Equal, "{report:#?}");
    assert_eq!(report.maps[0].verdict, MapVerdict::Equal(1));
    let last = recording.entries.last_mut().unwrap();
    last.3[0] += 1;
    let report = replayed(&recording);
    assert_eq!(
        report.maps[0].verdict.word(),
        Word::Different,
        "{report:#?}"
    );
}

/// The report, the same on each engine, if some programs run on none.
fn replayed_silently(recording: &UserRecording) -> Report {
    super::replayed_on(recording, bpflab::harness::EngineKind::default())
}
