//! A run of a [`Lowered`](crate::lower::Lowered) program without the checks that the
//! verifier proved unnecessary. The results of a run are exactly those of the checked
//! interpreter, including the instruction count.
//!
//! | file | what |
//! |---|---|
//! | `attached` | calls by way of the run: of functions to which programs are attached, of callbacks |
//! | `context` | the packet and the context's pointers, as a run holds them |
//! | `frames` | entering and leaving functions |
//! | `look_up` | look-ups of keys by their host addresses |
//! | `native` | entering machine code |
//! | `rest` | functions that machine code hands over to the interpreters |
//! | `run` | the state of a run, its start, helpers and their callbacks |
//! | `step` | one operation, and the loop over operations |
//! | `tail` | tail calls, and the switch to the checked interpreter |

mod attached;
mod context;
mod frames;
#[cfg(feature = "jit")]
mod look_up;
mod native;
#[cfg(feature = "jit")]
mod rest;
pub(crate) mod run;
mod step;
mod tail;

pub(crate) use context::held_pointer;
#[cfg(feature = "jit")]
pub(crate) use look_up::look_up_at;
pub(crate) use run::{End, Next, Run};
#[cfg(feature = "jit")]
pub(crate) use run::{POINTERS, Stop};
#[cfg(feature = "jit")]
pub(crate) use tail::Tail;
