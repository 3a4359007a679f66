//! Removes dead registers and slots from checkpoints, so that comparisons ignore them
//! (`clean_live_states`).

use super::arena::Arena;
use crate::isa::Reg;
use crate::util::Pc;
use crate::verifier::liveness::{CallChain, StackLiveness};
use crate::verifier::reg::RegState;
use crate::verifier::stack::Slot;
use crate::verifier::state::State;
use crate::verifier::structure::Structure;

impl Arena {
    /// Cleans the checkpoints at `pc` with the calls of `current` that are final: all paths
    /// from them are explored, and their marks are complete.
    pub(super) fn clean(
        &mut self,
        current: &State,
        pc: Pc,
        structure: &Structure,
        liveness: &mut StackLiveness,
    ) {
        let mut next = self.first(pc, current.frame().callsite);
        while let Some(id) = next {
            let checkpoint = self.checkpoint(id);
            next = checkpoint.next;
            let state = &checkpoint.state;
            let clean = state.branches == 0
                && !state.cleaned
                && state.pc == pc
                && state.same_callsites(current)
                && !self.is_incomplete(id);
            if clean {
                let state = self.get_mut(id);
                let last = state.current();
                let chain = |frame| CallChain::of(state, structure, frame);
                liveness.query(chain, last, pc);
                state.cleaned = true;
                for number in 0..=last {
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
                        if !liveness.is_alive(number, at) {
                            *slot = Slot::EMPTY;
                        }
                    }
                }
            }
        }
    }
}
