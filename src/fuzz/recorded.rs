//! Recordings that are written and read: of a program and its maps, and of a file's contents.

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::compare::recording::{
    Cause, Contents, End, Header, How, Loss, MapEntry, MapRead, ObjectInfo, Output, OutputSource,
    Part, RecordedMap, RecordedProgram, Recording, RecordingError, Resource, Sample, Summary, When,
    WriteError, Writer,
};
use crate::program::{Initial, MapDef, Program};

/// What a whole recording has.
#[derive(Debug, PartialEq, Eq)]
struct Whole {
    header: Header,
    /// The items of each kind as text, in their order.
    items: BTreeMap<&'static str, Vec<String>>,
    end: End,
}

/// Reads a recording; none if it was cut off. `each` gets its parts.
fn read(
    bytes: &[u8],
    mut each: impl FnMut(&Part<'_>) -> Result<(), WriteError>,
) -> Result<Option<Whole>, Failed> {
    let mut recording = Recording::new(bytes)?;
    let header = recording.header().clone();
    let mut items: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    while let Some(part) = recording.next_part()? {
        each(&part)?;
        let (kind, texts) = match part {
            Part::Firings(found) => ("firings", texts(found)),
            Part::Entries(found) => ("entries", texts(found)),
            Part::MapReads(found) => ("map reads", texts(found)),
            Part::Outputs(found) => ("outputs", texts(found)),
            Part::Samples(found) => ("samples", texts(found)),
            // A writer leaves out losses of nothing.
            Part::Losses(found) => ("losses", texts(found.filter(|loss| loss.count > 0))),
            Part::Resources(found) => ("resources", texts(found)),
            Part::End(end) => return Ok(Some(Whole { header, items, end })),
            Part::CutOff(_) => return Ok(None),
        };
        if !texts.is_empty() {
            items.entry(kind).or_default().extend(texts);
        }
    }
    Ok(None)
}

fn texts<T: Debug>(items: impl Iterator<Item = T>) -> Vec<String> {
    items.map(|item| format!("{item:?}")).collect()
}

/// Why a recording was not read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    /// Reading failed.
    #[error("reading the recording: {0}")]
    Read(#[from] RecordingError),
    /// Writing failed.
    #[error("writing the recording: {0}")]
    Write(#[from] WriteError),
    /// What was read is not what was written.
    #[error("written: {written}\nread: {read}")]
    Differs {
        /// What was written, as text.
        written: String,
        /// What was read, as text.
        read: String,
    },
}

fn same(written: &impl Debug, read: &impl Debug, are_same: bool) -> Result<(), Failed> {
    match are_same {
        true => Ok(()),
        false => Err(Failed::Differs {
            written: format!("{written:?}"),
            read: format!("{read:?}"),
        }),
    }
}

/// Reads a recording and writes its contents again, which must read the same. Damaged
/// recordings, and those that were cut off, have no round trip.
///
/// # Errors
/// What differs.
pub(super) fn again(bytes: &[u8]) -> Result<(), Failed> {
    let Ok(recording) = Recording::new(bytes) else {
        return Ok(());
    };
    let mut writer = Writer::new(Vec::new(), recording.header())?;
    let first = match read(bytes, |part| copy(part, &mut writer)) {
        Ok(Some(first)) => first,
        Ok(None) | Err(Failed::Read(_)) => return Ok(()),
        Err(failed) => return Err(failed),
    };
    let file = writer.finish(first.end.summary.clone())?;
    let second = read(&file, |_| Ok(()))?;
    same(&first, &second, second.as_ref() == Some(&first))
}

/// Writes the items of a part.
fn copy(part: &Part<'_>, to: &mut Writer<Vec<u8>>) -> Result<(), WriteError> {
    match part {
        Part::Firings(items) => items.clone().try_for_each(|item| to.firing(item)),
        Part::Entries(items) => items.clone().try_for_each(|item| to.map_entry(&item)),
        Part::MapReads(items) => items.clone().try_for_each(|item| to.map_read(&item)),
        Part::Outputs(items) => items.clone().try_for_each(|item| to.output(&item)),
        Part::Samples(items) => items.clone().try_for_each(|item| to.sample(&item)),
        Part::Losses(items) => items.clone().try_for_each(|item| to.loss(&item)),
        Part::Resources(items) => items.clone().try_for_each(|item| to.resource(&item)),
        Part::End(_) | Part::CutOff(_) => Ok(()),
    }
}

/// Writes a recording of a program and its maps, with an item of each kind made from the
/// program's bytes, and reads it.
///
/// # Errors
/// What differs.
pub(super) fn of_program(program: &Program) -> Result<(), Failed> {
    let bytes: Vec<u8> = program
        .insns
        .iter()
        .flat_map(|insn| insn.to_bytes())
        .collect();
    let header = header(program, &bytes);
    let mut writer = Writer::new(Vec::new(), &header)?;
    let mut items: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    let mut note = |kind, item: &dyn Debug| {
        let of_kind = items.entry(kind).or_default();
        of_kind.push(format!("{item:?}"));
    };
    let resource = Resource {
        name: Resource::OBJECT,
        bytes: &bytes,
    };
    writer.resource(&resource)?;
    note("resources", &resource);
    for (map, def) in (0..).zip(program.maps.iter()) {
        for entry in entries(map, def) {
            writer.map_entry(&entry)?;
            note("entries", &entry);
        }
        let read = MapRead {
            when: When::Before,
            map,
            contents: Contents::Whole,
            entries: entries(map, def).count() as u64,
            why: def.name.as_bytes(),
        };
        writer.map_read(&read)?;
        note("map reads", &read);
    }
    // The words of the instructions are the numbers: all values come up.
    for (number, word) in (0..).zip(bytes.as_chunks::<8>().0) {
        let [low, high] = [&word[..4], &word[4..]].map(|half| {
            half.iter()
                .fold(0, |sum, byte| (sum << 8) | u32::from(*byte))
        });
        let time = u64::from_le_bytes(*word);
        // A third of the items are the program from here on: of many lengths.
        let from_here = bytes.get(number * 8..).unwrap_or_default();
        let raw = if number % 3 == 0 { from_here } else { word };
        match number % 4 {
            0 => {
                writer.firing(raw)?;
                note("firings", &raw);
            }
            1 => {
                let output = Output {
                    source: OutputSource::Perf,
                    map: known(low),
                    cpu: known(high),
                    pid: None,
                    time: Some(time).filter(|time| *time != u64::MAX),
                    bytes: raw,
                };
                writer.output(&output)?;
                note("outputs", &output);
            }
            2 => {
                let sample = Sample {
                    event: low,
                    cpu: high,
                    pid: low,
                    tid: high,
                    time,
                    raw,
                };
                writer.sample(&sample)?;
                note("samples", &sample);
            }
            _ => {
                let loss = Loss {
                    cause: Cause::RingFull,
                    cpu: known(low),
                    of: known(high),
                    count: time.max(1),
                };
                writer.loss(&loss)?;
                note("losses", &loss);
            }
        }
    }
    let totals = *writer.totals();
    let summary = Summary::default();
    let file = writer.finish(summary.clone())?;
    let end = End { summary, totals };
    let written = Whole { header, items, end };
    let back = read(&file, |_| Ok(()))?;
    same(&written, &back, back.as_ref() == Some(&written))
}

/// A number, unless all of its bits are set, which stands for none in a recording.
fn known(number: u32) -> Option<u32> {
    Some(number).filter(|number| *number != u32::MAX)
}

fn header(program: &Program, bytes: &[u8]) -> Header {
    let maps = (0..).zip(program.maps.iter());
    Header {
        bpflab: "round trip".to_owned(),
        possible_cpus: 2,
        command: vec![program.name.clone()],
        object: Some(ObjectInfo::new("round trip", bytes)),
        programs: vec![RecordedProgram::new(
            0,
            program,
            "nowhere",
            0,
            How::Instrumented,
        )],
        maps: maps
            .map(|(number, map)| RecordedMap::new(number, map))
            .collect(),
        ..Header::default()
    }
}

/// The initial entries of a map.
fn entries(number: u32, map: &MapDef) -> impl Iterator<Item = MapEntry<'_>> {
    map.initial.iter().filter_map(move |entry| match entry {
        Initial::Bytes { key, value } => Some(MapEntry {
            when: When::Before,
            map: number,
            key,
            value,
        }),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::assemble;
    use crate::spec::ProgType;

    fn program() -> Program {
        let text = "r1 = -1\nr2 = 0x1122334455667788 ll\nr0 = r1\nr0 ^= r2\nexit";
        Program::new("recorded", ProgType::Xdp, assemble(text).unwrap())
    }

    #[test]
    fn a_program_is_recorded_and_read() {
        of_program(&program()).unwrap();
    }

    /// The comparison sees a changed item, and a changed header.
    #[test]
    fn what_differs_is_seen() {
        let file = |record: &[u8], name: &str| {
            let header = Header {
                bpflab: name.to_owned(),
                ..Header::default()
            };
            let mut writer = Writer::new(Vec::new(), &header).unwrap();
            writer.firing(record).unwrap();
            let file = writer.finish(Summary::default()).unwrap();
            again(&file).unwrap();
            read(&file, |_| Ok(())).unwrap().unwrap()
        };
        let whole = file(b"one", "a");
        assert_eq!(whole, file(b"one", "a"));
        assert_ne!(whole, file(b"two", "a"));
        assert_ne!(whole, file(b"one", "b"));
        assert!(same(&whole, &file(b"two", "a"), false).is_err());
    }

    /// What was cut off has no round trip, and is no error.
    #[test]
    fn cut_off_recordings_are_left_out() {
        let writer = Writer::new(Vec::new(), &Header::default()).unwrap();
        let file = writer.finish(Summary::default()).unwrap();
        for len in 0..=file.len() {
            again(&file[..len]).unwrap();
        }
        let cut = file.len() - 1;
        assert!(!matches!(read(&file[..cut], |_| Ok(())), Ok(Some(_))));
    }
}
