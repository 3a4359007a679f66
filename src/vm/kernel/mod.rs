//! The mocked kernel's own memory: objects of BTF types that a test makes and fills,
//! and that programs read as they read the kernel's: with `bpf_probe_read_kernel` and
//! `BPF_CORE_READ`, and directly, through pointers that BTF gives a type.
//!
//! Memory changes only when a test says so, by an object's handle. A program's loads
//! from it are always judged, on every engine, and nothing of what is in it is ever
//! taken for a fact: the verifier knows no more of such a pointer than its type, and an
//! address where nothing is reads as zero, as in the kernel.

mod error;
mod heap;
mod memory;
mod object;
mod place;
mod symbols;
mod types;

pub use error::{KernelError, PathProblem};
pub use memory::KernelMemory;
pub use object::KernelObject;
