//! The operations from one on, into whose middle nothing jumps, and what is dead after
//! them.

use crate::isa::Reg;
use crate::lower::effect::effect;
use crate::lower::flow::next;
use crate::lower::lowered::Lowered;
use crate::lower::op::{Op, Place, Target};

/// The most operations that are one.
const LONGEST: usize = 6;

/// How many operations are looked at to see whether a register is dead: it is written
/// again soon, or the program holds on to it.
const NEAR: u32 = 24;

/// Operations that follow each other, into whose middle nothing jumps.
pub(super) struct Window<'a> {
    program: &'a Lowered,
    /// The first one's index.
    pub at: Target,
    pub ops: &'a [Op],
}

impl<'a> Window<'a> {
    /// The operations from `at` on; `leads` tells where jumps lead to.
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
        // A window has a few operations.
        self.at + u32::try_from(n).unwrap_or(0)
    }

    /// Whether nobody reads a register from an operation on before it is written.
    pub fn is_dead(&self, reg: Reg, from: Target) -> bool {
        let mut left = NEAR;
        self.is_dead_within(reg, from, &mut left)
    }

    fn is_dead_within(&self, reg: Reg, from: Target, left: &mut u32) -> bool {
        let mut at = from;
        while *left > 0 {
            *left -= 1;
            let Some(&op) = self.program.ops.get(at as usize) else {
                return false;
            };
            let effect = effect(op);
            if effect.reads.contains(reg) {
                return false;
            }
            // A function leaves r6 to r9 as its caller had them.
            if effect.writes.contains(reg) || op == Op::Exit {
                return true;
            }
            match (next(op).target, next(op).follows) {
                (Some(target), true) => {
                    if !self.is_dead_within(reg, target, left) {
                        return false;
                    }
                    at += 1;
                }
                (Some(target), false) => at = target,
                (None, _) => at += 1,
            }
        }
        false
    }
}

/// Whether an access may be one of several operations, which don't fault.
pub(super) const fn is_sure(place: Place) -> bool {
    !matches!(place, Place::Checked { .. })
}

/// Whether the host address is known without a look into a table.
pub(super) const fn is_direct(place: Place) -> bool {
    matches!(
        place,
        Place::Stack { .. } | Place::Context { .. } | Place::MapValue { .. }
    )
}
