//! Dynptrs: pointers to memory whose size is only known at run time (`kernel/bpf/helpers.c`,
//! "dynptr").
//!
//! A program keeps a dynptr in 16 bytes of its stack, in the format of the kernel's
//! `struct bpf_dynptr_kern` ([`Dynptr`]). Its memory is that of the program, a record of a
//! ring buffer, or a packet (`access`).

pub(super) mod access;
mod kern;
mod kernel_dynptr;
pub(super) mod kernel_packet;

pub use kern::{Dynptr, DynptrKind};
pub use kernel_dynptr::KernelDynptr;
