//! Reads a recording to its end, or as far as possible, and counts its contents.

use std::collections::BTreeMap;
use std::io::Read;

use serde::Serialize;

use crate::compare::recording::{
    Cause, Contents, Header, Loss, MapRead, Part, Recording, Sample, Summary, Totals, When,
};
use crate::instrument::{Firing, FiringFlags};

/// The contents of a recording. Its fields are the keys of `bpflab inspect --json`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RecordingReport {
    /// Path or name of the file.
    pub recording: String,
    /// Version of the format.
    pub format: String,
    /// The header.
    pub header: Header,
    /// Firings of each program, in the header's order.
    pub programs: Vec<ProgramActivity>,
    /// Samples of each bare event, in the header's order.
    pub events: Vec<EventActivity>,
    /// Firings on each CPU.
    pub cpus: Vec<CpuActivity>,
    /// How each map was read, in the header's order.
    pub maps: Vec<MapActivity>,
    /// The files that it carries.
    pub resources: Vec<ResourceRow>,
    /// Recorded losses.
    pub losses: Vec<LossRow>,
    /// Totals of what was read.
    pub totals: Totals,
    /// How recording ended; none if the file has no end.
    pub end: Option<Summary>,
    /// Whether the file is whole.
    pub state: ReadState,
    /// Why it is not whole, and where.
    pub problem: Option<String>,
    /// Bytes that were read.
    pub bytes: u64,
}

/// Whether a recording is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReadState {
    /// It was read to its end.
    Whole,
    /// It was cut off.
    CutOff,
    /// Some bytes are damaged.
    Damaged,
}

/// Firings of a program.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct ProgramActivity {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Its firings in the file.
    pub firings: u64,
    /// How many of them interrupted another firing.
    pub nested: u64,
    /// How many have no log, as it was too long.
    pub overflows: u64,
    /// Bytes of their logs.
    pub log_bytes: u64,
    /// When the first firing began, in nanoseconds since recording began.
    pub first: Option<u64>,
    /// When the last firing began.
    pub last: Option<u64>,
}

/// Samples of a bare event.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct EventActivity {
    /// Its number.
    pub number: u32,
    /// `group/name`.
    pub name: String,
    /// Its samples in the file.
    pub samples: u64,
    /// Bytes of their records.
    pub bytes: u64,
}

/// Firings on a CPU.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CpuActivity {
    /// The CPU.
    pub cpu: u32,
    /// Firings on it in the file.
    pub firings: u64,
    /// How many are missing by the sequence numbers.
    pub missing: u64,
    #[serde(skip)]
    next: u64,
}

/// How a map was read before and after.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct MapActivity {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// How it was read before.
    pub before: Option<MapReading>,
    /// How it was read after.
    pub after: Option<MapReading>,
}

/// How a map was read.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct MapReading {
    /// `whole`, `torn` or `unread`.
    pub contents: &'static str,
    /// Number of entries.
    pub entries: u64,
    /// Why it is not whole.
    pub why: String,
}

/// A file in the recording.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ResourceRow {
    /// What it is: `object`, `kernel-btf`.
    pub name: String,
    /// Its bytes.
    pub bytes: usize,
}

/// A loss.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct LossRow {
    /// The cause.
    pub cause: &'static str,
    /// The program, map or event, if known.
    pub of: Option<String>,
    /// The CPU, if known.
    pub cpu: Option<u32>,
    /// How many.
    pub count: u64,
}

impl RecordingReport {
    /// Reads a recording to its end, or as far as possible.
    pub fn read<R: Read>(name: impl Into<String>, mut recording: Recording<R>) -> Self {
        let header = recording.header().clone();
        let mut seen = Seen::new(&header);
        let (state, problem, end) = loop {
            match recording.next_part() {
                Ok(Some(Part::End(end))) => break (ReadState::Whole, None, Some(end.summary)),
                Ok(Some(Part::CutOff(at))) => {
                    break (ReadState::CutOff, Some(at.to_string()), None);
                }
                Ok(Some(part)) => seen.add(&part),
                // `None` only follows the end or a cut-off, which leave the loop above.
                Ok(None) => break (ReadState::CutOff, None, None),
                Err(error) => break (ReadState::Damaged, Some(error.to_string()), None),
            }
        };
        for total in end.iter().flat_map(|end| &end.cpus) {
            let cpu = seen.cpu(total.cpu);
            cpu.next = cpu.next.max(total.sequence);
        }
        for cpu in seen.cpus.values_mut() {
            cpu.missing = cpu.next.saturating_sub(cpu.firings);
        }
        Self {
            recording: name.into(),
            format: recording.version().to_string(),
            losses: seen.loss_rows(&header),
            header,
            programs: seen.programs,
            events: seen.events,
            cpus: seen.cpus.into_values().collect(),
            maps: seen.maps,
            resources: seen.resources,
            totals: *recording.totals(),
            end,
            state,
            problem,
            bytes: recording.bytes_read(),
        }
    }

    /// Whether the file is whole and shows no losses.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.state == ReadState::Whole
            && self.totals.lost == 0
            && self.cpus.iter().all(|cpu| cpu.missing == 0)
    }
}

