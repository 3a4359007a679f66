//! The verifier: what Linux 6.18 would say about a program.
//!
//! It walks a program as the kernel does, with a set of possible values in place of
//! each register's one value. A program that passes has been shown to do no harm on
//! any input; one that doesn't gets the kernel's error line.
//!
//! | room | what it judges |
//! |---|---|
//! | `structure` | what can be seen before the walk: jumps, subprograms, reserved fields, BTF |
//! | `liveness` | which registers and stack slots are read later |
//! | `explore` | the walk: the story of one instruction, forks, the end of a path |
//! | `tnum`, `scalar` | numbers: known bits, bounds, arithmetic, comparisons |
//! | `reg`, `stack`, `state` | what is known of registers, stack slots, frames, references |
//! | `alu`, `branch`, `packet` | arithmetic on pointers, what a branch teaches |
//! | `memory` | loads and stores, by kind of pointer |
//! | `call` | helpers, subprograms, callbacks, return values |
//! | `precision`, `prune` | which numbers matter, and which paths are covered already |
//! | `log`, `reject`, `verdict` | the kernel's words |
//! | `facts` | what is proved, for the engines |
//!
//! Two laws hold for each operation. *Soundness*: a result contains every number that
//! the instruction could compute from members of its operands. *Parity*: it is exactly
//! as wide as the kernel's, for a program that relies on more than the kernel knows
//! would be rejected there, and the log prints it.

mod alu;
mod attach_target;
mod branch;
mod call;
mod context;
mod context_argument;
mod env;
mod explore;
mod facts;
mod liveness;
mod log;
mod maps;
mod memory;
mod packet;
mod precision;
mod prune;
mod reg;
mod reg_check;
mod reject;
pub mod scalar;
mod stack;
mod state;
mod structure;
pub mod tnum;
mod verdict;

pub use reject::Reject;
pub use verdict::{LogLevel, Statistics, Verdict};

/// How a program is verified.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// What the log holds; the error line is there anyway.
    pub log: LogLevel,
    /// Whether memory has to be aligned as on a machine that can't do otherwise
    /// (`BPF_F_STRICT_ALIGNMENT`; a program's own flags ask for it, too).
    pub strict_alignment: bool,
}
