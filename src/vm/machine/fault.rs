//! All reasons why a run stops before its end.

use std::fmt;

use thiserror::Error;

use crate::isa::{DecodeError, Pseudo};
use crate::program::Program;
use crate::spec::{MapType, helpers};
use crate::util::{HelperId, Pc, TypeId};
use crate::vm::memory::{AccessFault, Pointer, SpaceFull};
use crate::vm::world::kernel::KernelError;

/// Why a run was stopped: the reason, the instruction and the line of C.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// The program's name.
    pub program: String,
    /// The subprogram that the instruction is in.
    pub function: Option<String>,
    /// The instruction.
    pub pc: Pc,
    /// The instruction's text.
    pub insn: String,
    /// The instruction's line in the C source.
    pub source: Option<SourceLine>,
    /// The C access that CO-RE relocated at this instruction.
    pub core_access: Option<String>,
    /// What happened.
    pub kind: FaultKind,
}

/// A line of the C source.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceLine {
    /// File name as the compiler wrote it.
    pub file: String,
    /// Line number, from 1.
    pub line: u32,
    /// Column, from 1; 0 where unknown.
    pub column: u32,
    /// The line's text.
    pub text: String,
}

/// What to add to an object that is there no more.
fn freed(found: &Pointer) -> &'static str {
    match found {
        Pointer::Region { live: false, .. } => ", which was freed",
        _ => "",
    }
}

impl SourceLine {
    /// The line of an instruction, if the object says it.
    pub(crate) fn at(program: &Program, pc: Pc) -> Option<Self> {
        program.source(pc).map(|line| Self {
            file: line.file.into(),
            line: line.line,
            column: line.column,
            text: line.text.into(),
        })
    }
}

/// `file.c:12:3: the text`.
impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if self.column > 0 {
            write!(f, ":{}", self.column)?;
        }
        write!(f, ": {}", self.text.trim())
    }
}

/// Why a run was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// An invalid load, store or atomic operation.
    #[error("{0}")]
    Access(#[from] AccessFault),
    /// An invalid instruction.
    #[error("{0}")]
    Decode(#[from] DecodeError),
    /// Execution left the program.
    #[error("execution leaves the program, for instruction {0}")]
    OutOfProgram(i64),
    /// The instruction budget is used up.
    #[error("the budget of {0} instructions is used up: an endless loop?")]
    Budget(u64),
    /// Too many nested calls.
    #[error("more than {0} nested calls")]
    Depth(usize),
    /// A helper can't carry out the call.
    #[error("helper {}: {problem}", helper_name(*.helper))]
    Helper {
        /// The helper.
        helper: HelperId,
        /// What is wrong.
        problem: HelperProblem,
    },
    /// A kfunc can't carry out the call.
    #[error("kfunc {name}: {problem}")]
    Kfunc {
        /// The kfunc's name.
        name: String,
        /// What is wrong.
        problem: HelperProblem,
    },
    /// A kfunc whose name is not known.
    #[error(
        "the name of the kfunc with BTF id {0} is unknown: \
         the program comes without the BTF of the kernel or module that defines the kfunc"
    )]
    UnknownKfunc(TypeId),
    /// The program called `bpf_throw` in a callback.
    #[error("bpf_throw() called in a callback, where it is not allowed")]
    ThrownInCallback,
    /// The instruction was poisoned: its CO-RE relocation had no target.
    #[error(
        "the instruction is poisoned: the kernel types in use have no `{0}`; \
         guard it with bpf_core_field_exists() or give other types"
    )]
    Poisoned(String),
    /// A call or callback whose target is not a function of the program.
    #[error("call target {0} is not a function of this program")]
    NoFunction(Pointer),
    /// A 64-bit immediate that refers to an object the program does not have.
    #[error("{}", no_object(.0))]
    NoObject(Pseudo),
    /// An event that was to fire in the middle of the run and can't.
    #[error("event in the middle of the run: {0}")]
    Interrupt(String),
    /// Too many regions in the address space.
    #[error("{0}")]
    Space(#[from] SpaceFull),
}

