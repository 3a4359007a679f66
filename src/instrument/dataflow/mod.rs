//! What registers and stack slots hold before each instruction: a forward analysis over all
//! paths, function by function, with what callers pass joined over all calls.
//!
//! It does not ask the verifier, so that programs can be recorded which only the kernel's
//! verifier understands. It may rely on one thing: some verifier accepts the program, so
//! whoever follows a pointer does so on a path on which it is one.

mod kind;
mod state;
mod transfer;
mod walk;

pub(super) use kind::{Kind, Owner};
pub(super) use state::{Bytes, State};
pub(super) use walk::Dataflow;
