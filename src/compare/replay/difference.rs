//! The first difference between a replay and the kernel's run.

use crate::instrument::What;
use crate::isa::{Reg, decode};
use crate::program::Program;
use crate::util::Pc;

/// The first difference of a program, with the firing and the instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FirstDifference {
    /// Number of the firing in the recording, from 0, in the order of replay.
    pub firing: u64,
    /// Its CPU.
    pub cpu: u32,
    /// Its sequence number on that CPU.
    pub sequence: u64,
    /// When it began, in nanoseconds since boot.
    pub time: u64,
    /// The process.
    pub tgid: u32,
    /// The thread.
    pub pid: u32,
    /// What differs.
    pub what: Different,
    /// The instruction of the original program; none if the difference has none.
    pub place: Option<Instruction>,
    /// The replay's registers just before that instruction, r0 first; empty if not known.
    pub registers: Vec<(Reg, u64)>,
}

/// What differs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Different {
    /// The value of `r0` at the end.
    Returned {
        /// The kernel's.
        expected: u64,
        /// The replay's.
        got: u64,
    },
    /// A value that the program passed out: a little-endian number, a key, a record.
    Given {
        /// Which part.
        what: What,
        /// The kernel's.
        expected: Vec<u8>,
        /// The replay's.
        got: Vec<u8>,
    },
    /// A value that the program read from map memory, which no recorded firing can have
    /// changed meanwhile.
    Found {
        /// Which part.
        what: What,
        /// The kernel's.
        expected: Vec<u8>,
        /// The replay's.
        got: Vec<u8>,
        /// Names of the maps that may hold the value.
        maps: Vec<String>,
    },
    /// The program took another path: it came to another logged instruction.
    Path {
        /// The instruction that the kernel's run came to; none if it had ended.
        expected: Option<Instruction>,
        /// The instruction that the replay came to; none if it had ended.
        got: Option<Instruction>,
    },
    /// The replay faulted.
    Fault(String),
    /// The recorded log of this firing can't be read with the program.
    Damaged(String),
}

/// An instruction of the original program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Instruction {
    /// Its first slot.
    pub pc: Pc,
    /// Its text.
    pub text: String,
    /// The line of C that it comes from.
    pub source: Option<SourceLine>,
}

/// A line of C.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceLine {
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
        let source = program.source(pc).map(|source| SourceLine {
            file: source.file.to_owned(),
            line: source.line,
            column: source.column,
            text: source.text.trim().to_owned(),
        });
        Self { pc, text, source }
    }
}
