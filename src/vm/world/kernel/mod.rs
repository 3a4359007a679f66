//! The mocked kernel's own memory: objects of BTF types that a test creates and fills.
//! Programs read them like kernel memory: with `bpf_probe_read_kernel` and `BPF_CORE_READ`,
//! and directly, through typed pointers (`PTR_TO_BTF_ID`).
//!
//! Only the test changes them, by an object's handle. Every engine checks each load from
//! kernel memory and assumes nothing about its contents: the verifier only knows a pointer's
//! type, and loads of unmapped addresses read 0, as in the kernel.

mod error;
mod heap;
mod memory;
mod object;
mod path;
mod symbols;
mod types;

pub use error::{KernelError, PathProblem};
pub use memory::KernelMemory;
pub use object::KernelObject;
