//! Instruction counting.
//!
//! Each operation has a *phase*. A host register holds the number of instructions that the
//! budget has left, plus the phase of the current operation, minus a margin. Falling
//! through or jumping to an operation whose phase is one more needs no code: phases are
//! chosen such that few edges have to add something, preferably those of taken forward
//! jumps. Only backward jumps, entries and returns check the register: a negative value
//! means that fewer instructions may be left than the margin, which is the most that can be
//! executed until the next check.
//!
//! Code that [does not count](Counting::Off) has no phases, no checks, and no such register.

use crate::engine::Counting;
use crate::lower::{Lowered, Op, Target};

/// The most rounds of an unrolled loop, which has no check of the register between rounds.
pub(super) const MOST_ROUNDS: i32 = 4;

/// A phase that is not chosen yet.
const ANY: i32 = i32::MIN;

/// The phases of a program's operations.
#[derive(Debug)]
pub(super) struct Counts {
    phases: Vec<i32>,
    /// The margin; see the module.
    pub margin: i32,
    /// Whether the code counts.
    pub is_on: bool,
}

impl Counts {
    pub(super) fn of(lowered: &Lowered, counting: Counting) -> Self {
        match counting {
            Counting::Exact => Self::exact(lowered),
            Counting::Off => Self {
                phases: Vec::new(),
                margin: 0,
                is_on: false,
            },
        }
    }

    fn exact(lowered: &Lowered) -> Self {
        let ops = lowered.ops();
        let mut phases = vec![ANY; ops.len()];
        for function in lowered.functions() {
            if let Some(entry) = phases.get_mut(function.entry as usize) {
                *entry = 0;
            }
        }
        let mut after = 0;
        for (op, at) in ops.iter().zip(0u32..) {
            if let Some(phase) = phases.get_mut(at as usize) {
                if *phase == ANY {
                    *phase = after;
                }
                after = *phase + 1;
            }
            if let Op::JumpIf { target, .. } = op
                && *target > at
                && let Some(phase @ &mut ANY) = phases.get_mut(*target as usize)
            {
                *phase = after;
            }
        }
        // A phase is at most the number of preceding operations, including rounds of loops,
        // and so is the number executed until the next check.
        let factor = 2 * MOST_ROUNDS;
        let margin = i32::try_from(ops.len()).map_or(i32::MAX, |n| n.saturating_mul(factor));
        Self {
            phases,
            margin: margin.saturating_add(2),
            is_on: true,
        }
    }

    /// The phase of an operation.
    pub(super) fn phase(&self, at: Target) -> i32 {
        self.phases.get(at as usize).copied().unwrap_or(0)
    }

    /// What the edge from `from` to `to` subtracts from the register.
    pub(super) fn edge(&self, from: Target, to: Target) -> i32 {
        if !self.is_on {
            return 0;
        }
        self.phase(from) + 1 - self.phase(to)
    }

    /// The difference from the register to the instructions left while `at` is executed,
    /// which itself is counted; may be negative.
    pub(super) fn during(&self, at: Target) -> i32 {
        if !self.is_on {
            return 0;
        }
        self.phase(at) + 1 - self.margin
    }

    /// The same before `at`.
    pub(super) fn before(&self, at: Target) -> i32 {
        self.phase(at) - self.margin
    }
}
