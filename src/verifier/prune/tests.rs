//! States made by hand, for the tests of the files beside this one.

use crate::util::Pc;
use crate::verifier::state::{Frame, State};

/// A state before `pc`, reached by calls at these instructions.
pub(super) fn state(calls: &[u32], pc: Pc) -> State {
    let mut frames = vec![Frame::new(None, 0, 0)];
    for (number, call) in (1..).zip(calls) {
        frames.push(Frame::new(Some(Pc(*call)), number.into(), number));
    }
    State {
        frames,
        refs: Vec::new(),
        parent: None,
        branches: 0,
        pc,
        first: Pc(0),
        last: Pc(0),
        history: Vec::new(),
        depth: 0,
        callback_unroll_depth: 0,
        may_goto_depth: 0,
        sleepable: false,
        cleaned: false,
        equal_to: None,
    }
}
