//! The states that wait to be explored.

use crate::spec::limits::MAX_JUMP_SEQUENCE;
use crate::util::Pc;
use crate::verifier::state::State;

/// Where exploration continues with a state (`struct bpf_verifier_stack_elem`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resume {
    /// The instruction.
    pub pc: Pc,
    /// The instruction that pushed the state.
    pub prev: Pc,
    /// The length of the log at that time.
    pub log_len: usize,
}

/// The states that wait to be explored; the one pushed last is next.
#[derive(Debug, Default)]
pub(crate) struct Worklist {
    /// Those that wait, then states whose memory is used again.
    states: Vec<(State, Resume)>,
    waiting: usize,
}

impl Worklist {
    /// Exchanges `state`, whose path has ended, for the next one.
    pub(super) fn pop(&mut self, state: &mut State) -> Option<Resume> {
        self.waiting = self.waiting.checked_sub(1)?;
        let (next, resume) = &mut self.states[self.waiting];
        std::mem::swap(state, next);
        Some(*resume)
    }

    /// Adds a copy of a state. Returns it so that the caller can change it.
    pub(crate) fn push(&mut self, state: &State, resume: Resume) -> &mut State {
        let at = self.waiting;
        self.waiting += 1;
        match self.states.get_mut(at) {
            Some(free) => {
                free.0.clone_from(state);
                free.1 = resume;
            }
            None => self.states.push((state.clone(), resume)),
        }
        &mut self.states[at].0
    }

    /// The state pushed last. At a branch, this is the state of the other path.
    pub(crate) fn last_mut(&mut self) -> Option<&mut State> {
        let waiting = self.states.get_mut(..self.waiting)?;
        waiting.last_mut().map(|(state, _)| state)
    }

    /// If no more states may be pushed, the message for this, without its end.
    pub(crate) fn too_complex(&self) -> Option<String> {
        let waiting = self.waiting + 1;
        (waiting > MAX_JUMP_SEQUENCE)
            .then(|| format!("The sequence of {waiting} jumps is too complex"))
    }
}
