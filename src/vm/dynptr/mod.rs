//! Dynamic pointers: memory whose size is known only while a program runs
//! (`kernel/bpf/helpers.c`, "dynptr").
//!
//! A program holds one as 16 bytes on its stack, which mean what the kernel's
//! `struct bpf_dynptr_kern` does ([`Dynptr`]). What they lead to is memory of the
//! program's own, a record of a ring buffer, or a packet (`access`).

pub(super) mod access;
mod held;
mod kern;
pub(super) mod kernel_packet;

pub use held::Held;
pub use kern::{Dynptr, DynptrKind};
