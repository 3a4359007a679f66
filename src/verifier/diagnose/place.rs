//! The position at which the verifier stopped.

use serde::Serialize;

use crate::program::Program;
use crate::util::Pc;

/// The position at which the verifier stopped. Its fields are keys of `--json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Refused {
    /// The instruction, in slots.
    pub insn: Option<u32>,
    /// The line of C that it comes from.
    pub source: Option<RefusedLine>,
}

/// A line of C, as `bpflab disasm --json` gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RefusedLine {
    /// File, as the compiler was given it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
    /// The line without indentation.
    pub text: String,
}

impl Refused {
    /// The position of an instruction.
    #[must_use]
    pub fn at(pc: Option<Pc>, program: &Program) -> Self {
        let source = pc.and_then(|pc| program.source(pc));
        Self {
            insn: pc.map(|pc| pc.0),
            source: source.filter(|line| line.line > 0).map(|line| RefusedLine {
                file: line.file.to_owned(),
                line: line.line,
                column: line.column,
                text: line.text.trim().to_owned(),
            }),
        }
    }
}
