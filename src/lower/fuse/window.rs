//! A window of consecutive operations that nothing jumps into, and which registers are dead
//! after it.

use super::live::Live;
use crate::isa::Reg;
use crate::lower::lowered::Lowered;
use crate::lower::op::{MemRef, Op, Target};

/// The most operations that are fused.
const LONGEST: usize = 6;

/// Consecutive operations that nothing jumps into except at the first.
pub(super) struct Window<'a> {
    live: &'a Live,
    /// The first one's index.
    pub at: Target,
    pub ops: &'a [Op],
}

impl<'a> Window<'a> {
    /// The operations from `at` on; `leads` marks jump targets.
    pub fn at(program: &'a Lowered, live: &'a Live, leads: &[bool], at: Target) -> Self {
        let from = at as usize;
        let rest = leads.get(from + 1..).unwrap_or_default();
        let len = rest.iter().take(LONGEST - 1).take_while(|leads| !**leads);
        let ops = program.ops.get(from..=from + len.count());
        Self {
            live,
            at,
            ops: ops.unwrap_or_default(),
        }
    }

    /// The index of the operation after the first `n`.
    pub fn after(&self, n: usize) -> Target {
        // A window is short.
        self.at + u32::try_from(n).unwrap_or(0)
    }

    /// Whether a register is dead at an operation: written before it is read.
    pub fn is_dead(&self, reg: Reg, from: Target) -> bool {
        !self.live.before(from).contains(reg)
    }
}

/// Whether an access may be fused: it can't fault.
pub(super) const fn is_sure(mem: MemRef) -> bool {
    !matches!(
        mem,
        MemRef::Kernel { .. } | MemRef::Arena { .. } | MemRef::Checked { .. }
    )
}

/// Whether the host address is known without a table look-up.
pub(super) const fn is_direct(mem: MemRef) -> bool {
    matches!(
        mem,
        MemRef::Stack { .. } | MemRef::Context { .. } | MemRef::MapValue { .. }
    )
}
