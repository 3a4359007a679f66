//! The report of a replay: verdicts on each program, map and output, and on the whole.

use std::fmt;
use std::num::NonZeroU64;

use super::difference::FirstDifference;
use super::error::ReplayError;
use super::finding::Finding;
use super::word::Word;
use crate::harness::{EngineKind, Fallback};
use crate::isa::Reg;

/// The result of a replay on one engine. It is deterministic: the same recording, object and
/// engine give the same report.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The engine that was asked for.
    pub engine: EngineKind,
    /// The programs of the recording, by number.
    pub programs: Vec<ProgramReport>,
    /// The maps that can be read, by number.
    pub maps: Vec<MapReport>,
    /// The ring buffers, perf buffers and printed lines that have records or can't be
    /// compared.
    pub outputs: Vec<OutputReport>,
    /// Differences of maps and outputs in words: fields and decoded values.
    pub findings: Vec<Finding>,
    /// What is missing from the recording, in words; verdicts that depend on it are incomplete.
    pub missing: Vec<String>,
}

/// The report on one program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramReport {
    /// Its name.
    pub name: String,
    /// The engine that ran it: the checked one if the verifier leaves its replay form
    /// unjudged. None if nothing ran.
    pub engine: Option<EngineKind>,
    /// Why that is not the engine that was asked for; none if it is.
    pub fallback: Option<Fallback>,
    /// The reason in words: the verifier's message, if that is the reason.
    pub engine_why: Option<String>,
    /// Firings that were replayed.
    pub firings: u64,
    /// How often a tail call led to it, in its own firings or another program's.
    pub led_to: u64,
    /// In how many firings a map value differed from the replay's own, as another CPU may
    /// have changed it; the recorded value was used.
    pub raced: u64,
    /// How often the kernel skipped it, as its CPU was in another program.
    pub missed: u64,
    /// Its verdict.
    pub verdict: Verdict,
}

/// A verdict on a program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// All runs returned, wrote and sent the same as in the kernel: the number of runs,
    /// fired or led to by a tail call.
    Equal(NonZeroU64),
    /// A run differs: the first difference.
    Different(Box<FirstDifference>),
    /// Each firing did the same, but the final contents of its maps depend on an order of
    /// writes that is not known: why.
    OrderUnknown(String),
    /// Part of the recording is missing: what. The firings that it has show no difference.
    Incomplete(String),
    /// It was not compared: why.
    NotCompared(NotCompared),
}

/// Why a program was not compared.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotCompared {
    /// Its firings could not be recorded: why.
    Unrecorded(String),
    /// It was recorded, but this version of bpflab can't replay its logs: why.
    Unreplayable(String),
    /// It never fired.
    NeverRan,
    /// It was not attached during the recording: why.
    LeftOut(String),
    /// Bare events were recorded, without a program.
    Events,
}

impl fmt::Display for NotCompared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unrecorded(why) => write!(f, "its firings could not be recorded: {why}"),
            Self::Unreplayable(why) => {
                write!(f, "this version of bpflab can't replay its firings: {why}")
            }
            Self::NeverRan => f.write_str("it never ran"),
            Self::LeftOut(why) => f.write_str(why),
            Self::Events => f.write_str("no program ran when the events were recorded"),
        }
    }
}

/// The report on the final contents of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MapReport {
    /// Its name.
    pub name: String,
    /// The verdict.
    pub verdict: MapVerdict,
}

/// A verdict on the final contents of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapVerdict {
    /// All entries are equal: how many.
    Equal(usize),
    /// An entry differs.
    Different {
        /// The key of the first one; its index in a map without keys.
        key: Vec<u8>,
        /// Its value in the kernel; none if it was absent.
        expected: Option<Vec<u8>>,
        /// Its value in the replay; none if it is absent.
        got: Option<Vec<u8>>,
        /// How many entries differ.
        entries: usize,
        /// Whether all programs did the same as in the kernel, so that something outside the
        /// recording has likely changed the map.
        is_outside: bool,
    },
    /// Firings wrote in an order that is not known, and the contents depend on it.
    OrderUnknown {
        /// Which firings and what, in words.
        why: String,
        /// How many entries differ from the replay's.
        differing: usize,
    },
    /// It was not or could not be compared: why.
    NotCompared(String),
}

/// The report on a stream of outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputReport {
    /// The map, or `printk`.
    pub name: String,
    /// How many records or lines the recording has.
    pub recorded: u64,
    /// How many the replay sent.
    pub replayed: u64,
    /// The verdict.
    pub verdict: OutputVerdict,
}

/// A verdict on a stream of outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputVerdict {
    /// All records are equal and in order, for each CPU if several wrote: how many.
    Equal(NonZeroU64),
    /// One differs.
    Different {
        /// Its index in the stream, from 0.
        at: u64,
        /// The CPU, if each has its own stream.
        cpu: Option<u32>,
        /// The recorded one; none if the recording has no more.
        expected: Option<Vec<u8>>,
        /// The replay's; none if it sent no more.
        got: Option<Vec<u8>>,
    },
    /// Not compared: why.
    NotCompared(String),
}

impl Verdict {
    /// The verdict in one word.
    #[must_use]
    pub const fn word(&self) -> Word {
        match self {
            Self::Equal(_) => Word::Equal,
            Self::Different(_) => Word::Different,
            Self::OrderUnknown(_) => Word::OrderUnknown,
            Self::Incomplete(_) => Word::Incomplete,
            Self::NotCompared(_) => Word::NothingCompared,
        }
    }
}

