//! The registers and slots of checkpoints: one that is as it was in the parent checkpoint is
//! stored once, for both.
//!
//! ```text
//!    1: r6 += 1                  ; in each checkpoint at 1, only r6 is new
//!    2: if r6 < 1000000 goto -2
//! ```
//!
//! A loop may leave a hundred thousand checkpoints, and a frame has up to 75 registers and
//! slots, of a hundred bytes each. They lie in a vector, so that neither their making nor the
//! end of the verification costs an allocation each.

use std::array;

use crate::verifier::history::History;
use crate::verifier::reg::RegState;
use crate::verifier::stack::Slot;
use crate::verifier::state::{Frame, SavedFrame, SavedState, State, ValueId};

/// What was never written.
pub(crate) const BLANK: ValueId = ValueId(0);

/// Values, each with the number of its owners.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    /// The first one is blank, and has any number of owners.
    values: Vec<T>,
    owners: Vec<u32>,
    /// The indices without owners.
    free: Vec<ValueId>,
}

impl<T: Copy + PartialEq> Pool<T> {
    fn new(blank: T, capacity: usize) -> Self {
        let mut pool = Self {
            values: Vec::with_capacity(capacity),
            owners: Vec::with_capacity(capacity),
            free: Vec::new(),
        };
        pool.values.push(blank);
        pool.owners.push(0);
        pool
    }

    fn clear(&mut self) {
        self.values.truncate(1);
        self.owners.truncate(1);
        self.free.clear();
    }

    #[inline]
    pub(crate) fn get(&self, at: ValueId) -> &T {
        &self.values[at.0 as usize]
    }

    /// The id of `value` for one more owner: `known` if it is equal.
    fn share(&mut self, value: &T, known: ValueId) -> ValueId {
        if *self.get(known) == *value {
            if known != BLANK {
                self.owners[known.0 as usize] += 1;
            }
            known
        } else if *self.get(BLANK) == *value {
            BLANK
        } else {
            self.add(*value)
        }
    }

    fn add(&mut self, value: T) -> ValueId {
        if let Some(at) = self.free.pop() {
            self.values[at.0 as usize] = value;
            self.owners[at.0 as usize] = 1;
            return at;
        }
        let at = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(value);
        self.owners.push(1);
        ValueId(at)
    }

    /// Makes an owner's value blank.
    pub(crate) fn release(&mut self, at: &mut ValueId) {
        let id = std::mem::replace(at, BLANK);
        if id != BLANK {
            let owners = &mut self.owners[id.0 as usize];
            *owners -= 1;
            if *owners == 0 {
                self.free.push(id);
            }
        }
    }

    /// The value, to change it for this owner only.
    pub(crate) fn get_mut(&mut self, at: &mut ValueId) -> &mut T {
        if *at == BLANK || self.owners[at.0 as usize] > 1 {
            let value = *self.get(*at);
            self.release(at);
            *at = self.add(value);
        }
        &mut self.values[at.0 as usize]
    }
}

/// The registers and slots of all checkpoints.
#[derive(Debug)]
pub(crate) struct Pools {
    pub regs: Pool<RegState>,
    pub slots: Pool<Slot>,
}

impl Default for Pools {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl Pools {
    /// Empty, with memory for so many checkpoints, each with four registers and a slot that its
    /// parent does not have.
    pub(crate) fn with_capacity(checkpoints: usize) -> Self {
        Self {
            regs: Pool::new(RegState::NOT_INIT, 4 * checkpoints),
            slots: Pool::new(Slot::EMPTY, checkpoints),
        }
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.regs.clear();
        self.slots.clear();
    }

    /// A copy of a frame. What is equal in the same frame of the `parent` is shared.
    pub(crate) fn save(&mut self, frame: &Frame, parent: Option<&SavedFrame>) -> SavedFrame {
        let regs = array::from_fn(|at| {
            let known = parent.map_or(BLANK, |parent| parent.regs[at]);
            self.regs.share(&frame.regs[at], known)
        });
        let known = parent.map_or([].as_slice(), |parent| &parent.stack);
        let stack = frame.stack.iter().enumerate().map(|(at, slot)| {
            let known = known.get(at).copied().unwrap_or(BLANK);
            self.slots.share(slot, known)
        });
        let stack = stack.collect();
        frame.with(regs, stack)
    }

