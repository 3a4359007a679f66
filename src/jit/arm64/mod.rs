//! Code generation for arm64, by the calling convention of its 64-bit procedure call
//! standard.
//!
//! | file | what |
//! |---|---|
//! | `regs` | what the host's registers hold |
//! | `emitter` | the code so far, constants, islands and the reach of branches |
//! | `labels` | labels and stubs |
//! | `features` | optional extensions |
//! | `translate` | translates operations to code |
//! | `alu` | arithmetic |
//! | `divide` | division and remainder |
//! | `memory` | addresses, loads, stores |
//! | `atomic` | read-modify-write |
//! | `lookup` | look-ups in maps |
//! | `fused` | several operations as one |
//! | `branch` | jumps, and the count of instructions on them |
//! | `call` | helpers, functions, tail calls, operations without code of their own |
//! | `frame` | entering and leaving functions |
//!
//! An instruction has 32 bits, so offsets and constants in it are small: a conditional
//! branch reaches 1 MiB, a plain one 128 MiB. Conditional branches therefore lead to stubs
//! that are written before they are out of reach (`emitter`). If something does not reach,
//! the assembler refuses it and there is no code: never wrong code.

// `dynasm!` casts its arguments.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::useless_conversion,
    unused_qualifications,
    reason = "in code that a macro of another crate makes"
)]

mod alu;
mod atomic;
mod branch;
mod call;
mod divide;
mod emitter;
mod features;
mod frame;
mod fused;
mod labels;
mod lookup;
mod memory;
mod regs;
#[cfg(test)]
mod tests;
mod translate;

pub(super) use features::Features;
pub(super) use translate::emit;
