//! What can be wrong with a question to kernel memory, and what to do about it.

use thiserror::Error;

use super::super::events::{ValueProblem, listed};
use super::super::memory::KernelMemoryFull;
use crate::btf::LayoutError;

/// Why an object of the kernel can't be made, found or changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KernelError {
    /// No type of this name is known.
    #[error("no type `{name}` is known{}", no_type(.known))]
    NoType {
        /// The name that was asked for.
        name: String,
        /// Names that there are, the nearest ones first; none where no types are known
        /// at all.
        known: Vec<String>,
    },
    /// A type that objects can't be made of.
    #[error("no object can be made of `{name}`: {problem}")]
    Layout {
        /// The type.
        name: String,
        /// Why not.
        problem: LayoutError,
    },
    /// A path that leads nowhere.
    #[error("{ty}: `{path}`: {problem}")]
    Path {
        /// The type of the object that the path begins in.
        ty: String,
        /// The path as it was given.
        path: String,
        /// What is wrong.
        problem: Box<PathProblem>,
    },
    /// A value that does not fit.
    #[error("{ty}: field `{path}` {problem}")]
    Value {
        /// The type of the object that the path begins in.
        ty: String,
        /// The path as it was given.
        path: String,
        /// Why not.
        problem: Box<ValueProblem>,
    },
    /// An object whose type says nothing of its parts.
    #[error("{0} has no type here: its bytes can be read and written, not its fields")]
    Untyped(String),
    /// An object that was freed.
    #[error("{0} was freed")]
    Freed(String),
    /// No variable of this name has a type.
    #[error(
        "no type is known for the kernel variable `{0}`: \
         World::variable_of gives it one"
    )]
    NoVariable(String),
    /// A variable of which each CPU has its own instance.
    #[error("each CPU has its own `{0}`: World::per_cpu(\"{0}\", cpu) gives it")]
    PerCpu(String),
    /// An address where no object is.
    #[error("the kernel has no object at {0:#x}")]
    Nowhere(u64),
    /// A CPU that the world does not have.
    #[error("there is no CPU {cpu}: the world has {cpus}, from 0 on")]
    NoCpu {
        /// The CPU that was asked for.
        cpu: u32,
        /// How many there are.
        cpus: u32,
    },
    /// There is no room.
    #[error(transparent)]
    Full(#[from] KernelMemoryFull),
}

/// What is wrong with a path, as the continuation of "`a.b`: ".
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PathProblem {
    /// No member of this name.
    #[error("{within} has no member `{name}`; it has {}", listed(.known))]
    NoMember {
        /// The struct or union that was searched.
        within: String,
        /// The name.
        name: String,
        /// Its members, those with the nearest name first.
        known: Vec<String>,
    },
    /// A step that does not fit what it is applied to, or is no step.
    #[error("{0}")]
    Step(String),
    /// A pointer on the way that is null.
    #[error("`{0}` is a null pointer")]
    Null(String),
    /// A pointer on the way to something that has no type.
    #[error("`{step}` points to {to}, of which no layout is known: set it to an object's address")]
    Opaque {
        /// The pointer's part of the path.
        step: String,
        /// What it points to, in C.
        to: String,
    },
    /// A pointer on the way that does not point to an object of the kernel.
    #[error("`{step}` is {address:#x}, where the kernel has no object")]
    Nowhere {
        /// The pointer's part of the path.
        step: String,
        /// What it holds.
        address: u64,
    },
    /// A part that lies beyond the object that is there.
    #[error("lies beyond the end of {0}")]
    Outside(String),
    /// A part that is no number.
    #[error("{0} is no number")]
    NoNumber(String),
    /// A part that is no text.
    #[error("{0} is neither an array of characters nor a pointer to some")]
    NoText(String),
}

fn no_type(known: &[String]) -> String {
    if known.is_empty() {
        ": no types are known at all. Load an object with BTF first, or give the kernel's \
         (Vm::set_kernel_btf)"
            .to_owned()
    } else {
        format!("; the nearest are {}", listed(known))
    }
}
