//! What can go wrong: a program that can't be instrumented, bytes that are no firing.

use std::fmt;

use thiserror::Error;

use crate::util::Pc;

/// A program that can't be recorded and replayed; it is compared by its outputs only.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct Unrecordable {
    /// The program's name.
    pub program: String,
    /// The instruction in the way, if it is one.
    pub pc: Option<Pc>,
    /// What is in the way.
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

/// What is in the way of an instrumentation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reason {
    /// Not one of the types that watch.
    #[error("programs of type {0} do more than watch: what they act on can't be recorded")]
    ProgType(&'static str),
    /// No control-flow graph.
    #[error("{0}")]
    Cfg(#[from] crate::isa::CfgError),
    /// Something that is no instruction.
    #[error("{0}")]
    NoInstruction(String),
    /// A tail call of a program that is recorded alone.
    #[error("a tail call doesn't come back: the firing would end in another program")]
    TailCall,
    /// A tail call that may lead to a program that can't be recorded.
    #[error("its tail calls may lead to '{program}', which can't be recorded: {why}")]
    LeadsTo {
        /// That program.
        program: String,
        /// What is in the way there.
        why: String,
    },
    /// A prog array that a program uses, too, which can't be recorded: what is in it can't be
    /// replaced by recorded forms.
    #[error("its tail calls go by {map}, as those of '{program}', which can't be recorded: {why}")]
    Shares {
        /// The prog array.
        map: String,
        /// The program.
        program: String,
        /// What is in its way.
        why: String,
    },
    /// A tail call to a program that reads more of the context than this one's event has.
    #[error(
        "its tail calls may lead to '{program}', which reads {read} bytes of the context, of which \
         its own event has {len}"
    )]
    ReadsBeyond {
        /// That program.
        program: String,
        /// What it reads.
        read: u32,
        /// What there is.
        len: u32,
    },
    /// A helper whose effects can't be written down.
    #[error("bpf_{name}: {why}")]
    Helper {
        /// The helper's name, without `bpf_`.
        name: String,
        /// What is in the way.
        why: &'static str,
    },
    /// A kernel function whose effects can't be written down.
    #[error("{name}: {why}")]
    Kfunc {
        /// The function's name, or its number where it has none.
        name: String,
        /// What is in the way.
        why: &'static str,
    },
    /// An instruction that does what can't be written down.
    #[error("{0}")]
    Instruction(&'static str),
    /// A frame without room.
    #[error(
        "function {function} uses {used} bytes of stack: there is no room for the {needed} that \
         recording needs"
    )]
    Stack {
        /// The function's name.
        function: String,
        /// Bytes that it uses itself.
        used: u32,
        /// Bytes that would be added.
        needed: u32,
    },
    /// Too many sites for a number of 16 bits.
    #[error("{0} sites: a log can tell 65,533 of them apart")]
    Sites(usize),
    /// A jump that would have to go farther than an instruction can say.
    #[error("a jump would go too far once code is inserted")]
    Jump,
    /// No register is free and none can be saved.
    #[error("no register is free here, and none may be saved on the stack")]
    Registers,
    /// What the license does not allow.
    #[error("what it hands over is copied by bpf_probe_read_kernel, which is for the GPL only")]
    License,
    /// A context or an argument that doesn't fit into the scratch buffer.
    #[error("{0} bytes don't fit into the buffer of a firing")]
    TooLarge(u32),
}

/// Bytes that are no firing, or no log of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("byte {offset}: {damage}")]
pub struct Damaged {
    /// Where, from the start of the bytes.
    pub offset: usize,
    /// What is wrong there.
    pub damage: Damage,
}

/// What is wrong with a firing or its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Damage {
    /// The bytes end too early.
    #[error("{needed} bytes should follow, there are {left}")]
    Short {
        /// How many should be there.
        needed: usize,
        /// How many are.
        left: usize,
    },
    /// Bytes after the end.
    #[error("{0} bytes too many")]
    Long(usize),
    /// A site that the program doesn't have.
    #[error("there is no site {0}")]
    Site(u16),
    /// A length above what the site's field can have.
    #[error("a field of {len} bytes, which can have {most}")]
    Length {
        /// What is said.
        len: u32,
        /// What can be.
        most: u32,
    },
    /// Flags that nobody sets.
    #[error("flags {0:#x}, of which some mean nothing")]
    Flags(u16),
    /// A byte that should be zero or one.
    #[error("{0} where only 0 and 1 can be")]
    Presence(u8),
}
