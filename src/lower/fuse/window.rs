//! A window of consecutive operations that nothing jumps into, and which registers are dead
//! after it.

use crate::analysis::NOWHERE;
use crate::isa::Reg;
use crate::lower::flow::edges;
use crate::lower::lowered::Lowered;
use crate::lower::op::{MemRef, Op, Target};

/// The most operations that are fused.
const LONGEST: usize = 6;

/// How many operations to search for whether a register is dead: if it is not written again
/// soon, it is taken as live.
const NEAR: u32 = 24;

/// Consecutive operations that nothing jumps into except at the first.
pub(super) struct Window<'a> {
    program: &'a Lowered,
    /// The first one's index.
    pub at: Target,
    pub ops: &'a [Op],
}

impl<'a> Window<'a> {
    /// The operations from `at` on; `leads` marks jump targets.
    pub fn at(program: &'a Lowered, leads: &[bool], at: Target) -> Self {
        let from = at as usize;
        let rest = leads.get(from + 1..).unwrap_or_default();
        let len = rest.iter().take(LONGEST - 1).take_while(|leads| !**leads);
        let ops = program.ops.get(from..=from + len.count());
        Self {
            program,
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
        let mut left = NEAR;
        self.is_dead_within(reg, from, &mut left)
    }

    fn is_dead_within(&self, reg: Reg, from: Target, left: &mut u32) -> bool {
        let mut at = from;
        while *left > 0 {
            *left -= 1;
            let (Some(&op), Some(effect)) = (
                self.program.ops.get(at as usize),
                self.program.effects.get(at as usize),
            ) else {
                return false;
            };
            if effect.reads.contains(reg) {
                return false;
            }
            // A function restores its caller's r6 to r9.
            if effect.writes.contains(reg) || matches!(op, Op::Throw { .. } | Op::Exit) {
                return true;
            }
            let [next, target] = edges(op, at);
            if next == NOWHERE {
                at = target;
                continue;
            }
            if target != NOWHERE && !self.is_dead_within(reg, target, left) {
                return false;
            }
            at = next;
        }
        false
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