/// Counts so far.
struct Seen {
    start: u64,
    programs: Vec<ProgramActivity>,
    events: Vec<EventActivity>,
    cpus: BTreeMap<u32, CpuActivity>,
    maps: Vec<MapActivity>,
    resources: Vec<ResourceRow>,
    losses: BTreeMap<(Cause, Option<u32>, Option<u32>), u64>,
}

impl Seen {
    fn new(header: &Header) -> Self {
        let programs = header.programs.iter().map(|program| ProgramActivity {
            number: program.number,
            name: program.name.clone(),
            ..ProgramActivity::default()
        });
        let events = header.events.iter().map(|event| EventActivity {
            number: event.number,
            name: format!("{}/{}", event.group, event.name),
            ..EventActivity::default()
        });
        let maps = header.maps.iter().map(|map| MapActivity {
            number: map.number,
            name: map.name.clone(),
            ..MapActivity::default()
        });
        Self {
            start: header.start.monotonic,
            programs: programs.collect(),
            events: events.collect(),
            cpus: BTreeMap::new(),
            maps: maps.collect(),
            resources: Vec::new(),
            losses: BTreeMap::new(),
        }
    }

    fn cpu(&mut self, cpu: u32) -> &mut CpuActivity {
        let new = || CpuActivity {
            cpu,
            ..CpuActivity::default()
        };
        self.cpus.entry(cpu).or_insert_with(new)
    }

    fn lose(&mut self, loss: Loss) {
        let key = (loss.cause, loss.of, loss.cpu);
        let count = self.losses.entry(key).or_default();
        *count = count.saturating_add(loss.count);
    }

    fn add(&mut self, part: &Part<'_>) {
        match part {
            Part::Firings(records) => records.clone().for_each(|record| self.add_firing(record)),
            Part::Samples(samples) => samples.clone().for_each(|sample| self.add_sample(&sample)),
            Part::MapReads(reads) => reads.clone().for_each(|read| self.add_reading(&read)),
            Part::Resources(files) => {
                self.resources.extend(files.clone().map(|file| ResourceRow {
                    name: String::from_utf8_lossy(file.name).into_owned(),
                    bytes: file.bytes.len(),
                }))
            }
            Part::Losses(losses) => losses.clone().for_each(|loss| self.lose(loss)),
            _ => {}
        }
    }

    fn add_firing(&mut self, record: &[u8]) {
        let Ok(firing) = Firing::parse(record) else {
            return self.lose(Loss {
                cause: Cause::Damaged,
                cpu: None,
                of: None,
                count: 1,
            });
        };
        let cpu = self.cpu(firing.cpu);
        cpu.firings += 1;
        cpu.next = cpu.next.max(firing.sequence.saturating_add(1));

        let at = firing.time.saturating_sub(self.start);
        let number = firing.program;
        let program = self
            .programs
            .iter_mut()
            .find(|program| program.number == number);
        let Some(program) = program else {
            return self.lose(Loss {
                cause: Cause::Damaged,
                cpu: Some(firing.cpu),
                of: Some(number),
                count: 1,
            });
        };
        program.firings += 1;
        program.nested += u64::from(firing.depth > 0);
        program.overflows += u64::from(firing.flags.contains(FiringFlags::OVERFLOW));
        program.log_bytes += firing.log.len() as u64;
        program.first = Some(program.first.map_or(at, |first| first.min(at)));
        program.last = Some(program.last.map_or(at, |last| last.max(at)));
    }

    fn add_sample(&mut self, sample: &Sample<'_>) {
        let mut events = self.events.iter_mut();
        if let Some(event) = events.find(|event| event.number == sample.event) {
            event.samples += 1;
            event.bytes += sample.raw.len() as u64;
        }
    }

    fn add_reading(&mut self, read: &MapRead<'_>) {
        let Some(map) = self.maps.iter_mut().find(|map| map.number == read.map) else {
            return;
        };
        let reading = Some(MapReading {
            contents: Contents::name(read.contents),
            entries: read.entries,
            why: String::from_utf8_lossy(read.why).into_owned(),
        });
        match read.when {
            When::Before => map.before = reading,
            When::After => map.after = reading,
        }
    }

    fn loss_rows(&self, header: &Header) -> Vec<LossRow> {
        let rows = self.losses.iter().map(|((cause, of, cpu), count)| LossRow {
            cause: cause.name(),
            of: of.map(|number| name_of(header, *cause, number)),
            cpu: *cpu,
            count: *count,
        });
        rows.collect()
    }
}

/// The name of the program, map or event of a loss.
fn name_of(header: &Header, cause: Cause, number: u32) -> String {
    let name = match cause {
        Cause::LogFull | Cause::TooDeep | Cause::RingFull | Cause::Missed | Cause::Damaged => {
            let mut programs = header.programs.iter();
            let program = programs.find(|program| program.number == number);
            program.map(|program| program.name.clone())
        }
        Cause::PerfFull | Cause::TooLong => {
            let map = header.maps.iter().find(|map| map.number == number);
            map.map(|map| map.name.clone())
        }
        Cause::SampleFull => {
            let event = header.events.iter().find(|event| event.number == number);
            event.map(|event| format!("{}/{}", event.group, event.name))
        }
        Cause::PrintkFull | Cause::Other => None,
    };
    name.unwrap_or_else(|| format!("#{number}"))
}
