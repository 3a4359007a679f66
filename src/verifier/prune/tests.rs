//! Hand-made states for the tests of this module.

use crate::util::Pc;
use crate::verifier::history::History;
use crate::verifier::pool::Pools;
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

/// The state as a checkpoint has it, with its registers and slots in `pools`.
pub(super) fn saved(state: &State, pools: &mut Pools) -> SavedState {
    let frames = state.frames.iter().map(|frame| pools.save(frame, None));
    let frames = frames.collect();
    state.with(frames, state.refs.clone(), History::default())
}
