//! Errors: a program that can't be instrumented, a schema that does not fit, bytes that are not
//! a firing.

use std::fmt;

use thiserror::Error;

use crate::util::Pc;

/// A program that can't be recorded and replayed; only its outputs are compared.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct Unrecordable {
    /// The program's name.
    pub program: String,
    /// The instruction at fault, if there is one.
    pub pc: Option<Pc>,
    /// Why it can't be recorded.
    pub reason: Reason,
}

impl fmt::Display for Unrecordable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            program,
            pc,
            reason,
        } = self;
        match pc {
            Some(pc) => write!(f, "{program}: instruction {pc}: {reason}"),
            None => write!(f, "{program}: {reason}"),
        }
    }
}

/// Why a program can't be recorded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reason {
    /// The program type acts on the kernel.
    #[error("programs of type {0} act on the kernel: their effects can't be recorded")]
    ProgType(&'static str),
    /// The control-flow graph can't be built.
    #[error("{0}")]
    Cfg(#[from] crate::analysis::CfgError),
    /// An invalid instruction.
    #[error("{0}")]
    NoInstruction(String),
    /// A tail call in a program that is recorded on its own.
    #[error("a tail call doesn't come back: the firing would end in another program")]
    TailCall,
    /// A tail call that may lead to a program that can't be recorded.
    #[error("its tail calls may lead to '{program}', which can't be recorded: {why}")]
    LeadsTo {
        /// The target program.
        program: String,
        /// Why that one can't be recorded.
        why: String,
    },
    /// A prog array that is shared with a program that can't be recorded: its programs can't be
    /// replaced by recorded forms.
    #[error("its tail calls use {map}, as does '{program}', which can't be recorded: {why}")]
    Shares {
        /// The prog array.
        map: String,
        /// The program that can't be recorded.
        program: String,
        /// Why it can't be recorded.
        why: String,
    },
    /// A tail call to a program that reads more of the context than this event has.
    #[error(
        "its tail calls may lead to '{program}', which reads {read} bytes of the context; the \
         event has {len}"
    )]
    ReadsBeyond {
        /// The target program.
        program: String,
        /// The number of bytes it reads.
        read: u32,
        /// The number of bytes that the event has.
        len: u32,
    },
    /// A helper that can't be recorded.
    #[error("bpf_{name}: {why}")]
    Helper {
        /// The helper's name, without `bpf_`.
        name: String,
        /// Why it can't be recorded.
        why: &'static str,
    },
    /// A kfunc that can't be recorded.
    #[error("{name}: {why}")]
    Kfunc {
        /// The kfunc's name, or its id if it has no name.
        name: String,
        /// Why it can't be recorded.
        why: &'static str,
    },
    /// An instruction that can't be recorded.
    #[error("{0}")]
    Instruction(&'static str),
    /// A stack frame without enough room.
    #[error(
        "function {function} uses {used} bytes of stack: there is no room for the {needed} that \
         recording needs"
    )]
    Stack {
        /// The function's name.
        function: String,
        /// Bytes that the function itself uses.
        used: u32,
        /// Bytes that recording adds.
        needed: u32,
    },
    /// More sites than a 16-bit number can identify.
    #[error("{0} sites: a log can number 65,533")]
    Sites(usize),
    /// A jump distance that an instruction can't encode.
    #[error("a jump would go too far once code is inserted")]
    Jump,
    /// No register is free, and none can be saved.
    #[error("no register is free here, and none may be saved on the stack")]
    Registers,
    /// The license forbids a helper that recording needs.
    #[error("recording needs bpf_probe_read_kernel here, which takes a GPL-compatible license")]
    License,
    /// A context or an argument larger than the scratch buffer.
    #[error("{0} bytes don't fit into the buffer of a firing")]
    TooLarge(u32),
}

/// Why the logs of a program can't be read and replayed by their schema.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// A site contradicts the program.
    #[error("site {site}, instruction {pc}: {problem}")]
    Misfit {
        /// The site's number.
        site: u16,
        /// Its instruction.
        pc: Pc,
        /// What is wrong.
        problem: &'static str,
    },
    /// A site that this version of bpflab can't replay.
    #[error("site {site}: {why}")]
    Unknown {
        /// The site's number.
        site: u16,
        /// Why not.
        why: String,
    },
    /// An instruction whose results a replay takes from the log, and the log does not have them.
    #[error("instruction {0}: a replay needs its inputs and outputs, and the log lacks some")]
    Lacks(Pc),
    /// This version can't record the program.
    #[error(transparent)]
    Unrecordable(#[from] Unrecordable),
}

impl SchemaError {
    /// Whether the schema is wrong, whichever version reads it. If not, another version may
    /// replay the logs.
    #[must_use]
    pub const fn is_misfit(&self) -> bool {
        matches!(self, Self::Misfit { .. })
    }
}

/// Bytes that are not a firing, or not a log of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("byte {offset}: {damage}")]
pub struct Damaged {
    /// The offset from the start of the bytes.
    pub offset: usize,
    /// What is wrong there.
    pub damage: Damage,
}

/// What is wrong with a firing or its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Damage {
    /// The bytes are truncated.
    #[error("truncated: {needed} bytes expected, {left} left")]
    Short {
        /// The number of bytes expected.
        needed: usize,
        /// The number of bytes left.
        left: usize,
    },
    /// There are bytes after the end.
    #[error("{0} bytes too many")]
    Long(usize),
    /// The program has no such site.
    #[error("unknown site {0}")]
    Site(u16),
    /// A length above the maximum of the site's field.
    #[error("field of {len} bytes, more than {most}")]
    Length {
        /// The length in the log.
        len: u32,
        /// The maximum.
        most: u32,
    },
    /// Unknown flags.
    #[error("unknown flag bits in {0:#x}")]
    Flags(u16),
    /// A byte that should be 0 or 1.
    #[error("{0} instead of 0 or 1")]
    Presence(u8),
}
