//! Programs that tail-call one another: a firing continues from program to program.

use std::sync::Arc;

use bpflab::Object;
use bpflab::compare::replay::{Different, FirstDifference, Report, Verdict, Word};
use bpflab::instrument::{Begins, Firing, Plan, Segments};
use bpflab::program::Program;
use bpflab::util::Pc;
use bpflab::vm::events::Event;

use super::replayed;
use super::user_recording::{Recorder, UserRecording};

/// Numbers of the programs, and an empty slot of the prog array.
const FIRST: u32 = 0;
const SECOND: u32 = 1;
const AGAIN: u32 = 2;
const MIDDLE: u32 = 3;
const EMPTY: u64 = 3;

fn programs() -> Vec<Arc<Program>> {
    let object = Object::open("tests/objects/relay.bpf.o").unwrap();
    let names = ["first", "second", "again", "middle"];
    let programs = names.map(|name| Arc::new(object.program(name).unwrap()));
    programs.into()
}

/// Firings of `first` to each of these slots.
fn user_recording(slots: &[u64]) -> UserRecording {
    let mut recorder = Recorder::new(programs(), 64);
    for (time, slot) in (1..).zip(slots) {
        recorder.vm.world().clock().set_ns(time * 1000);
        let words = [0, 1, *slot, 40 + time, 5, 0, 0, 0];
        let context: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        recorder.fire(0, &Event::bytes(context));
    }
    recorder.finish()
}

/// The programs that wrote the log of a firing, in order, and its return value.
fn relayed(recording: &UserRecording, number: usize) -> (Vec<(u32, Begins)>, u64) {
    let plans = recording.programs.iter().map(|program| Plan::new(program));
    let plans: Vec<Plan> = plans.map(Result::unwrap).collect();
    let firing = Firing::parse(&recording.firings[number]).unwrap();
    let plan = |number: u32| plans.get(number as usize);
    let segments = Segments::new(firing.program, firing.log, plan);
    let mut bytes = 0;
    let pieces = segments.map(|segment| {
        let plan = plan(segment.program).unwrap();
        assert!(plan.entries(segment.log).all(|entry| entry.is_ok()));
        assert!(segment.offset >= bytes);
        bytes = segment.offset + segment.log.len();
        (segment.program, segment.begins)
    });
    (pieces.collect(), firing.returned)
}

