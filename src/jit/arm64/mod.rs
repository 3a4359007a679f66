//! Code for arm64, by the calling convention of its 64-bit procedure call standard.
//!
//! | file | what |
//! |---|---|
//! | `regs` | what the host's registers hold |
//! | `emitter` | the code so far, constants, what is put off and how far branches reach |
//! | `labels` | labels, and what is put off |
//! | `features` | what not every host can do |
//! | `translate` | from operations to code |
//! | `alu` | arithmetic |
//! | `divide` | division and remainder |
//! | `memory` | places, loads, stores |
//! | `atomic` | read-modify-write |
//! | `lookup` | look-ups in maps |
//! | `fused` | several operations as one |
//! | `branch` | jumps, and the count of instructions on them |
//! | `call` | helpers, functions, tail calls, operations without code of their own |
//! | `frame` | entering and leaving functions |
//!
//! An instruction has 32 bits, so what it names is near or small: a conditional branch
//! reaches 1 MiB, a plain one 128 MiB. Conditional branches therefore lead to code that
//! is written before it is too far (`emitter`). What does not reach makes no code at
//! all, never wrong code: the assembler refuses it.

// `dynasm!` casts what it is given.
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
