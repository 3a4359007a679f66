//! Removes dead registers and slots from checkpoints, so that comparisons ignore them
//! (`clean_live_states`).

use crate::isa::Reg;
use crate::util::Pc;
use crate::verifier::env::Verifier;
use crate::verifier::reg::RegState;
use crate::verifier::stack::Slot;

impl Verifier<'_> {
    /// Cleans the checkpoints at `pc` that are final: all paths from them are explored, and
    /// their marks are complete.
    pub(super) fn clean_checkpoints(&mut self, pc: Pc) {
        let mut next = self.arena.first(pc, self.state.frame().callsite);
        while let Some(id) = next {
            let checkpoint = self.arena.checkpoint(id);
            next = checkpoint.next;
            let state = &checkpoint.state;
            let clean = state.branches == 0
                && !state.cleaned
                && state.pc == pc
                && state.same_callsites(&self.state)
                && !self.arena.is_incomplete(id);
            if clean {
                let structure = self.structure;
                let state = self.arena.get_mut(id);
                let current = state.current();
                let chain = |frame| Self::chain(state, structure, frame);
                self.liveness.query(chain, current, pc);
                state.cleaned = true;
                for number in 0..=current {
                    let pc = state.frame_pc(number);
                    let live = structure
                        .insns
                        .get(pc.index())
                        .map_or(u16::MAX, |info| info.live);
                    let Some(frame) = state.frames.get_mut(number) else {
                        continue;
                    };
                    for (at, reg) in frame.regs.iter_mut().enumerate().take(Reg::FP.index()) {
                        if live >> at & 1 == 0 {
                            *reg = RegState::NOT_INIT;
                        }
                    }
                    for (at, slot) in frame.stack.iter_mut().enumerate() {
                        if !self.liveness.is_alive(number, at) {
                            *slot = Slot::EMPTY;
                        }
                    }
                }
            }
        }
    }
}
