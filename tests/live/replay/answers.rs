//! Helper results that only the recorded kernel can determine: recordings with the results of
//! another kernel.

use std::sync::Arc;

use bpflab::compare::replay::{Different, Verdict, Word};
use bpflab::isa::assemble_with;
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType};
use bpflab::vm::events::Event;

use super::changes::change;
use super::replayed;
use super::user_recording::{Recorder, UserRecording};

fn program(map: MapDef, code: &str) -> Arc<Program> {
    let mut program = Program::new("asks", ProgType::RawTracepoint, Vec::new());
    program.maps = [map].into();
    program.license = "GPL".into();
    program.insns = assemble_with(code, &program).unwrap().slots;
    Arc::new(program)
}

fn recorded(map: MapDef, code: &str, firings: u64) -> UserRecording {
    let mut recorder = Recorder::new(vec![program(map, code)], 8);
    for number in 0..firings {
        recorder.fire(0, &Event::bytes(number.to_le_bytes().to_vec()));
    }
    recorder.finish()
}

/// Replaces a result in the log of each firing that returned it; returns how many.
fn answers(recording: &mut UserRecording, from: u64, to: u64) -> usize {
    let (from, to) = (from.to_le_bytes(), to.to_le_bytes());
    let mut count = 0;
    for number in 0..recording.firings.len() {
        change(recording, number, |firing, log| {
            let at = log.windows(8).position(|bytes| bytes == from);
            if let Some(at) = at.filter(|_| firing.returned.to_le_bytes() == from) {
                log[at..at + 8].copy_from_slice(&to);
                firing.returned = u64::from_le_bytes(to);
                count += 1;
            }
        });
    }
    count
}

/// Pushes small numbers and peeks for others: each kernel's filter has a random hash seed, so it
/// takes other non-members for members.
#[test]
fn a_bloom_filter_is_the_kernels() {
    let code = "
        r6 = *(u64 *)(r1 + 0)
        *(u64 *)(r10 - 8) = r6
        r1 = map[idx:0]
        r2 = r10
        r2 += -8
        r3 = 0
        call bpf_map_push_elem
        r6 += 1000
        *(u64 *)(r10 - 8) = r6
        r1 = map[idx:0]
        r2 = r10
        r2 += -8
        call bpf_map_peek_elem
        exit";
    let filter = MapDef::new("filter", MapType::BloomFilter, 0, 8, 64);
    let mut recording = recorded(filter, code, 20);
    let absent = (-2_i64).cast_unsigned();
    assert!(
        answers(&mut recording, absent, 0) > 5,
        "most are not members"
    );
    let report = replayed(&recording);
    assert_eq!(
        report.programs[0].verdict.word(),
        Word::Equal,
        "{report:#?}"
    );
    assert_eq!(report.programs[0].raced, 0);
    assert_eq!(report.word(), Word::PartlyCompared);
    let [gap] = &report.gaps()[..] else {
        panic!("{report:#?}");
    };
    assert_eq!((gap.kind, &*gap.name), ("map", "filter"));
    // Pushed values are outputs of the program.
    change(&mut recording, 3, |_, log| {
        let at = log.windows(8).position(|bytes| bytes == 3u64.to_le_bytes());
        log[at.unwrap()] = 99;
    });
    let report = replayed(&recording);
    assert_eq!(report.word(), Word::Different, "{report:#?}");
}

/// Each map operation that fails: before Linux 6.4 only the low half of the result is defined.
#[test]
fn operations_of_maps_returned_half_a_word() {
    let array = || MapDef::new("map", MapType::Array, 4, 8, 1);
    let queue = || MapDef::new("map", MapType::Queue, 0, 8, 1);
    let stack = || MapDef::new("map", MapType::Stack, 0, 8, 1);
    let call = |map: MapDef, helper: &str, arguments: &str| {
        let code = format!(
            "r6 = 0
            *(u64 *)(r10 - 8) = r6
            *(u64 *)(r10 - 16) = r6
            r1 = map[idx:0]
            r2 = r10
            r2 += -8
            {arguments}
            call {helper}
            exit"
        );
        (helper.to_owned(), map, code)
    };
    let key_and_value = "r3 = r10\nr3 += -16\nr4 = 1";
    for (helper, map, code) in [
        call(array(), "bpf_map_update_elem", key_and_value),
        call(array(), "bpf_map_delete_elem", ""),
        call(queue(), "bpf_map_push_elem", "r3 = 1"),
        call(stack(), "bpf_map_push_elem", "r3 = 1"),
        call(queue(), "bpf_map_pop_elem", ""),
        call(stack(), "bpf_map_pop_elem", ""),
        call(queue(), "bpf_map_peek_elem", ""),
        call(stack(), "bpf_map_peek_elem", ""),
    ] {
        let mut recording = recorded(map, &code, 3);
        let errno = bpflab::instrument::Firing::parse(&recording.firings[0])
            .unwrap()
            .returned;
        assert!(errno.cast_signed() < 0, "{helper} fails: {errno:#x}");
        assert_eq!(
            answers(&mut recording, errno, errno & u64::from(u32::MAX)),
            3
        );
        for (release, word) in [
            ("5.15.0-91-generic", Word::Equal),
            ("6.1.0-41-amd64", Word::Equal),
            ("6.3.13", Word::Equal),
            ("6.4.0", Word::Different),
            ("6.18.44", Word::Different),
            ("", Word::Different),
        ] {
            release.clone_into(&mut recording.release);
            let report = replayed(&recording);
            assert_eq!(report.word(), word, "{helper} on {release}: {report:#?}");
        }
        // The low half must be the same.
        let half = errno & u64::from(u32::MAX);
        assert_eq!(answers(&mut recording, half, half - 1), 3);
        "6.1.0".clone_into(&mut recording.release);
        let report = replayed(&recording);
        let Verdict::Different(first) = &report.programs[0].verdict else {
            panic!("{helper}: {report:#?}");
        };
        match &first.what {
            Different::Found { maps, .. } => assert_eq!(maps, &["map"], "{helper}"),
            other => panic!("{helper}: {other:?}"),
        }
    }
}
