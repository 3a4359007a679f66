//! Where the code of one round of a loop stands among those of others.

use dynasmrt::DynamicLabel;

use crate::lower::Target;

/// A round of a loop under way.
#[derive(Debug)]
pub(super) struct Round {
    pub head: Target,
    /// The jump back to it.
    pub back: Target,
    /// How many instructions the rounds before have had that are not counted yet.
    pub ahead: i32,
    pub is_last: bool,
    /// The labels of the operations after the head; empty in the first round, which has
    /// those that others know.
    pub labels: Vec<DynamicLabel>,
}

impl Round {
    /// This round's label of an operation.
    pub(super) fn label(&self, op: Target) -> Option<DynamicLabel> {
        let inner = op.checked_sub(self.head + 1)?;
        self.labels.get(inner as usize).copied()
    }

    /// What going on at an operation takes for the rounds before.
    pub(super) fn ahead(&self, to: Target) -> i32 {
        // It stays as it is within the round.
        if self.head < to && to <= self.back {
            0
        } else {
            self.ahead
        }
    }

    /// Whether this leads to the next round.
    pub(super) fn has_next(&self, from: Target, to: Target) -> bool {
        !self.is_last && (from, to) == (self.back, self.head)
    }
}
