//! Why a program is not verified: it is rejected, or it is unjudged.

use std::fmt;

use thiserror::Error;

use super::missing::Missing;
use super::reject::Reject;
use crate::util::Pc;

/// Why a program is not verified.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unverified {
    /// Linux 6.18 rejects the program.
    #[error(transparent)]
    Rejected(#[from] Reject),
    /// The program uses a feature that this verifier does not model: there is no verdict.
    #[error(transparent)]
    Unjudged(#[from] Unjudged),
}

impl Unverified {
    /// The reject; `None` for an unjudged program.
    #[must_use]
    pub const fn reject(&self) -> Option<&Reject> {
        match self {
            Self::Rejected(reject) => Some(reject),
            Self::Unjudged(_) => None,
        }
    }

    /// The unmodelled features; `None` for a rejected program.
    #[must_use]
    pub const fn unjudged(&self) -> Option<&Unjudged> {
        match self {
            Self::Rejected(_) => None,
            Self::Unjudged(unjudged) => Some(unjudged),
        }
    }

    /// The instruction at which the verifier stopped; `None` if the reason is not at one
    /// instruction.
    #[must_use]
    pub fn pc(&self) -> Option<Pc> {
        match self {
            Self::Rejected(reject) => reject.pc(),
            Self::Unjudged(unjudged) => unjudged.stopped.pc,
        }
    }
}

/// The features of a program that this verifier does not model.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct Unjudged {
    stopped: Missing,
    missing: Vec<Missing>,
}

impl Unjudged {
    /// Exploration stopped at `stopped`; `found` are the uses in the whole program.
    pub(super) fn new(stopped: Missing, mut found: Vec<Missing>) -> Self {
        if !found.contains(&stopped) {
            found.push(stopped.clone());
        }
        found.sort_by_key(|missing| (missing.pc, missing.feature));
        Self {
            stopped,
            missing: found,
        }
    }

    /// The use at which exploration stopped.
    #[must_use]
    pub const fn stopped(&self) -> &Missing {
        &self.stopped
    }

    /// The use at which exploration stopped, and those that an instruction shows by itself, in
    /// the order of the instructions; never empty.
    #[must_use]
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }
}

/// `not modelled by bpflab: kfunc bpf_rbtree_add (insn 12); 3 more uses`
impl fmt::Display for Unjudged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not modelled by bpflab: {}", self.stopped)?;
        match self.missing.len().saturating_sub(1) {
            0 => Ok(()),
            1 => f.write_str("; 1 more use"),
            more => write!(f, "; {more} more uses"),
        }
    }
}
