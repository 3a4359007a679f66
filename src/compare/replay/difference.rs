//! The first place at which a replay did something else than the kernel.

use crate::instrument::What;
use crate::isa::{Reg, decode};
use crate::program::Program;
use crate::util::Pc;

/// A difference, with all that is known of the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstDifference {
    /// Number of the firing in the recording, from 0, in the order of replay.
    pub firing: u64,
    /// The CPU that it was on.
    pub cpu: u32,
    /// Its number among the firings of that CPU.
    pub sequence: u64,
    /// When it began, in nanoseconds since boot.
    pub time: u64,
    /// The process.
    pub tgid: u32,
    /// The thread.
    pub pid: u32,
    /// What differs.
    pub what: Different,
    /// Where in the program as it was compiled; none where no instruction stands for it.
    pub place: Option<Instruction>,
    /// What registers held in the replay just before that instruction, r0 first; empty
    /// where that is not known.
    pub registers: Vec<(Reg, u64)>,
}

/// What differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Different {
    /// The value of `r0` at the end.
    Returned {
        /// The kernel's.
        expected: u64,
        /// The replay's.
        got: u64,
    },
    /// What the program gave to the outside: little-endian numbers, keys, records.
    Given {
        /// Which part.
        what: What,
        /// The kernel's.
        expected: Vec<u8>,
        /// The replay's.
        got: Vec<u8>,
    },
    /// What the program found in memory that, according to the recording, nobody else had
    /// changed meanwhile.
    Found {
        /// Which part.
        what: What,
        /// The kernel's.
        expected: Vec<u8>,
        /// The replay's.
        got: Vec<u8>,
        /// The maps that it can be in, by their names.
        maps: Vec<String>,
    },
    /// The program went another way: the next thing that it did was another.
    Path {
        /// The instruction that the kernel's run came to; none where it was over.
        expected: Option<Instruction>,
        /// The one that the replay came to; none where it was over.
        got: Option<Instruction>,
    },
    /// The replay stopped at a fault.
    Fault(String),
    /// What the recording has of this firing is no log of the program.
    Damaged(String),
}

/// An instruction of the program as it was compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Its first slot.
    pub pc: Pc,
    /// Its text.
    pub text: String,
    /// The line of C that it comes from.
    pub source: Option<Source>,
}

/// A line of C.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// Its text.
    pub text: String,
}

impl Instruction {
    /// The instruction of a program at `pc`.
    pub(super) fn of(program: &Program, pc: Pc) -> Self {
        let slots = program.insns.get(pc.index()..).unwrap_or_default();
        let text = match decode(slots, pc) {
            Ok(insn) => insn.text(program).to_string(),
            Err(error) => format!("{:?}", error.raw),
        };
        let source = program.source(pc).map(|source| Source {
            file: source.file.to_owned(),
            line: source.line,
            column: source.column,
            text: source.text.trim().to_owned(),
        });
        Self { pc, text, source }
    }
}
