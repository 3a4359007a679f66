//! Hand-made states for the tests of this module.

use super::saved::Blank;
use crate::util::Pc;
use crate::verifier::history::History;
use crate::verifier::state::{Frame, SavedState, State};

/// A state before `pc`, with calls at these instructions.
pub(super) fn state(calls: &[u32], pc: Pc) -> State {
    let mut frames = vec![Frame::new(None, 0, 0)];
    for (number, call) in (1..).zip(calls) {
        frames.push(Frame::new(Some(Pc(*call)), number.into(), number));
    }
    let mut state = State::new(Frame::new(None, 0, 0));
    (state.frames, state.pc) = (frames, pc);
    state
}

/// The state as a checkpoint has it.
pub(super) fn saved(state: &State) -> SavedState {
    let blank = Blank::default();
    let frames = state.frames.iter().map(|frame| blank.save(frame, None));
    state.with(frames.collect(), state.refs.clone(), History::default())
}
