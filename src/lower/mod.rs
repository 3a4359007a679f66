//! Verified programs become the operations that the fast engines run: decoded once,
//! jumps resolved, maps and helpers bound to a machine, dead code gone, and the checks
//! left out that the verifier proved to hold.
//!
//! | file | what |
//! |---|---|
//! | `op` | the operations |
//! | `note` | what is known of one of them |
//! | `fuse` | several of them as one |
//! | `lowered` | a program of them, and what it refers to |
//! | `known` | helpers whose result stays the same for a run |
//! | `translate` | from instructions to operations |
//! | `place` | which accesses need no check, and where they go |
//! | `flow`, `effect` | where operations lead, and what they read and write |
//! | `ranges` | what registers may hold |
//! | `prune` | leaving out what nobody reaches |
//! | `fresh` | which values are there though the program deletes some |
//! | `zeroing` | what of a frame has to be zero |
//! | `lenders` | which functions may tell others where their frame is |
//! | `context` | what a program asks of its context, and whether a run may start |
//!
//! What a fast engine relies on, for a [`Lowered`] program whose run
//! [may start](Lowered::may_start):
//! - an access with a [`Place`] other than `Checked` is in bounds of live memory and
//!   allowed, and so are a helper's accesses through its arguments;
//! - jumps, calls and falling through stay among the operations;
//! - no more than [`MAX_CALL_FRAMES`](crate::spec::limits::MAX_CALL_FRAMES) functions
//!   of the program call one another at once, callbacks of helpers aside;
//! - no helper that it calls is mocked: a mock might return what no kernel does.

mod bindings;
mod context;
mod effect;
mod flow;
mod fresh;
mod fuse;
mod known;
mod lenders;
mod lowered;
mod note;
mod op;
mod place;
mod prune;
mod ranges;
#[cfg(test)]
mod tests;
mod translate;
mod zeroing;

use bitflags::bitflags;
use thiserror::Error;

pub use bindings::Bindings;
#[cfg(feature = "jit")]
pub(crate) use effect::effect;
pub use fuse::{Branch, Fused, Source};
pub use known::{CPU, KNOWN, KnownValues};
pub use lenders::Lenders;
pub use lowered::{BoundMap, ContextUse, Function, Helper, Keys, Lowered};
pub use note::Notes;
pub use op::{Op, Order, Place, Target};
pub use translate::lower;

use crate::util::Pc;

bitflags! {
    /// What lowering makes cheaper. Each can be left out, to find a fault or a gain;
    /// without any, every access is a [`Checked`](Place::Checked) one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Passes: u32 {
        /// A branch that always goes one way is a jump, and what it never reaches is
        /// left out.
        const DEAD_CODE = 1 << 0;
        /// Accesses to the function's own stack go to the frame.
        const STACK = 1 << 1;
        /// Accesses to the context go to its bytes; its pointers are looked up.
        const CONTEXT = 1 << 2;
        /// Accesses to the values of a map of the program go to them.
        const MAP_VALUE = 1 << 3;
        /// Other accesses that were proved to be in bounds find their region in a table.
        const TABLE = 1 << 4;
        /// Helpers whose result stays the same for a run are not called.
        const KNOWN = 1 << 5;
        /// Look-ups in maps that are known are not calls of helpers.
        const LOOKUP = 1 << 6;
        /// What registers and stack slots may hold is computed, and noted where it
        /// helps; branches that it decides are jumps, and what is dead then is gone.
        const RANGES = 1 << 7;
        /// Several operations may be executed as one.
        const FUSE = 1 << 8;
        /// Only those bytes of a frame are made zero that may be read before they are
        /// written.
        const ZEROING = 1 << 9;
        /// Accesses to values of a map of which the program deletes elements go to them
        /// where no call since the look-up may have taken the element away.
        const FRESH = 1 << 10;
    }
}

impl Default for Passes {
    fn default() -> Self {
        Self::all()
    }
}

/// Why a verified program can't be lowered; the checked interpreter runs it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LowerError {
    /// An instruction that no fast engine has.
    #[error("instruction {0} has no operation")]
    Unsupported(Pc),
    /// A map in the machine that has not the shape of the one that was verified, or
    /// none at all.
    #[error("instruction {0} names a map that is not there as it was verified")]
    Map(Pc),
    /// The program is too large for its indices.
    #[error("more functions, maps or helpers than an operation can number")]
    TooLarge,
}
