//! What a replay says: of each program, of each map, of what was put out, of the whole.

use std::fmt;
use std::num::NonZeroU64;

use super::difference::FirstDifference;
use super::word::Word;
use crate::harness::{EngineKind, Fallback};
use crate::isa::Reg;

/// What came of a replay on one engine. The same recording, object and engine give the same
/// report each time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The engine that was asked for.
    pub engine: EngineKind,
    /// Of each program of the recording, by their numbers.
    pub programs: Vec<ProgramReport>,
    /// Of each map that can be read, by their numbers.
    pub maps: Vec<MapReport>,
    /// Of each ring buffer, perf buffer, and of printed lines, where any came or could not be
    /// compared.
    pub outputs: Vec<OutputReport>,
    /// What the recording lacks, in words; a verdict that rests on it is incomplete.
    pub missing: Vec<String>,
}

/// What is said of one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramReport {
    /// Its name.
    pub name: String,
    /// The engine that ran it: the checked one where the verifier does not judge its
    /// replay form yet. None where nothing ran.
    pub engine: Option<EngineKind>,
    /// Why that is not the engine that was asked for; none if it is.
    pub fallback: Option<Fallback>,
    /// The same in words: the verifier's line, where it is that.
    pub engine_why: Option<String>,
    /// Firings that were replayed.
    pub firings: u64,
    /// How often a tail call of another program's firing, or of its own, led to it.
    pub led_to: u64,
    /// How many firings saw other memory than live, as another CPU may have changed it,
    /// and went on with what the recording says.
    pub raced: u64,
    /// How many times the kernel did not run it, as its CPU was in another program.
    pub missed: u64,
    /// Its verdict.
    pub verdict: Verdict,
}

/// A verdict on a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It ran so many times, fired or led to by a tail call. Each run returned, wrote and put
    /// out the same, and so did all of them together.
    Equal(NonZeroU64),
    /// They did not: where first.
    Different(Box<FirstDifference>),
    /// Each firing did the same, but which of them came first can't be known, and what the
    /// maps hold at the end depends on it: why.
    OrderUnknown(String),
    /// Something is missing, so that nothing can be said of the whole: what. No difference
    /// was found in the firings that are there.
    Incomplete(String),
    /// Nothing of it was compared: why.
    NotCompared(NotCompared),
}

/// Why nothing of a program was compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotCompared {
    /// Its firings could not be recorded: why.
    Unrecorded(String),
    /// No event came to it.
    NeverRan,
    /// It was not attached when the others were recorded: why.
    LeftOut(String),
    /// The recording is one of events, on which no program ran.
    Events,
}

impl fmt::Display for NotCompared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unrecorded(why) => write!(f, "its firings could not be recorded: {why}"),
            Self::NeverRan => f.write_str("it never ran"),
            Self::LeftOut(why) => f.write_str(why),
            Self::Events => f.write_str("no program ran when the events were recorded"),
        }
    }
}

/// What is said of the last contents of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapReport {
    /// Its name.
    pub name: String,
    /// What is said.
    pub verdict: MapVerdict,
}

/// A verdict on the last contents of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MapVerdict {
    /// So many entries, all equal.
    Equal(usize),
    /// An entry differs.
    Different {
        /// The key of the first one; its place where the map has no keys.
        key: Vec<u8>,
        /// Its value in the kernel; none where it was not there.
        expected: Option<Vec<u8>>,
        /// Its value in the replay.
        got: Option<Vec<u8>>,
        /// How many entries differ.
        entries: usize,
        /// Whether no program did anything in another way, so that something outside the
        /// recording is likely to have changed the map meanwhile.
        is_outside: bool,
    },
    /// Several CPUs wrote what depends on who came first.
    OrderUnknown {
        /// Who and what, in words.
        why: String,
        /// How many entries differ from what the replay has.
        differing: usize,
    },
    /// It was not, or could not be, compared: why.
    NotCompared(String),
}

/// What is said of a stream of outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputReport {
    /// The map, or `printk`.
    pub name: String,
    /// How many records or lines the recording has.
    pub recorded: u64,
    /// How many the replay gave.
    pub replayed: u64,
    /// What is said.
    pub verdict: OutputVerdict,
}

/// A verdict on a stream of outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputVerdict {
    /// So many records, the same in the same order; that of each CPU, where several wrote.
    Equal(NonZeroU64),
    /// One differs.
    Different {
        /// Its place in the stream, from 0.
        at: u64,
        /// The CPU, where each has a stream of its own.
        cpu: Option<u32>,
        /// What the recording has there; none where it has no more.
        expected: Option<Vec<u8>>,
        /// What the replay gave; none where it gave no more.
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
    /// The verdict on the program in one word, on the engine that was asked for: where
    /// another one ran the program, nothing was compared on that, unless it differs anyhow.
    #[must_use]
    pub fn word_on(&self, asked: EngineKind) -> Word {
        let word = self.verdict.word();
        match self.stood_in(asked) {
            Some(_) if word.is_fine() => Word::NothingCompared,
            _ => word,
        }
    }

    /// The engine that ran the program in place of the one that was asked for.
    #[must_use]
    pub fn stood_in(&self, asked: EngineKind) -> Option<EngineKind> {
        self.engine.filter(|engine| *engine != asked)
    }
}

/// A part that was not compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// `program`, `map` or `output`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}

impl Report {
    /// The verdict on the whole. [`Word::Equal`] says that every program, map and output was
    /// compared on the engine that was asked for, and that at least one event came.
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
    /// equal: what exit code 0 says.
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

    /// Adds what registers held at the difference of a program.
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
