//! A callback is walked until a state comes back that is covered. What it changes at
//! each call would never be, if it were known: it becomes any number.

use super::cover::Closeness;
use super::cover::Comparison;
use crate::util::Pc;
use crate::verifier::env::Verifier;
use crate::verifier::reg::RegState;
use crate::verifier::reject::Checked;
use crate::verifier::state::StateId;

impl Verifier<'_> {
    /// The walk returned from a callback to the call at `pc`: widens the numbers that
    /// differ from when it was there before (`widen_imprecise_scalars`).
    pub(crate) fn widen_callback(&mut self, pc: Pc) -> Checked {
        let Some(id) = self.previous_entry(pc) else {
            return Ok(());
        };
        let mut ids = std::mem::take(&mut self.arena.ids);
        ids.reset(self.last_id);
        let mut comparison = Comparison {
            insns: &self.structure.insns,
            ids: &mut ids,
            closeness: Closeness::Exact,
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
        let frames = self.arena.get(id).frames.iter().zip(&mut self.state.frames);
        for (old, current) in frames.rev() {
            for (a, b) in old.regs.iter().zip(&mut current.regs) {
                widen(a, b);
            }
            for (a, b) in old.stack.iter().zip(&mut current.stack) {
                if a.is_spill() && b.is_spill() {
                    widen(&a.reg, &mut b.reg);
                }
            }
        }
        self.arena.ids = ids;
        Ok(())
    }

    /// The state that was kept last at `pc` on the way here (`find_prev_entry`).
    fn previous_entry(&self, pc: Pc) -> Option<StateId> {
        let mut next = self.arena.first(pc, self.state.frame().callsite);
        while let Some(id) = next {
            let kept = self.arena.kept(id);
            let state = &kept.state;
            if state.pc == pc
                && state.branches > 0
                && state.depth < self.state.depth
                && state.same_callsites(&self.state)
            {
                return Some(id);
            }
            next = kept.next;
        }
        None
    }
}
