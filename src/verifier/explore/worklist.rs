//! The states that wait to be explored.

use crate::spec::limits::MAX_JUMP_SEQUENCE;
use crate::util::Pc;
use crate::verifier::state::State;

/// A state that waits to be explored (`struct bpf_verifier_stack_elem`).
#[derive(Debug)]
pub(crate) struct Pending {
    pub state: State,
    /// The instruction at which exploration continues.
    pub pc: Pc,
    /// The instruction that pushed it.
    pub prev: Pc,
    /// The length of the log at that time.
    pub log_len: usize,
}

/// The states that wait to be explored; the one pushed last is next.
#[derive(Debug, Default)]
pub(crate) struct Worklist {
    states: Vec<Pending>,
}

impl Worklist {
    /// Takes the next state.
    pub(super) fn pop(&mut self) -> Option<Pending> {
        self.states.pop()
    }

    /// Adds a state. Returns it so that the caller can change it.
    pub(crate) fn push(&mut self, pending: Pending) -> &mut State {
        let at = self.states.len();
        self.states.push(pending);
        &mut self.states[at].state
    }

    /// The state pushed last. At a branch, this is the state of the other path.
    pub(crate) fn last_mut(&mut self) -> Option<&mut State> {
        self.states.last_mut().map(|pending| &mut pending.state)
    }

    /// If no more states may be pushed, the message for this, without its end.
    pub(crate) fn too_complex(&self) -> Option<String> {
        let waiting = self.states.len() + 1;
        (waiting > MAX_JUMP_SEQUENCE)
            .then(|| format!("The sequence of {waiting} jumps is too complex"))
    }
}
