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
    /// A copy in memory of states that are no longer needed.
    pub(crate) fn copy(&mut self, state: &State) -> State {
        state.clone()
    }
    /// Takes back the memory of a state.
    pub(crate) fn recycle(&mut self, _state: State) {}
    /// Forgets all states: a walk is over.
    pub(crate) fn clear(&mut self) {
        self.states.clear();
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

    /// The kept state at `pc` on the way to the current one (`find_prev_entry`).
    pub(crate) fn previous_entry(&self, _pc: Pc) -> Option<StateId> {
        None
    }
    /// Widens numbers of the state that waits last which changed since `before`.
    pub(crate) fn widen_pending(&mut self, _before: StateId) {}
    /// Widens numbers of the current state that changed in a callback.
    pub(crate) fn widen_callback(&mut self, _pc: Pc) -> Checked {
        Ok(())
    }
}
