//! Errors of kernel memory.

use thiserror::Error;

use crate::btf::LayoutError;
use crate::vm::fields::{ValueProblem, listed};
use crate::vm::memory::KernelMemoryFull;

/// Why an object in kernel memory can't be created, found or changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KernelError {
    /// There is no type with this name.
    #[error("no type `{name}` is known{}", no_type(.known))]
    NoType {
        /// The requested name.
        name: String,
        /// Existing names, the most similar first; empty if no types are known at all.
        known: Vec<String>,
    },
    /// A type without a layout.
    #[error("cannot create an object of type `{name}`: {problem}")]
    Layout {
        /// The type.
        name: String,
        /// Why not.
        problem: LayoutError,
    },
    /// An invalid path.
    #[error("{ty}: `{path}`: {problem}")]
    Path {
        /// The type of the object that the path begins in.
        ty: String,
        /// The path.
        path: String,
        /// What is wrong.
        problem: Box<PathProblem>,
    },
    /// A value that does not fit.
    #[error("{ty}: field `{path}` {problem}")]
    Value {
        /// The type of the object that the path begins in.
        ty: String,
        /// The path.
        path: String,
        /// Why it does not fit.
        problem: Box<ValueProblem>,
    },
    /// An object without a type, and so without fields.
    #[error("{0} has no type: only its bytes can be read and written, not fields")]
    Untyped(String),
    /// The object was freed.
    #[error("{0} was freed")]
    Freed(String),
    /// A kernel variable whose type is not known.
    #[error(
        "the type of kernel variable `{0}` is unknown: \
         set it with World::variable_of"
    )]
    NoVariable(String),
    /// A per-CPU variable.
    #[error("`{0}` is a per-CPU variable: use World::per_cpu(\"{0}\", cpu)")]
    PerCpu(String),
    /// An address without an object.
    #[error("no kernel object at address {0:#x}")]
    Nowhere(u64),
    /// A CPU that the world does not have.
    #[error("there is no CPU {cpu}: the world has {cpus}, from 0 on")]
    NoCpu {
        /// The requested CPU.
        cpu: u32,
        /// How many there are.
        cpus: u32,
    },
    /// Kernel memory is full.
    #[error(transparent)]
    Full(#[from] KernelMemoryFull),
}

/// What is wrong with a path, as the continuation of "`a.b`: ".
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathProblem {
    /// No member of this name.
    #[error("{within} has no member `{name}`; it has {}", listed(.known))]
    NoMember {
        /// The struct or union that was searched.
        within: String,
        /// The name in the path.
        name: String,
        /// Its members, the most similar name first.
        known: Vec<String>,
    },
    /// A malformed step, or one that does not fit the type.
    #[error("{0}")]
    Step(String),
    /// A null pointer in the path.
    #[error("`{0}` is a null pointer")]
    Null(String),
    /// A pointer in the path to something without a type.
    #[error("`{step}` points to {to}, whose layout is unknown: set it to an object's address")]
    Opaque {
        /// The part of the path up to the pointer.
        step: String,
        /// The type that it points to, in C.
        to: String,
    },
    /// A pointer in the path that does not point to a kernel object.
    #[error("`{step}` is {address:#x}, where there is no kernel object")]
    Nowhere {
        /// The part of the path up to the pointer.
        step: String,
        /// The pointer's value.
        address: u64,
    },
    /// A part beyond the end of the object.
    #[error("lies beyond the end of {0}")]
    Outside(String),
    /// A part that is not a number.
    #[error("{0} is not a number")]
    NoNumber(String),
    /// A part that is not text.
    #[error("{0} is neither a character array nor a pointer to characters")]
    NoText(String),
}

fn no_type(known: &[String]) -> String {
    if known.is_empty() {
        ": no types are known. Load an object with BTF first, or set the kernel's \
         (Vm::set_kernel_btf)"
            .to_owned()
    } else {
        format!("; the nearest are {}", listed(known))
    }
}
