//! A round of an unrolled loop.

use dynasmrt::DynamicLabel;

use crate::lower::Target;

/// The current round of an unrolled loop.
#[derive(Debug)]
pub(super) struct Round {
    pub head: Target,
    /// The jump back to it.
    pub back: Target,
    /// How many instructions of earlier rounds are not counted yet.
    pub ahead: i32,
    pub is_last: bool,
    /// The labels of the operations after the head; empty in the first round, which has the
    /// operations' ordinary labels.
    pub labels: Vec<DynamicLabel>,
}

impl Round {
    /// This round's label of an operation.
    pub(super) fn label(&self, op: Target) -> Option<DynamicLabel> {
        let inner = op.checked_sub(self.head + 1)?;
        self.labels.get(inner as usize).copied()
    }

    /// What an edge to an operation subtracts for the earlier rounds.
    pub(super) fn ahead(&self, to: Target) -> i32 {
        // Within the round nothing is subtracted.
        if self.head < to && to <= self.back {
            0
        } else {
            self.ahead
        }
    }

    /// Whether an edge leads to the next round.
    pub(super) fn has_next(&self, from: Target, to: Target) -> bool {
        !self.is_last && (from, to) == (self.back, self.head)
    }
}
