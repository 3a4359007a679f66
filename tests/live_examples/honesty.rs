//! No false "equal": a real recording with one byte changed or one firing removed is never equal.

use bpflab::Object;
use bpflab::compare::live::LiveOptions;
use bpflab::compare::recording::{Part, Recording, Writer};
use bpflab::compare::replay::{Replay, Report, Word};
use bpflab::harness::EngineKind;
use bpflab::instrument::Firing;

use crate::run::{example, record};
use crate::work;

/// Rewrites a recording; `change` gets each firing's number and bytes, may change the bytes, and
/// removes the firing by returning false.
fn changed(bytes: &[u8], mut change: impl FnMut(u64, &mut Vec<u8>) -> bool) -> Vec<u8> {
    let mut recording = Recording::new(bytes).unwrap();
    let mut writer = Writer::new(Vec::new(), recording.header()).unwrap();
    let mut number = 0;
    loop {
        match recording.next_part().unwrap().unwrap() {
            Part::Firings(firings) => {
                for firing in firings {
                    let mut firing = firing.to_vec();
                    if change(number, &mut firing) {
                        writer.firing(&firing).unwrap();
                    }
                    number += 1;
                }
                Ok(())
            }
            Part::Entries(mut entries) => entries.try_for_each(|entry| writer.map_entry(&entry)),
            Part::MapReads(mut reads) => reads.try_for_each(|read| writer.map_read(&read)),
            Part::Outputs(mut outputs) => outputs.try_for_each(|output| writer.output(&output)),
            Part::Losses(mut losses) => losses.try_for_each(|loss| writer.loss(&loss)),
            Part::Resources(mut files) => files.try_for_each(|file| writer.resource(&file)),
            Part::End(end) => return writer.finish(end.summary).unwrap(),
            other => panic!("{other:?}"),
        }
        .unwrap();
    }
}

/// The report of a replay.
fn replayed(object: &Object, bytes: Vec<u8>) -> Report {
    let replay = Replay::new(object, bytes).unwrap();
    replay.run(EngineKind::default()).unwrap()
}

/// A recording of the example, with its object.
fn recorded(name: &str, work: &str, count: u64) -> Option<(Object, Vec<u8>)> {
    let object = example(name);
    let options = LiveOptions::default();
    let (bytes, summary) = record(name, &object, &options, &mut work::command(work, count))?;
    assert!(
        summary.recorded() >= count && summary.lost() == 0,
        "{summary:?}"
    );
    Some((object, bytes))
}

#[test]
fn a_byte_of_a_firing_that_was_changed_is_seen() {
    let Some((object, bytes)) = recorded("write_hist", "writes", 40) else {
        return;
    };
    let unchanged = changed(&bytes, |_, _| true);
    assert_eq!(replayed(&object, unchanged).word(), Word::Equal);
    // The return value and each byte of the log of a firing in the middle.
    const RETURNED: usize = 56;
    let mut len = 0;
    let mut log = 0;
    changed(&bytes, |number, firing| {
        if number == 20 {
            len = firing.len();
            log = len - Firing::parse(firing).unwrap().log.len();
        }
        true
    });
    assert!(log < len, "it has a log");
    for at in (RETURNED..RETURNED + 8).chain(log..len) {
        let flipped = changed(&bytes, |number, firing| {
            if number == 20 {
                firing[at] ^= 0x40;
            }
            true
        });
        let report = replayed(&object, flipped);
        assert_eq!(
            report.word(),
            Word::Different,
            "byte {at} of {len}: {report:?}"
        );
    }
}

#[test]
fn a_size_that_was_changed_is_seen() {
    let Some((object, bytes)) = recorded("write_hist", "writes", 40) else {
        return;
    };
    // `args[2]`: the third argument, after the common fields and the number.
    const CONTEXT: usize = 64;
    const SIZE: usize = CONTEXT + 16 + 2 * 8;
    for bit in 0..7 {
        let flipped = changed(&bytes, |number, firing| {
            if number == 20 {
                firing[SIZE + bit / 4] ^= 0x80 >> bit;
            }
            true
        });
        let word = replayed(&object, flipped).word();
        // The bits below the highest one don't change the power of two.
        assert!(matches!(word, Word::Different | Word::Equal), "{word}");
        if bit == 0 {
            assert_eq!(word, Word::Different, "it was a small size");
        }
    }
}

#[test]
fn an_event_that_was_taken_out_is_missed() {
    let Some((object, bytes)) = recorded("write_hist", "writes", 40) else {
        return;
    };
    let mut firings = 0;
    changed(&bytes, |_, _| {
        firings += 1;
        true
    });
    for gone in [0, 20, firings - 1] {
        let report = replayed(&object, changed(&bytes, |number, _| number != gone));
        assert_eq!(
            report.word(),
            Word::Incomplete,
            "without {gone}: {report:?}"
        );
        let missing = report.missing.join("; ");
        assert!(missing.contains("missing"), "{missing}");
    }
    // A duplicate firing is not equal either.
    let mut kept = Vec::new();
    let twice = changed(&bytes, |number, firing| {
        if number == 20 {
            kept.clone_from(firing);
        } else if number == 21 {
            firing.clone_from(&kept);
        }
        true
    });
    assert_eq!(replayed(&object, twice).word(), Word::Incomplete);
}

#[test]
fn an_output_that_was_taken_out_is_missed() {
    let Some((object, bytes)) = recorded("execsnoop", "processes", 5) else {
        return;
    };
    assert!(replayed(&object, bytes.clone()).is_fine());
    let mut recording = Recording::new(&bytes[..]).unwrap();
    let mut writer = Writer::new(Vec::new(), recording.header()).unwrap();
    let mut outputs = 0;
    let shortened = loop {
        match recording.next_part().unwrap().unwrap() {
            Part::Firings(mut firings) => firings.try_for_each(|firing| writer.firing(firing)),
            Part::Entries(mut entries) => entries.try_for_each(|entry| writer.map_entry(&entry)),
            Part::MapReads(mut reads) => reads.try_for_each(|read| writer.map_read(&read)),
            Part::Outputs(mut all) => all.try_for_each(|output| {
                outputs += 1;
                match outputs {
                    3 => Ok(()),
                    _ => writer.output(&output),
                }
            }),
            Part::End(end) => break writer.finish(end.summary).unwrap(),
            _ => Ok(()),
        }
        .unwrap();
    };
    let report = replayed(&object, shortened);
    assert_eq!(report.word(), Word::Different, "{report:?}");
}

#[test]
fn a_byte_of_the_file_that_was_changed_is_seen() {
    let Some((object, bytes)) = recorded("write_hist", "writes", 40) else {
        return;
    };
    for at in (0..bytes.len()).step_by(97) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        let told = match Replay::new(&object, flipped) {
            Ok(replay) => replay
                .run(EngineKind::default())
                .map(|report| report.word()),
            Err(error) => Err(error),
        };
        let is_seen = match told {
            Ok(word) => word == Word::Incomplete,
            Err(_) => true,
        };
        assert!(is_seen, "byte {at} of {}", bytes.len());
    }
    for len in [bytes.len() - 1, bytes.len() / 2] {
        let cut = bytes[..len].to_vec();
        let word = Replay::new(&object, cut).and_then(|it| it.run(EngineKind::default()));
        assert!(word.map_or(true, |report| report.word() == Word::Incomplete));
    }
}
