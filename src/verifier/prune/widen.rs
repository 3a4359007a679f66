//! Widening: makes the scalars that a callback or a `may_goto` loop changes unknown, so
//! that exploration of the loop converges.
//!
//! ```text
//!    *(u64 *)(r10 - 8) = 0
//!    call 181                    ; bpf_loop(nr, cb, fp - 8, 0), cb increments the slot
//! ```
//!
//! With the known values 0, 1, 2 … in the slot, no state would subsume the next one. If the
//! scalar is imprecise, it becomes unknown when the callback returns, and the next state is
//! pruned.

use super::arena::Arena;
use super::ids::IdMap;
use super::subsume::{Comparison, ExactLevel, Strictness};
use crate::util::Pc;
use crate::verifier::env::Verifier;
use crate::verifier::pool::Pools;
use crate::verifier::reg::RegState;
use crate::verifier::reject::VerifyResult;
use crate::verifier::state::{SavedState, State, StateId};

impl Verifier<'_> {
    /// After the return from a callback to the call at `pc`: widens the scalars that differ
    /// from the previous checkpoint there.
    pub(crate) fn widen_callback(&mut self, pc: Pc) -> VerifyResult {
        if !self.options.order_free
            && let Some(before) = self.arena.above(&self.state, self.frame().callsite, pc)
        {
            let mut ids = self.arena.take_ids(self.ids.last());
            let old = self.arena.get(before);
            widen(old, self.arena.pools(), &mut self.state, &mut ids);
            self.arena.return_ids(ids);
        }
        Ok(())
    }

    /// Widens the state that was pushed last, which continues the loop.
    pub(crate) fn widen_pending(&mut self, before: StateId) {
        if !self.options.order_free
            && let Some(state) = self.worklist.last_mut()
        {
            let mut ids = self.arena.take_ids(self.ids.last());
            let old = self.arena.get(before);
            widen(old, self.arena.pools(), state, &mut ids);
            self.arena.return_ids(ids);
        }
    }

    /// The previous checkpoint at `pc` on the current path, not counting the one just
    /// created there.
    pub(crate) fn previous_entry(&self, pc: Pc) -> Option<StateId> {
        let below = self.arena.get(self.state.parent?);
        self.arena.above(below, self.frame().callsite, pc)
    }
}

impl Arena {
    /// The last checkpoint at `pc`, in a call from `callsite`, above the state `below`
    /// (`find_prev_entry`).
    fn above<R, S>(&self, below: &State<R, S>, callsite: Option<Pc>, pc: Pc) -> Option<StateId> {
        let mut next = self.list(self.list_of(pc, callsite)).head;
        while let Some(id) = next {
            let checkpoint = self.checkpoint(id);
            let state = &checkpoint.state;
            if state.pc == pc
                && state.branches > 0
                && state.depth < below.depth
                && state.same_callsites(below)
            {
                return Some(id);
            }
            next = checkpoint.next;
        }
        None
    }
}

/// Makes imprecise scalars unknown that differ from the old state
/// (`widen_imprecise_scalars`).
fn widen(old: &SavedState, pools: &Pools, current: &mut State, ids: &mut IdMap) {
    let mut comparison = Comparison {
        insns: &[],
        pools,
        ids,
        level: ExactLevel::Exact,
        strictness: Strictness::default(),
        sleepable: false,
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
            widen(pools.regs.get(*a), b);
        }
        for (a, b) in old.stack.iter().zip(&mut current.stack) {
            let a = pools.slots.get(*a);
            if a.is_spill() && b.is_spill() {
                widen(&a.reg, &mut b.reg);
            }
        }
    }
}
