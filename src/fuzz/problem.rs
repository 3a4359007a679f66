//! What an oracle objects to.

use super::oracle::Oracle;
use super::verdicts::template;

/// What an oracle objects to in a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The oracle.
    pub oracle: Oracle,
    /// What is wrong: the same for problems with about the same cause.
    pub kind: String,
    /// Our answer.
    pub ours: String,
    /// What the oracle has instead.
    pub other: String,
}

impl Problem {
    /// A problem, whose kind is `kind` without its numbers.
    pub(super) fn new(
        oracle: Oracle,
        kind: &str,
        ours: impl Into<String>,
        other: impl Into<String>,
    ) -> Self {
        Self {
            oracle,
            kind: template(kind),
            ours: ours.into(),
            other: other.into(),
        }
    }

    /// Whether another problem has about the same cause.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.oracle == other.oracle && self.kind == other.kind
    }
}
