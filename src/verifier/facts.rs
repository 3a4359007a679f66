//! What a verification proves, for the engines.
//!
//! A fact is kept only if pruning can't make it false: it holds for every path that
//! was walked and for those that were cut off because a kept state covers them.

use crate::util::Pc;

/// Facts about instructions.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Instructions that some path walks; the others are dead.
    seen: Vec<bool>,
}

impl Facts {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            seen: vec![false; slots],
        }
    }

    /// A path walks this instruction.
    pub(crate) fn see(&mut self, pc: Pc) {
        if let Some(seen) = self.seen.get_mut(pc.index()) {
            *seen = true;
        }
    }

    /// Whether a path walks it.
    pub(crate) fn is_seen(&self, pc: Pc) -> bool {
        self.seen.get(pc.index()).copied().unwrap_or(false)
    }
}