/// Why a helper or kfunc can't carry out a call.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HelperProblem {
    /// The helper has no implementation.
    #[error(
        "not implemented; mock it: \
         `vm.mock_helper(\"{0}\", |call| Ok(0))`"
    )]
    Missing(&'static str),
    /// The kfunc has no implementation.
    #[error(
        "not implemented; mock it: \
         `vm.mock_kfunc(\"{0}\", |call| Ok(0))`"
    )]
    MissingKfunc(String),
    /// No helper has this number.
    #[error("Linux 6.18 has helpers 1 to 211 only")]
    Unknown,
    /// An invalid access to the memory that an argument points to.
    #[error("argument {arg}: {fault}")]
    Access {
        /// The argument, from 1.
        arg: usize,
        /// What is wrong with it.
        fault: AccessFault,
    },
    /// An argument that does not match the prototype.
    #[error("argument {arg} is {found}{}, expected {wanted}", freed(found))]
    Argument {
        /// The argument, from 1.
        arg: usize,
        /// What the argument is.
        found: Pointer,
        /// What the prototype expects.
        wanted: &'static str,
    },
    /// The helper does not support maps of this type.
    #[error("argument {arg} is map {map} of type {map_type}, which the function does not support")]
    MapType {
        /// The argument, from 1.
        arg: usize,
        /// The map's name.
        map: String,
        /// Its type.
        map_type: MapType,
    },
    /// A map that is read-only or write-only for programs.
    #[error("argument {arg} is map {map}, which is {rights} for programs")]
    MapRights {
        /// The argument, from 1.
        arg: usize,
        /// The map's name.
        map: String,
        /// `read-only` or `write-only`.
        rights: &'static str,
    },
    /// Too many regions in the address space.
    #[error("{0}")]
    Space(#[from] SpaceFull),
    /// An object in kernel memory can't be created or found.
    #[error("{0}")]
    Kernel(#[from] Box<KernelError>),
    /// Any other problem, as text.
    #[error("{0}")]
    Other(String),
    /// `bpf_throw` ends the program with this cookie.
    #[error("bpf_throw({0:#x})")]
    Thrown(u64),
    /// A callback of the helper faulted.
    #[error("in the callback: {0}")]
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

/// Why a 64-bit immediate can't be resolved.
fn no_object(pseudo: &Pseudo) -> String {
    match pseudo {
        Pseudo::MapIdx { index } => format!("the program has no map {index}"),
        Pseudo::MapIdxValue { index, .. } => {
            format!("the program has no map {index} whose value has an address")
        }
        Pseudo::MapFd { fd } | Pseudo::MapValue { fd, .. } => {
            format!("map file descriptor {fd} can't be resolved: bpflab refers to maps by index")
        }
        Pseudo::BtfId { id, .. } => format!("there is no kernel variable with BTF id {id}"),
        Pseudo::Func { rel } => format!("there is no function at relative offset {rel}"),
    }
}

impl Fault {
    /// The cookie, if this is an exception and no fault: `bpf_throw` ends an engine's operations
    /// in the same way.
    pub(crate) const fn thrown(&self) -> Option<u64> {
        match self.kind {
            FaultKind::Kfunc {
                problem: HelperProblem::Thrown(cookie),
                ..
            } => Some(cookie),
            _ => None,
        }
    }

    /// A fault at an instruction of `program`, with the subprogram and source line if known.
    #[doc(hidden)]
    #[must_use]
    pub fn at(program: &Program, pc: Pc, insn: String, kind: FaultKind) -> Self {
        Self {
            program: program.name.clone(),
            function: program.subprogram(pc).map(|sub| sub.name.clone()),
            pc,
            insn,
            source: SourceLine::at(program, pc),
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
            write!(f, "\n  at {source}")?;
        }
        if let Some(access) = &self.core_access {
            write!(f, "\n  where C accesses {access}")?;
        }
        Ok(())
    }
}
