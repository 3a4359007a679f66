//! A callback is walked until a state comes back that is covered. What it changes at
//! each call would never be, if it were known: it becomes any number.

use super::cover::{Closeness, Comparison};
use super::ids::IdMap;
use crate::util::Pc;
use crate::verifier::env::Verifier;
use crate::verifier::reg::RegState;
use crate::verifier::reject::Checked;
use crate::verifier::state::{State, StateId};

impl Verifier<'_> {
    /// The walk returned from a callback to the call at `pc`: widens the numbers that
    /// differ from when it was there before.
    pub(crate) fn widen_callback(&mut self, pc: Pc) -> Checked {
        if let Some(before) = self.kept_above(&self.state, pc) {
            let ids = &mut self.arena.take_ids(self.last_id);
            widen(self.arena.get(before), &mut self.state, ids);
            self.arena.return_ids(ids);
        }
        Ok(())
    }

    /// The same for the fork that waits last, which goes round a loop.
    pub(crate) fn widen_pending(&mut self, before: StateId) {
        if let Some(pending) = self.pending.last_mut() {
            let ids = &mut self.arena.take_ids(self.last_id);
            widen(self.arena.get(before), &mut pending.state, ids);
            self.arena.return_ids(ids);
        }
    }

    /// The state that was kept at `pc` when the walk was there before, on the way to
    /// the current one, which was kept there just now.
    pub(crate) fn previous_entry(&self, pc: Pc) -> Option<StateId> {
        self.kept_above(self.arena.get(self.state.parent?), pc)
    }

    /// The last state kept at `pc` on the way to this one (`find_prev_entry`).
    fn kept_above(&self, below: &State, pc: Pc) -> Option<StateId> {
        let mut next = self.arena.first(pc, self.state.frame().callsite);
        while let Some(id) = next {
            let kept = self.arena.kept(id);
            let state = &kept.state;
            if state.pc == pc
                && state.branches > 0
                && state.depth < below.depth
                && state.same_callsites(below)
            {
                return Some(id);
            }
            next = kept.next;
        }
        None
    }
}

/// What no safety rests on and is not what it was becomes any number
/// (`widen_imprecise_scalars`).
fn widen(old: &State, current: &mut State, ids: &mut IdMap) {
    let mut comparison = Comparison {
        insns: &[],
        ids,
        closeness: Closeness::Exact,
        hint: 0,
    };
    let mut widen = |old: &RegState, current: &mut RegState| {
        if old.is_scalar()
            && current.is_scalar()
            && !old.precise
            && !current.precise
            && !comparison.same(old, current)
        {
            *current = RegState::UNKNOWN;
        }
    };
    for (old, current) in old.frames.iter().zip(&mut current.frames).rev() {
        for (a, b) in old.regs.iter().zip(&mut current.regs) {
            widen(a, b);
        }
        for (a, b) in old.stack.iter().zip(&mut current.stack) {
            if a.is_spill() && b.is_spill() {
                widen(&a.reg, &mut b.reg);
            }
        }
    }
}
