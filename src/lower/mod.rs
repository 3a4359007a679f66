//! Lowers verified programs to the operations that the fast engines run: decoded once,
//! jumps resolved, maps and helpers bound to a machine, dead code removed, and without the
//! checks that the verifier proved unnecessary.
//!
//! | file | what |
//! |---|---|
//! | `op` | the operations |
//! | `note` | facts about single operations |
//! | `fuse` | several operations as one |
//! | `lowered` | a lowered program, and what it refers to |
//! | `known` | helpers whose result is constant during a run |
//! | `translate` | translates instructions to operations |
//! | `access` | which accesses need no check, and how they reach their memory |
//! | `flow`, `effect` | the edges between operations (for `analysis`); what operations read and write |
//! | `ranges` | value ranges of registers and stack slots |
//! | `logarithm` | code that computes a binary logarithm |
//! | `prune` | removes unreachable operations |
//! | `fresh` | which values are still in a map whose elements the program deletes |
//! | `zeroing` | which bytes of a frame must be zeroed |
//! | `exception` | where a program continues after `bpf_throw` |
//! | `escape` | which functions may let the address of their frame escape |
//! | `context` | what a program requires of its context, and whether a run may start |
//!
//! A fast engine relies on this, for a [`Lowered`] program whose run [may
//! start](Lowered::may_start):
//! - an access with a [`MemRef`] other than `Arena` and `Checked` is in bounds of live memory and
//!   allowed, and so are a helper's accesses through its arguments;
//! - jumps, calls and fall-through stay within the operations;
//! - at most [`MAX_CALL_FRAMES`](crate::spec::limits::MAX_CALL_FRAMES) functions of the
//!   program are nested, not counting callbacks of helpers;
//! - no helper and no kfunc that it calls is mocked: a mock might return what no kernel returns.

mod access;
mod bindings;
mod context;
mod effect;
mod escape;
mod exception;
mod flow;
mod fresh;
mod fuse;
mod known;
mod logarithm;
mod lowered;
mod note;
mod op;
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
pub use escape::EscapingFrames;
pub(crate) use exception::exception_callback;
pub use fuse::{Branch, Fused, SelectValue};
pub use known::{CPU, KNOWN, KnownValues};
pub use lowered::{
    BoundArena, BoundMap, Callee, ContextUse, Exceptions, Function, Helper, Keys, Lowered,
};
pub use note::Notes;
#[cfg(feature = "jit")]
pub(crate) use op::has_tail_call;
pub use op::{MemRef, Op, Order, Target};
pub use translate::lower;

use crate::util::Pc;

bitflags! {
    /// Optimizations of lowering. Each can be omitted, to find a bug or measure a gain;
    /// without any, every access is a [`Checked`](MemRef::Checked) one, except to an arena.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Passes: u32 {
        /// Branches with a constant outcome become jumps, and dead code is removed.
        const DEAD_CODE = 1 << 0;
        /// Accesses to the function's own stack address the frame directly.
        const STACK = 1 << 1;
        /// Accesses to the context address its bytes directly; its pointers are looked up.
        const CONTEXT = 1 << 2;
        /// Accesses to the values of the program's maps address them directly.
        const MAP_VALUE = 1 << 3;
        /// Other accesses proved to be in bounds find their region in a table.
        const TABLE = 1 << 4;
        /// Helpers whose result is constant during a run are not called.
        const KNOWN = 1 << 5;
        /// Look-ups in known maps are inlined instead of helper calls.
        const LOOKUP = 1 << 6;
        /// Value ranges of registers and stack slots are computed and recorded as notes;
        /// decided branches become jumps, and code that is dead then is removed.
        const RANGES = 1 << 7;
        /// Several operations may be executed as one.
        const FUSE = 1 << 8;
        /// Only those bytes of a frame are zeroed that may be read before they are written.
        const ZEROING = 1 << 9;
        /// Accesses to values of a map whose elements the program deletes address them
        /// directly where no call since the look-up may have removed the element.
        const FRESH = 1 << 10;
        /// Loads through typed pointers find objects that were read before in a table.
        const KERNEL = 1 << 11;
        /// Code that computes a binary logarithm is found, for machine code that does not
        /// count instructions.
        const LOGARITHM = 1 << 12;
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
    /// An instruction that no fast engine supports.
    #[error("instruction {0} has no operation")]
    Unsupported(Pc),
    /// A map that is missing in the machine, or whose shape differs from the verified one.
    #[error("instruction {0} uses a map that is missing or differs from the verified one")]
    Map(Pc),
    /// The program is too large for its indices.
    #[error("too many functions, maps or helpers for an operation's index")]
    TooLarge,
}