fn first_of(report: &Report, program: u32) -> &FirstDifference {
    match &report.programs[program as usize].verdict {
        Verdict::Different(first) => first,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_firing_ends_where_tail_calls_lead() {
    use Begins::{Fired, TookOver, WentOn};
    let recording = user_recording(&[0, EMPTY, 9, 1, 2, 1 << 32]);
    assert_eq!(recording.firings.len(), 6);
    let to_second = vec![(FIRST, Fired), (SECOND, TookOver)];
    assert_eq!(relayed(&recording, 0), (to_second.clone(), 41));
    // An empty slot, and a slot beyond the end.
    assert_eq!(relayed(&recording, 1), (vec![(FIRST, Fired)], 7));
    assert_eq!(relayed(&recording, 2), (vec![(FIRST, Fired)], 7));
    // The maximum number of tail calls.
    let (chain, returned) = relayed(&recording, 3);
    assert_eq!((chain.len(), returned), (1 + 33, 33));
    assert!(chain[1..].iter().all(|one| *one == (AGAIN, TookOver)));
    // Tail calls from a subprogram, twice: the program continues after its calls.
    let back = [
        (FIRST, Fired),
        (MIDDLE, TookOver),
        (SECOND, TookOver),
        (MIDDLE, WentOn),
        (SECOND, TookOver),
        (MIDDLE, WentOn),
    ];
    assert_eq!(relayed(&recording, 4), (back.to_vec(), 41 + 41));
    // Only the low 32 bits of the index count.
    assert_eq!(relayed(&recording, 5), (to_second, 41));
    let report = replayed(&recording);
    assert_eq!(report.word(), Word::Equal, "{report:#?}");
    assert_eq!(report.firings(), 6);
}

/// Changes a byte of a firing's log, counted from the end of the last segment of a program.
fn change_last(recording: &mut UserRecording, firing: usize, program: u32, back: usize) {
    let plans = recording.programs.iter().map(|program| Plan::new(program));
    let plans: Vec<Plan> = plans.map(Result::unwrap).collect();
    let bytes = recording.firings[firing].clone();
    let parsed = Firing::parse(&bytes).unwrap();
    let start = bytes.len() - parsed.log.len();
    let segments = Segments::new(parsed.program, parsed.log, |number| {
        plans.get(number as usize)
    });
    let segment = segments.filter(|it| it.program == program).last().unwrap();
    let at = start + segment.offset + segment.log.len() - back;
    recording.firings[firing][at] ^= 1;
}

#[test]
fn a_difference_is_the_programs_that_made_it() {
    let whole = user_recording(&[0, 0, 2]);
    // The value that it stores at the end, and the same in its second segment of a firing.
    for (firing, times) in [(1, 2000), (2, 3000)] {
        let mut changed = whole.clone();
        change_last(&mut changed, firing, SECOND, 8);
        let report = replayed(&changed);
        assert_eq!(
            report.programs[0].verdict.word(),
            Word::Equal,
            "{report:#?}"
        );
        let first = first_of(&report, SECOND);
        assert_eq!(first.firing, firing as u64);
        let Different::Given { got, .. } = &first.what else {
            panic!("{first:?}");
        };
        assert_eq!(got[..], u64::to_le_bytes(times));
        let place = first.place.as_ref().unwrap();
        let line = &place.source.as_ref().unwrap().text;
        assert_eq!(line, "k->when = bpf_ktime_get_ns();");
        let r0 = first.registers.first().map(|(_, value)| *value);
        assert_eq!(r0, Some(times), "registers are those of that program");
    }
    // A firing that ended in the kernel before it got there.
    let mut changed = whole.clone();
    change_log(&mut changed, 0, |log| log.truncate(log.len() - 10));
    let report = replayed(&changed);
    let first = first_of(&report, SECOND);
    let Different::Path { expected, got } = &first.what else {
        panic!("{first:?}");
    };
    assert_eq!(expected, &None);
    assert!(got.as_ref().unwrap().text.contains("= r0"), "{got:?}");
}

/// Replaces the log of a firing.
fn change_log(recording: &mut UserRecording, firing: usize, change: impl Fn(&mut Vec<u8>)) {
    let bytes = recording.firings[firing].clone();
    let parsed = Firing::parse(&bytes).unwrap();
    let mut log = parsed.log.to_vec();
    change(&mut log);
    recording.firings[firing].clear();
    let changed = Firing {
        log: &log,
        ..parsed
    };
    changed.write(&mut recording.firings[firing]);
}

/// Another program took over than in the replay, and one took over where none did.
#[test]
fn another_way_is_told_by_the_program_that_goes_it() {
    let whole = user_recording(&[0, EMPTY]);
    // The log names another program.
    let mut changed = whole.clone();
    let bytes = &mut changed.firings[0];
    let mark = bytes
        .windows(2)
        .position(|two| two == [0xfe, 0xff])
        .unwrap();
    bytes[mark + 4] = 2;
    let report = replayed(&changed);
    let Different::Path { expected, got } = &first_of(&report, FIRST).what else {
        panic!("{report:#?}");
    };
    assert_eq!(expected.as_ref().unwrap().pc, Pc(0));
    assert_ne!(expected, got);

    // The program does not exist.
    let mut changed = whole.clone();
    changed.firings[0][mark + 4] = 9;
    let report = replayed(&changed);
    assert!(
        matches!(first_of(&report, FIRST).what, Different::Damaged(_)),
        "{report:#?}"
    );

    // It took over only in the kernel.
    let mut changed = whole;
    change_log(&mut changed, 1, |log| {
        log.extend([0xfe, 0xff, 0, 0, 1, 0, 0, 0])
    });
    let report = replayed(&changed);
    let Different::Path { expected, got } = &first_of(&report, FIRST).what else {
        panic!("{report:#?}");
    };
    assert_eq!((expected.as_ref().unwrap().pc, got), (Pc(0), &None));
}
