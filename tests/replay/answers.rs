//! What only the kernel that was recorded can answer: recordings whose answers are another
//! kernel's.

use std::sync::Arc;

use bpflab::compare::replay::{Different, Verdict, Word};
use bpflab::isa::assemble_with;
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType};
use bpflab::vm::events::Event;

use super::changes::change;
use super::replayed;
use super::taped::{Recorder, Taped};

fn program(map: MapDef, code: &str) -> Arc<Program> {
    let mut program = Program::new("asks", ProgType::RawTracepoint, Vec::new());
    program.maps = [map].into();
    program.license = "GPL".into();
    program.insns = assemble_with(code, &program).unwrap().slots;
    Arc::new(program)
}

fn recorded(map: MapDef, code: &str, firings: u64) -> Taped {
    let mut recorder = Recorder::new(vec![program(map, code)], 8);
    for number in 0..firings {
        recorder.fire(0, &Event::bytes(number.to_le_bytes().to_vec()));
    }
    recorder.finish()
}

/// Puts another result into the log of each firing that has this one, wherever a program
/// returned what it was told.
fn answers(taped: &mut Taped, from: u64, to: u64) -> usize {
    let (from, to) = (from.to_le_bytes(), to.to_le_bytes());
    let mut count = 0;
    for number in 0..taped.firings.len() {
        change(taped, number, |firing, log| {
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

/// Pushes small numbers and asks for others: where a filter has its bits each kernel draws by
/// lot, so that it takes another one of the others for a member.
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
    let mut taped = recorded(filter, code, 20);
    let absent = (-2_i64).cast_unsigned();
    assert!(answers(&mut taped, absent, 0) > 5, "most are not members");
    let report = replayed(&taped);
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
    // What is pushed is the program's own.
    change(&mut taped, 3, |_, log| {
        let at = log.windows(8).position(|bytes| bytes == 3u64.to_le_bytes());
        log[at.unwrap()] = 99;
    });
    let report = replayed(&taped);
    assert_eq!(report.word(), Word::Different, "{report:#?}");
}

/// Each operation of a map that fails: before Linux 6.4 half of the result is there.
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
        let mut taped = recorded(map, &code, 3);
        let errno = bpflab::instrument::Firing::parse(&taped.firings[0])
            .unwrap()
            .returned;
        assert!(errno.cast_signed() < 0, "{helper} fails: {errno:#x}");
        assert_eq!(answers(&mut taped, errno, errno & u64::from(u32::MAX)), 3);
        for (release, word) in [
            ("5.15.0-91-generic", Word::Equal),
            ("6.1.0-41-amd64", Word::Equal),
            ("6.3.13", Word::Equal),
            ("6.4.0", Word::Different),
            ("6.18.44", Word::Different),
            ("", Word::Different),
        ] {
            release.clone_into(&mut taped.release);
            let report = replayed(&taped);
            assert_eq!(report.word(), word, "{helper} on {release}: {report:#?}");
        }
        // The half that is there has to be the same.
        let half = errno & u64::from(u32::MAX);
        assert_eq!(answers(&mut taped, half, half - 1), 3);
        "6.1.0".clone_into(&mut taped.release);
        let report = replayed(&taped);
        let Verdict::Different(first) = &report.programs[0].verdict else {
            panic!("{helper}: {report:#?}");
        };
        match &first.what {
            Different::Found { maps, .. } => assert_eq!(maps, &["map"], "{helper}"),
            other => panic!("{helper}: {other:?}"),
        }
    }
}
