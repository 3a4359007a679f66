//! What a replay says: of each program, of each map, of what was put out, of the whole.

use std::fmt;

use super::difference::FirstDifference;
use crate::harness::EngineKind;
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
    /// Of each ring buffer, perf buffer, and of printed lines.
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
    /// Why that is not the engine that was asked for: the verifier's line, where it is that.
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
    /// Each firing returned, wrote and put out the same, and so did all of them together.
    Equal,
    /// They did not: where first.
    Different(Box<FirstDifference>),
    /// Each firing did the same, but which of them came first can't be known, and what the
    /// maps hold at the end depends on it: why.
    OrderUnknown(String),
    /// Something is missing, so that nothing can be said of the whole: what. No difference
    /// was found in the firings that are there.
    Incomplete(String),
    /// The program could not be rewritten, so that only what it put out, and its maps, were
    /// recorded: why.
    OutputsOnly(String),
    /// Nothing was recorded to compare with: the program did not run then.
    Nothing,
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
        /// The key of the first one.
        key: Vec<u8>,
        /// Its value in the kernel; none where it was not there.
        expected: Option<Vec<u8>>,
        /// Its value in the replay.
        got: Option<Vec<u8>>,
        /// How many entries differ.
        entries: usize,
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
    /// The same records in the same order; that of each CPU, where several wrote.
    Equal,
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

/// A verdict in one word, the worst one of several being that of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Word {
    /// There was nothing to compare with.
    Nothing,
    /// Only what was put out could be compared, and was equal.
    OutputsEqual,
    /// Everything is equal.
    Equal,
    /// All that can be judged is equal; last contents of maps depend on an order that is
    /// not known.
    OrderUnknown,
    /// Something is missing.
    Incomplete,
    /// A difference.
    Different,
}

impl Word {
    /// The word as it is printed: `order unknown`.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Nothing => "nothing to compare with",
            Self::OutputsEqual => "outputs equal",
            Self::Equal => "equal",
            Self::OrderUnknown => "order unknown",
            Self::Incomplete => "incomplete",
            Self::Different => "different",
        }
    }

    /// The word as JSON has it: `order_unknown`.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::OutputsEqual => "outputs_equal",
            Self::Equal => "equal",
            Self::OrderUnknown => "order_unknown",
            Self::Incomplete => "incomplete",
            Self::Different => "different",
        }
    }

    /// Whether all that could be judged is equal and nothing is missing.
    #[must_use]
    pub fn is_fine(self) -> bool {
        self < Self::Incomplete
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text())
    }
}

impl Verdict {
    /// The verdict in one word.
    #[must_use]
    pub const fn word(&self) -> Word {
        match self {
            Self::Equal => Word::Equal,
            Self::Different(_) => Word::Different,
            Self::OrderUnknown(_) => Word::OrderUnknown,
            Self::Incomplete(_) => Word::Incomplete,
            Self::OutputsOnly(_) => Word::OutputsEqual,
            Self::Nothing => Word::Nothing,
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
            Self::NotCompared(_) => Word::Nothing,
        }
    }
}

impl OutputVerdict {
    /// The verdict in one word.
    #[must_use]
    pub const fn word(&self) -> Word {
        match self {
            Self::Equal => Word::Equal,
            Self::Different { .. } => Word::Different,
            Self::NotCompared(_) => Word::Nothing,
        }
    }
}

impl Report {
    /// The verdict on the whole: the worst of all, [`Word::Incomplete`] at least where
    /// something is missing.
    #[must_use]
    pub fn word(&self) -> Word {
        let programs = self.programs.iter().map(|program| program.verdict.word());
        let maps = self.maps.iter().map(|map| map.verdict.word());
        let outputs = self.outputs.iter().map(|output| output.verdict.word());
        let incomplete = (!self.missing.is_empty()).then_some(Word::Incomplete);
        let all = programs.chain(maps).chain(outputs).chain(incomplete);
        all.max().unwrap_or(Word::Nothing)
    }

    /// Whether all that could be judged is equal and nothing is missing: what exit code 0
    /// says.
    #[must_use]
    pub fn is_fine(&self) -> bool {
        self.word().is_fine()
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
