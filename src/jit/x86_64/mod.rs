//! Code generation for x86-64, by the System V calling convention.
//!
//! | file | what |
//! |---|---|
//! | `regs` | what the host's registers hold |
//! | `features` | optional extensions |
//! | `bytes` | bytes, several at a time |
//! | `assembler` | labels, short jumps, aligned loops |
//! | `encode` | instructions with an operand in memory |
//! | `emitter` | the code so far, stubs |
//! | `operand`, `division`, `round` | data types of the others |
//! | `pins`, `keeps` | what spare host registers hold |
//! | `translate` | translates operations to code |
//! | `unroll` | loop unrolling |
//! | `alu` | arithmetic |
//! | `divide` | division and remainder |
//! | `constant_division` | the inverse of a constant |
//! | `fused` | several operations as one |
//! | `select` | selection without a branch |
//! | `look_up` | elements of maps |
//! | `memory` | addresses, loads, stores |
//! | `atomic` | read-modify-write |
//! | `branch` | jumps, and the count of instructions on them |
//! | `call` | helpers, functions, tail calls, operations without code of their own |
//! | `frame` | entering and leaving functions |

// `dynasm!` casts its arguments.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::useless_conversion,
    unused_qualifications,
    reason = "in code that a macro of another crate makes"
)]

mod alu;
mod assembler;
mod atomic;
mod branch;
mod bytes;
mod call;
mod constant_division;
mod divide;
mod division;
mod emitter;
mod encode;
mod features;
mod frame;
mod fused;
mod keeps;
mod look_up;
mod memory;
mod operand;
mod pins;
mod regs;
mod round;
mod select;
mod translate;
mod unroll;

pub(super) use features::Features;
pub(super) use translate::emit;
