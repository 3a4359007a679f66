//! Recordings that were changed: the verdict says so.

use bpflab::compare::replay::{Different, Report, Verdict, Word};
use bpflab::harness::EngineKind;
use bpflab::instrument::{Firing, Plan, Source, What};

use super::examples::taped;
use super::taped::{CPUS, Taped};
use super::{replayed, replayed_on};

/// Changes a firing: its parts can be replaced.
pub fn change(
    taped: &mut Taped,
    number: usize,
    change: impl FnOnce(&mut Firing<'_>, &mut Vec<u8>),
) {
    let bytes = taped.firings[number].clone();
    let mut firing = Firing::parse(&bytes).unwrap();
    let mut log = firing.log.to_vec();
    change(&mut firing, &mut log);
    let firing = Firing {
        log: &log,
        ..firing
    };
    let mut written = Vec::new();
    firing.write(&mut written);
    taped.firings[number] = written;
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
    let mut taped = taped("write_hist", 30, 1);
    change(&mut taped, 17, |firing, _| firing.returned ^= 1);
    let report = replayed(&taped);
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

/// The bytes of a log that came from the world: if nothing that a program does depends on
/// one of them, another value there is as good.
fn of_the_world(taped: &Taped, number: usize) -> Vec<usize> {
    let firing = Firing::parse(&taped.firings[number]).unwrap();
    let plan = Plan::new(&taped.programs[firing.program as usize]).unwrap();
    let entries = plan.entries(firing.log).map(Result::unwrap);
    let world = entries.filter(|entry| entry.site.source == Source::World);
    let bytes = world.flat_map(|entry| {
        let start = entry.offset + 2;
        start..start + entry.payload.len()
    });
    bytes.collect()
}

#[test]
fn each_byte_of_a_log_counts() {
    for file in ["write_hist", "runqlat", "execsnoop"] {
        let whole = taped(file, 12, 1);
        let number = whole.firings.len() - 1;
        let len = Firing::parse(&whole.firings[number]).unwrap().log.len();
        assert!(len > 4, "{file}");
        let free = of_the_world(&whole, number);
        assert!(free.len() < len, "{file}");
        for at in 0..len {
            let mut taped = whole.clone();
            change(&mut taped, number, |_, log| log[at] ^= 0x55);
            let report = replayed_on(&taped, EngineKind::Jit);
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
    let mut taped = taped("write_hist", 30, 1);
    // The operand of the atomic addition is the last thing in the log.
    change(&mut taped, 8, |_, log| {
        *log.iter_mut().nth_back(7).unwrap() = 9
    });
    let report = replayed(&taped);
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
    let whole = taped("write_hist", 20, CPUS);
    for number in [0, 7, 19] {
        let mut taped = whole.clone();
        taped.firings.remove(number);
        let report = replayed(&taped);
        assert_eq!(report.word(), Word::Incomplete, "{number}: {report:#?}");
        let line = &report.missing[0];
        assert!(line.starts_with("1 firing is missing on CPU"), "{line}");
    }
}

#[test]
fn two_events_swapped_are_told() {
    let whole = taped("write_hist", 20, 1);
    let mut taped = whole.clone();
    taped.firings.swap(4, 5);
    let report = replayed(&taped);
    assert_eq!(report.word(), Word::Incomplete, "{report:#?}");
    let mut taped = whole;
    let again = taped.firings[3].clone();
    taped.firings.insert(9, again);
    let report = replayed(&taped);
    assert_eq!(report.word(), Word::Incomplete, "{report:#?}");
}

#[test]
fn another_last_value_of_a_map_is_a_difference() {
    let mut taped = taped("write_hist", 20, 1);
    let entry = taped
        .entries
        .iter_mut()
        .rev()
        .find(|(.., value)| value[0] != 0)
        .unwrap();
    entry.3[0] += 1;
    let report = replayed(&taped);
    assert_eq!(report.word(), Word::Different, "{report:#?}");
    assert_eq!(report.programs[0].verdict.word(), Word::Equal);
}

/// The last firing with an entry in which a field of this kind holds what is asked for, and
/// where in its log the field is.
fn last_with(taped: &Taped, what: What, holds: impl Fn(&[u8]) -> bool) -> (usize, usize) {
    let plans = taped
        .programs
        .iter()
        .map(|program| Plan::new(program).unwrap());
    let plans: Vec<_> = plans.collect();
    let numbers = (0..taped.firings.len()).rev();
    let found = { numbers }.find_map(|number| {
        let firing = Firing::parse(&taped.firings[number]).unwrap();
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

/// What is found in a map is another value, or an element, as if another CPU had been
/// quicker: a difference if nobody else wrote there, otherwise none.
#[test]
fn memory_that_others_may_have_changed() {
    type Chosen = fn(&[u8]) -> bool;
    let changes: [(What, Chosen); 2] = [
        // Nanoseconds of a time, of which the slot of the histogram does not depend.
        (What::Loaded, |bytes| bytes.len() == 8),
        (What::Found, |bytes| bytes == [0]),
    ];
    for (what, holds) in changes {
        let mut alone = taped("runqlat", 200, 1);
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

        let mut several = taped("runqlat", 200, CPUS);
        let (number, at) = last_with(&several, what, holds);
        change(&mut several, number, |_, log| log[at] ^= 1);
        let report = replayed(&several);
        assert!(report.is_fine(), "{what:?}: {report:#?}");
        let raced: u64 = report.programs.iter().map(|program| program.raced).sum();
        assert_eq!(raced, 1);
    }
}

/// A run that is over before the recorded one was, and one that goes on.
#[test]
fn a_log_that_is_shorter_or_longer() {
    let whole = taped("runqlat", 40, 1);
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