impl MapVerdict {
    /// The verdict in one word.
    #[must_use]
    pub const fn word(&self) -> Word {
        match self {
            Self::Equal(_) => Word::Equal,
            Self::Different { .. } => Word::Different,
            Self::OrderUnknown { .. } => Word::OrderUnknown,
            Self::NotCompared(_) => Word::NothingCompared,
        }
    }
}

impl OutputVerdict {
    /// The verdict in one word.
    #[must_use]
    pub const fn word(&self) -> Word {
        match self {
            Self::Equal(_) => Word::Equal,
            Self::Different { .. } => Word::Different,
            Self::NotCompared(_) => Word::NothingCompared,
        }
    }
}

impl ProgramReport {
    /// The verdict in one word on the engine that was asked for: if another one ran the
    /// program, nothing was compared, unless there is a difference.
    #[must_use]
    pub fn word_on(&self, asked: EngineKind) -> Word {
        let word = self.verdict.word();
        match self.stood_in(asked) {
            Some(_) if word.is_fine() => Word::NothingCompared,
            _ => word,
        }
    }

    /// The engine that ran the program instead of the one asked for; none if that one did.
    #[must_use]
    pub fn stood_in(&self, asked: EngineKind) -> Option<EngineKind> {
        self.engine.filter(|engine| *engine != asked)
    }
}

/// A part that was not compared.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// `program`, `map` or `output`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}

impl Report {
    /// The verdict on the whole. [`Word::Equal`] means that every program, map and output was
    /// compared on the engine that was asked for, and that at least one program ran.
    #[must_use]
    pub fn word(&self) -> Word {
        let programs = self.programs.iter();
        let programs = programs.map(|program| program.word_on(self.engine));
        let maps = self.maps.iter().map(|map| map.verdict.word());
        let outputs = self.outputs.iter().map(|output| output.verdict.word());
        let missing = (!self.missing.is_empty()).then_some(Word::Incomplete);
        Word::whole(programs, maps.chain(outputs).chain(missing))
    }

    /// Whether everything was compared, nothing is missing, and all that can be judged is
    /// equal: exit code 0.
    #[must_use]
    pub fn is_fine(&self) -> bool {
        self.word().is_fine()
    }

    /// The parts that were not compared, each with the reason.
    #[must_use]
    pub fn gaps(&self) -> Vec<Gap> {
        let gap = |kind, name: &str, why: String| Gap {
            kind,
            name: name.to_owned(),
            why,
        };
        let asked = self.engine;
        let programs = self.programs.iter().filter_map(|program| {
            let why = match (&program.verdict, program.stood_in(asked)) {
                (Verdict::NotCompared(why), _) => why.to_string(),
                (_, Some(engine)) if program.word_on(asked) == Word::NothingCompared => {
                    let why = program.engine_why.iter().map(|why| format!(": {why}"));
                    let why = String::from_iter(why);
                    format!("{asked} did not run it, {engine} did{why}")
                }
                _ => return None,
            };
            Some(gap("program", &program.name, why))
        });
        let maps = self.maps.iter().filter_map(|map| match &map.verdict {
            MapVerdict::NotCompared(why) => Some(gap("map", &map.name, why.clone())),
            _ => None,
        });
        let outputs = self
            .outputs
            .iter()
            .filter_map(|output| match &output.verdict {
                OutputVerdict::NotCompared(why) => Some(gap("output", &output.name, why.clone())),
                _ => None,
            });
        programs.chain(maps).chain(outputs).collect()
    }

    /// An error unless the report [is fine](Self::is_fine), for tests.
    ///
    /// # Errors
    /// [`ReplayError::Differs`].
    pub fn check(&self) -> Result<(), ReplayError> {
        if self.is_fine() {
            return Ok(());
        }
        Err(ReplayError::Differs {
            engine: self.engine,
            word: self.word(),
            text: self.differences().join("\n"),
        })
    }

    /// What differs, is missing or was not compared.
    fn differences(&self) -> Vec<String> {
        let programs = self.programs.iter().filter_map(|program| {
            let said = match &program.verdict {
                Verdict::Different(first) => format!("different at firing {}", first.firing),
                Verdict::Incomplete(why) => format!("incomplete: {why}"),
                _ => return None,
            };
            Some(format!("program {}: {said}", program.name))
        });
        let maps = self.maps.iter().filter_map(|map| match &map.verdict {
            MapVerdict::Different { entries, .. } => {
                Some(format!("map {}: different in {entries} entries", map.name))
            }
            _ => None,
        });
        let outputs = self
            .outputs
            .iter()
            .filter_map(|output| match &output.verdict {
                OutputVerdict::Different { at, .. } => {
                    Some(format!("output {}: different at number {at}", output.name))
                }
                _ => None,
            });
        let gaps = self.gaps().into_iter();
        let gaps = gaps.map(|gap| format!("{} {}: not compared: {}", gap.kind, gap.name, gap.why));
        let missing = self
            .missing
            .iter()
            .map(|missing| format!("missing: {missing}"));
        let findings = self.findings.iter();
        let findings = findings.map(|finding| finding.to_string().trim_end().to_owned());
        let parts = programs.chain(maps).chain(outputs).chain(gaps);
        parts.chain(missing).chain(findings).collect()
    }

    /// Adds the registers at the difference of a program.
    pub(super) fn explain(&mut self, program: usize, registers: Vec<(Reg, u64)>) {
        let program = self.programs.get_mut(program);
        if let Some(Verdict::Different(first)) = program.map(|program| &mut program.verdict) {
            first.registers = registers;
        }
    }

    /// How many firings were replayed.
    #[must_use]
    pub fn firings(&self) -> u64 {
        self.programs.iter().map(|program| program.firings).sum()
    }
}
