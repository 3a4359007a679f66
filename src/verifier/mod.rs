//! The verifier: what Linux 6.18 would say about a program.
//!
//! It walks a program as the kernel does, with a set of possible values in place of
//! each register's one value, and will hold the walk, the register types, the memory
//! model and the reports. What stands so far is the lattice under its numbers,
//! [`tnum::Tnum`]: each bit 0, 1 or unknown.
//!
//! Two laws hold for each operation. *Soundness*: a result contains every number that
//! the instruction could compute from members of its operands. *Parity*: it is exactly
//! as wide as the kernel's, for a program that relies on more than the kernel knows
//! would be rejected there, and the log prints it.

pub mod diagnose;
mod reject;
mod stub;
pub mod tnum;
mod trail;
mod verdict;

pub use reject::Reject;
pub use trail::Trail;
pub use verdict::{LogLevel, Statistics, Verdict};