    /// Releases the registers and slots of these frames, and removes the frames.
    pub(crate) fn release(&mut self, frames: &mut Vec<SavedFrame>) {
        for mut frame in frames.drain(..) {
            for at in &mut frame.regs {
                self.regs.release(at);
            }
            for at in &mut frame.stack {
                self.slots.release(at);
            }
        }
    }

    /// Marks an imprecise scalar as precise; returns whether it is one.
    pub(crate) fn mark_reg(&mut self, at: &mut ValueId) -> bool {
        let reg = self.regs.get(*at);
        let new = reg.is_scalar() && !reg.precise;
        if new {
            self.regs.get_mut(at).precise = true;
        }
        new
    }

    /// The same for a spilled scalar.
    pub(crate) fn mark_slot(&mut self, at: &mut ValueId) -> bool {
        let slot = self.slots.get(*at);
        let new = slot.is_scalar_spill() && !slot.reg.precise;
        if new {
            self.slots.get_mut(at).reg.precise = true;
        }
        new
    }

    /// A copy of a state that shares nothing and has no history, for the log.
    pub(crate) fn restored(&self, state: &SavedState) -> State {
        let frame = |frame: &SavedFrame| {
            let regs = array::from_fn(|at| *self.regs.get(frame.regs[at]));
            let stack = frame.stack.iter().map(|at| *self.slots.get(*at));
            frame.with(regs, stack.collect())
        };
        let frames = state.frames.iter().map(frame);
        state.with(frames.collect(), state.refs.clone(), History::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_equal_is_stored_once() {
        let mut pools = Pools::default();
        let mut frame = Frame::new(None, 0, 0);
        frame.regs[6] = RegState::UNKNOWN;
        frame.grow(1);
        frame.stack[1].spill(&RegState::constant(7), 8);
        let first = pools.save(&frame, None);
        frame.regs[6] = RegState::constant(1);
        let second = pools.save(&frame, Some(&first));
        let new = (0..first.regs.len()).filter(|at| first.regs[*at] != second.regs[*at]);
        assert_eq!(new.collect::<Vec<_>>(), [6]);
        assert_eq!(first.stack, second.stack);
        assert_eq!(first.stack[0], BLANK);
        assert_eq!(*pools.regs.get(first.regs[6]), RegState::UNKNOWN);
        assert_eq!(*pools.regs.get(second.regs[6]), RegState::constant(1));
    }

    #[test]
    fn a_change_is_seen_by_one_owner() {
        let mut pool = Pool::new(0, 0);
        let mut one = pool.share(&5, BLANK);
        let mut other = pool.share(&5, one);
        assert_eq!(one, other);
        *pool.get_mut(&mut other) = 6;
        assert_eq!((*pool.get(one), *pool.get(other)), (5, 6));
        let before = one;
        *pool.get_mut(&mut one) = 7;
        assert_eq!((one, *pool.get(one)), (before, 7), "the only owner");
        let mut blank = BLANK;
        *pool.get_mut(&mut blank) = 8;
        assert_eq!((*pool.get(BLANK), *pool.get(blank)), (0, 8));
    }

    #[test]
    fn an_id_without_owners_is_used_again() {
        let mut pool = Pool::new(0, 0);
        let mut one = pool.share(&5, BLANK);
        let mut other = pool.share(&5, one);
        let id = one;
        pool.release(&mut one);
        assert_eq!((one, *pool.get(other)), (BLANK, 5));
        pool.release(&mut other);
        assert_eq!(pool.share(&9, BLANK), id);
        pool.clear();
        assert_eq!(*pool.get(BLANK), 0);
    }
}
