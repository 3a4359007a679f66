//! Saved states: a register or slot that is as it was in the parent checkpoint is stored
//! once, for both.
//!
//! ```text
//!    1: r6 += 1                  ; in each checkpoint at 1, only r6 is new
//!    2: if r6 < 1000000 goto -2
//! ```
//!
//! A loop may leave a hundred thousand checkpoints, and a frame has up to 75 registers and
//! slots, of a hundred bytes each.

use std::array;
use std::rc::Rc;

use crate::verifier::history::History;
use crate::verifier::reg::RegState;
use crate::verifier::stack::Slot;
use crate::verifier::state::{Frame, SavedFrame, SavedState, State};

/// Registers and slots that are never written, shared by all states.
#[derive(Debug)]
pub(super) struct Blank {
    pub reg: Rc<RegState>,
    pub slot: Rc<Slot>,
}

impl Default for Blank {
    fn default() -> Self {
        Self {
            reg: Rc::new(RegState::NOT_INIT),
            slot: Rc::new(Slot::EMPTY),
        }
    }
}

impl Blank {
    /// A copy of a frame. What is equal in the same frame of the `parent` is shared.
    pub(super) fn save(&self, frame: &Frame, parent: Option<&SavedFrame>) -> SavedFrame {
        let regs = array::from_fn(|at| {
            let known = parent.map_or(&self.reg, |parent| &parent.regs[at]);
            share(&frame.regs[at], [known, &self.reg])
        });
        let known = parent.map_or([].as_slice(), |parent| &parent.stack);
        let stack = frame.stack.iter().enumerate().map(|(at, slot)| {
            let known = known.get(at).unwrap_or(&self.slot);
            share(slot, [known, &self.slot])
        });
        frame.with(regs, stack.collect())
    }
}

/// One of the `known` values that equals `value`, or a new one.
fn share<T: Copy + PartialEq>(value: &T, known: [&Rc<T>; 2]) -> Rc<T> {
    let equal = known.into_iter().find(|known| ***known == *value);
    equal.map_or_else(|| Rc::new(*value), Rc::clone)
}

impl SavedState {
    /// A copy that shares nothing and has no history, for the log.
    pub(crate) fn restored(&self) -> State {
        let frame = |frame: &SavedFrame| {
            let regs = array::from_fn(|at| *frame.regs[at]);
            frame.with(regs, frame.stack.iter().map(|slot| **slot).collect())
        };
        let frames = self.frames.iter().map(frame);
        self.with(frames.collect(), self.refs.clone(), History::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Reg;

    #[test]
    fn what_is_equal_is_stored_once() {
        let blank = Blank::default();
        let mut frame = Frame::new(None, 0, 0);
        frame.regs[6] = RegState::UNKNOWN;
        frame.grow(1);
        frame.stack[1].spill(&RegState::constant(7), 8);
        let first = blank.save(&frame, None);
        frame.regs[6] = RegState::constant(1);
        let second = blank.save(&frame, Some(&first));
        let shared = |at: usize| Rc::ptr_eq(&first.regs[at], &second.regs[at]);
        assert_eq!(
            (0..Reg::COUNT)
                .filter(|at| !shared(*at))
                .collect::<Vec<_>>(),
            [6]
        );
        assert!(Rc::ptr_eq(&first.stack[1], &second.stack[1]));
        assert!(Rc::ptr_eq(&first.stack[0], &blank.slot));
        assert_eq!(*first.regs[6], RegState::UNKNOWN);
        assert_eq!(*second.regs[6], RegState::constant(1));
    }
}
