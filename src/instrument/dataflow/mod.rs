//! The kinds in registers and stack slots before each instruction: a forward analysis over all
//! paths, function by function, that joins the arguments of all callers.
//!
//! It does not use bpflab's verifier, so that programs can be recorded which only the kernel's
//! verifier supports. It relies on one fact: a verifier accepts the program, so a register is a
//! pointer on every path that dereferences it.

mod kind;
mod solve;
mod state;
mod transfer;

pub(super) use kind::{Kind, Owner};
pub(super) use solve::Dataflow;
pub(super) use state::{Bytes, State};
