//! Verdicts on recordings that were changed.

use bpflab::compare::replay::{Different, Report, Verdict, Word};
use bpflab::harness::EngineKind;
use bpflab::instrument::{AccessedState, Firing, Plan, What};

use super::examples::user_recording;
use super::user_recording::{CPUS, UserRecording};
use super::{replayed, replayed_on};
use crate::shared::sample;

/// Changes a firing's fields and log.
pub fn change(
    recording: &mut UserRecording,
    number: usize,
    change: impl FnOnce(&mut Firing<'_>, &mut Vec<u8>),
) {
    let bytes = recording.firings[number].clone();
    let mut firing = Firing::parse(&bytes).unwrap();
    let mut log = firing.log.to_vec();
    change(&mut firing, &mut log);
    let firing = Firing {
        log: &log,
        ..firing
    };
    let mut written = Vec::new();
    firing.write(&mut written);
    recording.firings[number] = written;
}

fn first(report: &Report) -> &bpflab::compare::replay::FirstDifference {
    let mut verdicts = report.programs.iter().map(|program| &program.verdict);
    let found = verdicts.find_map(|verdict| match verdict {
        Verdict::Different(first) => Some(&**first),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{report:#?}"))
}

#[test]
fn another_return_value_is_a_difference() {
    let mut recording = user_recording("write_hist", 30, 1);
    change(&mut recording, 17, |firing, _| firing.returned ^= 1);
    let report = replayed(&recording);
    assert_eq!(report.word(), Word::Different);
    let first = first(&report);
    assert_eq!((first.firing, first.cpu, first.sequence), (17, 0, 17));
    assert_eq!(
        first.what,
        Different::Returned {
            expected: 1,
            got: 0
        }
    );
}

/// The bytes of a log that are inputs from outside: another value is equal if nothing that the
/// program does depends on it.
fn of_the_world(recording: &UserRecording, number: usize) -> Vec<usize> {
    let firing = Firing::parse(&recording.firings[number]).unwrap();
    let plan = Plan::new(&recording.programs[firing.program as usize]).unwrap();
    let entries = plan.entries(firing.log).map(Result::unwrap);
    let world = entries.filter(|entry| entry.site.accesses == AccessedState::World);
    let bytes = world.flat_map(|entry| {
        let start = entry.offset + 2;
        start..start + entry.payload.len()
    });
    bytes.collect()
}

#[test]
fn each_byte_of_a_log_counts() {
    for file in ["write_hist", "runqlat", "execsnoop"] {
        let whole = user_recording(file, 12, 1);
        let number = whole.firings.len() - 1;
        let len = Firing::parse(&whole.firings[number]).unwrap().log.len();
        assert!(len > 4, "{file}");
        let free = of_the_world(&whole, number);
        assert!(free.len() < len, "{file}");
        for at in (0..len).step_by(sample::step()) {
            let mut recording = whole.clone();
            change(&mut recording, number, |_, log| log[at] ^= 0x55);
            let report = replayed_on(&recording, EngineKind::Jit);
            if free.contains(&at) && report.word() == Word::Equal {
                continue;
            }
            assert_eq!(
                report.word(),
                Word::Different,
                "{file}, byte {at}: {report:#?}"
            );
            assert_eq!(first(&report).firing, number as u64);
        }
    }
}

#[test]
fn the_place_is_told_with_its_registers() {
    let mut recording = user_recording("write_hist", 30, 1);
    // The operand of the atomic addition is the last thing in the log.
    change(&mut recording, 8, |_, log| {
        *log.iter_mut().nth_back(7).unwrap() = 9
    });
    let report = replayed(&recording);
    let first = first(&report);
    let place = first.place.as_ref().unwrap();
    let Different::Given {
        what,
        expected,
        got,
    } = &first.what
    else {
        panic!("{first:#?}");
    };
    assert_eq!((*what, expected[0], got[0]), (What::Operand, 9, 1));
    assert!(place.text.contains("lock"), "{place:?}");
    let source = place.source.as_ref().unwrap();
    assert!(source.text.contains("__sync_fetch_and_add"), "{source:?}");
    assert_eq!(first.registers.len(), 11);
    assert_eq!(first.registers[1].1, 1, "r1 is what is added: {first:#x?}");
}

#[test]
fn one_event_less_is_incomplete() {
    let whole = user_recording("write_hist", 20, CPUS);
    for number in [0, 7, 19] {
        let mut recording = whole.clone();
        recording.firings.remove(number);
        let report = replayed(&recording);
        assert_eq!(report.word(), Word::Incomplete, "{number}: {report:#?}");
        let line = &report.missing[0];
        assert!(line.starts_with("1 firing is missing on CPU"), "{line}");
    }
}

#[test]
fn two_events_swapped_are_told() {
    let whole = user_recording("write_hist", 20, 1);
    let mut recording = whole.clone();
    recording.firings.swap(4, 5);
    let report = replayed(&recording);
    assert_eq!(report.word(), Word::Incomplete, "{report:#?}");
    let mut recording = whole;
    let again = recording.firings[3].clone();
    recording.firings.insert(9, again);
    let report = replayed(&recording);
    assert_eq!(report.word(), Word::Incomplete, "{report:#?}");
}

#[test]
fn another_last_value_of_a_map_is_a_difference() {
    let mut recording = user_recording("write_hist", 20, 1);
    let entry = recording
        .entries
        .iter_mut()
        .rev()
        .find(|(.., value)| value[0] != 0)
        .unwrap();
    entry.3[0] += 1;
    let report = replayed(&recording);
    assert_eq!(report.word(), Word::Different, "{report:#?}");
    assert_eq!(report.programs[0].verdict.word(), Word::Equal);
}

/// The last firing with a field of this kind for which `holds` is true, and the field's offset in
/// its log.
fn last_with(
    recording: &UserRecording,
    what: What,
    holds: impl Fn(&[u8]) -> bool,
) -> (usize, usize) {
    let plans = recording
        .programs
        .iter()
        .map(|program| Plan::new(program).unwrap());
    let plans: Vec<_> = plans.collect();
    let numbers = (0..recording.firings.len()).rev();
    let found = { numbers }.find_map(|number| {
        let firing = Firing::parse(&recording.firings[number]).unwrap();
        let entries = plans[firing.program as usize].entries(firing.log);
        let mut entries = entries.map(Result::unwrap);
        let entry = entries.find(|entry| {
            let mut fields = entry.fields();
            fields.any(|(field, bytes)| field.what == what && holds(bytes))
        })?;
        Some((number, entry.offset + 2))
    });
    found.expect("there is one")
}

/// A value read from a map is changed, as if another CPU had written it: a difference if no other
/// firing wrote there, otherwise none.
#[test]
fn memory_that_others_may_have_changed() {
    type Chosen = fn(&[u8]) -> bool;
    let changes: [(What, Chosen); 2] = [
        // The low bits of a time, which don't change the histogram's slot.
        (What::Loaded, |bytes| bytes.len() == 8),
        (What::Found, |bytes| bytes == [0]),
    ];
    for (what, holds) in changes {
        let mut alone = user_recording("runqlat", 200, 1);
        let (number, at) = last_with(&alone, what, holds);
        change(&mut alone, number, |_, log| log[at] ^= 1);
        let report = replayed(&alone);
        let first = first(&report);
        assert!(
            matches!(first.what, Different::Found { what: found, .. } if found == what),
            "{first:#?}"
        );
        assert!(first.place.is_some() && !first.registers.is_empty());
        assert_eq!(first.firing, number as u64);

        let mut several = user_recording("runqlat", 200, CPUS);
        let (number, at) = last_with(&several, what, holds);
        change(&mut several, number, |_, log| log[at] ^= 1);
        let report = replayed(&several);
        assert!(report.is_fine(), "{what:?}: {report:#?}");
        let raced: u64 = report.programs.iter().map(|program| program.raced).sum();
        assert_eq!(raced, 1);
    }
}

/// A replay that ends before the recorded run, and one that continues after it.
#[test]
fn a_log_that_is_shorter_or_longer() {
    let whole = user_recording("runqlat", 40, 1);
    let (number, _) = last_with(&whole, What::Loaded, |_| true);
    let mut shorter = whole.clone();
    change(&mut shorter, number, |_, log| {
        log.pop();
    });
    let report = replayed(&shorter);
    assert_eq!(report.word(), Word::Different, "{report:#?}");
    let mut longer = whole;
    change(&mut longer, number, |_, log| {
        let copy = log.clone();
        log.extend(copy);
    });
    let report = replayed(&longer);
    let first = first(&report);
    assert!(
        matches!(
            &first.what,
            Different::Path {
                expected: Some(_),
                got: None
            }
        ),
        "{first:#?}"
    );
}
