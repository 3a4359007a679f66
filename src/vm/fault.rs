//! Every way in which a program can stop before its end, in one place.

use std::fmt;

use thiserror::Error;

use super::kernel::KernelError;
use super::memory::{AccessFault, Pointer, SpaceFull};
use crate::isa::{DecodeError, Pseudo};
use crate::program::Program;
use crate::spec::{MapType, helpers};
use crate::util::{HelperId, Pc, TypeId};

/// A program did something that the machine refuses: what, at which instruction,
/// on which line of the C source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The program's name.
    pub program: String,
    /// The function of the program in which it happened.
    pub function: Option<String>,
    /// The instruction.
    pub pc: Pc,
    /// The instruction's text.
    pub insn: String,
    /// Its place in the C source.
    pub source: Option<Source>,
    /// The C access that CO-RE relocated here.
    pub core_access: Option<String>,
    /// What happened.
    pub kind: FaultKind,
}

/// An owned place in the C source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// File name as the compiler wrote it.
    pub file: String,
    /// Line number, from 1.
    pub line: u32,
    /// Column, from 1; 0 where unknown.
    pub column: u32,
    /// The line's text.
    pub text: String,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FaultKind {
    /// A load, store or atomic at a place that does not allow it.
    #[error("{0}")]
    Access(#[from] AccessFault),
    /// No such instruction.
    #[error("{0}")]
    Decode(#[from] DecodeError),
    /// Execution left the program.
    #[error("execution leaves the program, for instruction {0}")]
    OutOfProgram(i64),
    /// The budget is used up.
    #[error("the budget of {0} instructions is used up: an endless loop?")]
    Budget(u64),
    /// Too many nested calls.
    #[error("more than {0} nested calls")]
    Depth(usize),
    /// A helper can't do what it was asked.
    #[error("helper {}: {problem}", helper_name(*.helper))]
    Helper {
        /// The helper.
        helper: HelperId,
        /// What is wrong.
        problem: HelperProblem,
    },
    /// A kernel function can't do what it was asked.
    #[error("kernel function {name}: {problem}")]
    Kfunc {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: HelperProblem,
    },
    /// A kernel function whose name is not known.
    #[error(
        "the kernel function with BTF id {0} has no name here: \
         the program comes without the BTF of the kernel or module that it is in"
    )]
    UnknownKfunc(TypeId),
    /// The program threw in a function that a helper called back.
    #[error("bpf_throw() in a callback, where no program may call it")]
    ThrownInCallback,
    /// The instruction was poisoned: its CO-RE relocation had no target.
    #[error(
        "the instruction is poisoned: the kernel types in use have no `{0}`; \
         guard it with bpf_core_field_exists() or give other types"
    )]
    Poisoned(String),
    /// A call through a register or of a callback that leads nowhere.
    #[error("{0} is no function of this program to call")]
    NoFunction(Pointer),
    /// A 64-bit immediate that names nothing here.
    #[error("{}", no_object(.0))]
    NoObject(Pseudo),
    /// An event that was to happen here and can't.
    #[error("an event in the middle of it: {0}")]
    Interrupt(String),
    /// Too many objects alive.
    #[error("{0}")]
    Space(#[from] SpaceFull),
}

/// Why a helper can't go on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HelperProblem {
    /// There is no implementation.
    #[error(
        "no implementation here; supply one: \
         `vm.mock_helper(\"{0}\", |call| Ok(0))`"
    )]
    Missing(&'static str),
    /// The same for a kernel function.
    #[error(
        "no implementation here; supply one: \
         `vm.mock_kfunc(\"{0}\", |call| Ok(0))`"
    )]
    MissingKfunc(String),
    /// There is no such helper.
    #[error("Linux 6.18 has helpers 1 to 211 only")]
    Unknown,
    /// Memory that an argument points to.
    #[error("argument {arg}: {fault}")]
    Access {
        /// The argument, from 1.
        arg: usize,
        /// What is wrong with it.
        fault: AccessFault,
    },
    /// An argument that is not what the prototype says.
    #[error("argument {arg} is {found}, {wanted} wanted")]
    Argument {
        /// The argument, from 1.
        arg: usize,
        /// What it is.
        found: Pointer,
        /// What it should be.
        wanted: &'static str,
    },
    /// A map of a type that the helper can't use.
    #[error("argument {arg} is map {map} of type {map_type}, which it can't be called on")]
    MapType {
        /// The argument, from 1.
        arg: usize,
        /// The map's name.
        map: String,
        /// Its type.
        map_type: MapType,
    },
    /// A map that programs may not write, or not read.
    #[error("argument {arg} is map {map}, which is {rights} for programs")]
    MapRights {
        /// The argument, from 1.
        arg: usize,
        /// The map's name.
        map: String,
        /// `read-only` or `write-only`.
        rights: &'static str,
    },
    /// Too many objects alive.
    #[error("{0}")]
    Space(#[from] SpaceFull),
    /// An object of the kernel that can't be made or found.
    #[error("{0}")]
    Kernel(#[from] Box<KernelError>),
    /// Anything else, in words.
    #[error("{0}")]
    Other(String),
    /// The program ends here (`bpf_throw`), with this cookie.
    #[error("bpf_throw({0:#x})")]
    Thrown(u64),
    /// A function that the helper called back stopped.
    #[error("in its callback: {0}")]
    Callback(Box<Fault>),
}

impl From<KernelError> for HelperProblem {
    fn from(error: KernelError) -> Self {
        Self::Kernel(Box::new(error))
    }
}

/// A helper's name in C, or its number.
fn helper_name(id: HelperId) -> String {
    helpers::helper(id).map_or_else(|| format!("number {id}"), |h| format!("bpf_{}", h.name))
}

/// Why a 64-bit immediate has no value.
fn no_object(pseudo: &Pseudo) -> String {
    match pseudo {
        Pseudo::MapIdx { index } => format!("the program has no map {index}"),
        Pseudo::MapIdxValue { index, .. } => {
            format!("the program has no map {index} whose value has an address")
        }
        Pseudo::MapFd { fd } | Pseudo::MapValue { fd, .. } => {
            format!("map file descriptor {fd} means nothing here: maps go by index")
        }
        Pseudo::BtfId { id, .. } => format!("the kernel variable with BTF id {id} is not there"),
        Pseudo::Func { rel } => format!("there is no function {rel} instructions on"),
    }
}

impl Fault {
    /// A fault at an instruction of `program`, with what is known of the place.
    #[must_use]
    pub fn at(program: &Program, pc: Pc, insn: String, kind: FaultKind) -> Self {
        Self {
            program: program.name.clone(),
            function: program.subprogram(pc).map(|sub| sub.name.clone()),
            pc,
            insn,
            source: program.source(pc).map(|line| Source {
                file: line.file.into(),
                line: line.line,
                column: line.column,
                text: line.text.into(),
            }),
            core_access: program.core_access(pc).map(|access| access.path.clone()),
            kind,
        }
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "program {}: {}", self.program, self.kind)?;
        write!(f, "\n  at instruction {}: {}", self.pc, self.insn)?;
        if let Some(function) = &self.function
            && *function != self.program
        {
            write!(f, " (in {function})")?;
        }
        if let Some(source) = &self.source {
            write!(f, "\n  at {}:{}", source.file, source.line)?;
            if source.column > 0 {
                write!(f, ":{}", source.column)?;
            }
            write!(f, ": {}", source.text.trim())?;
        }
        if let Some(access) = &self.core_access {
            write!(f, "\n  where C accesses {access}")?;
        }
        Ok(())
    }
}
