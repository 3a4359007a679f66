//! Pruning: a path ends where a kept state covers it.

use super::env::Verifier;
use super::reject::Checked;
use super::state::{State, StateId};
use crate::util::Pc;

/// The states that were kept (`explored_states` and `free_list`).
#[derive(Debug, Default)]
pub(crate) struct Arena {
    states: Vec<State>,
}

impl Arena {
    pub(crate) fn get(&self, id: StateId) -> &State {
        &self.states[id.0 as usize]
    }

    pub(crate) fn get_mut(&mut self, id: StateId) -> &mut State {
        &mut self.states[id.0 as usize]
    }
}

impl Verifier<'_> {
    /// Looks for a kept state that covers the current one, and keeps this one if it
    /// is worth it. Whether the path ends here (`is_state_visited`).
    pub(crate) fn is_visited(&mut self, _pc: Pc) -> Checked<bool> {
        Ok(false)
    }

    /// A path from the current state came to its end (`update_branch_counts`).
    pub(crate) fn end_of_path(&mut self) -> Checked {
        Ok(())
    }
}
