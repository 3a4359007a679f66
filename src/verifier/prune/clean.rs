//! Removes dead registers and slots from checkpoints, so that comparisons ignore them
//! (`clean_live_states`).

use super::arena::{Arena, ListId};
use crate::isa::Reg;
use crate::spec::limits::STACK_SIZE;
use crate::util::Pc;
use crate::verifier::liveness::{CallChain, StackLiveness};
use crate::verifier::pool::BLANK;
use crate::verifier::stack::{SLOT, Slot};
use crate::verifier::state::State;
use crate::verifier::structure::Structure;

impl Arena {
    /// Cleans the checkpoints at `pc` with the calls of `current` that are final: all paths
    /// from them are explored, and their marks are complete. `list` is their list. With
    /// `order_free`, dead slots differ from unwritten ones.
    pub(super) fn clean(
        &mut self,
        order_free: bool,
        current: &State,
        pc: Pc,
        list: ListId,
        structure: &Structure,
        liveness: &mut StackLiveness,
    ) {
        if !self.list(list).uncleaned {
            return;
        }
        let mut uncleaned = false;
        let mut next = self.list(list).head;
        while let Some(id) = next {
            let checkpoint = self.checkpoint(id);
            next = checkpoint.next;
            let state = &checkpoint.state;
            if state.branches > 0 || state.cleaned {
                continue;
            }
            let clean = state.pc == pc && state.same_callsites(current) && !self.is_incomplete(id);
            uncleaned |= !clean;
            if clean {
                let (state, pools) = self.state_and_pools(id);
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
                            pools.regs.release(reg);
                        }
                    }
                    if order_free {
                        frame.stack.resize(STACK_SIZE / SLOT, BLANK);
                    }
                    for (at, slot) in frame.stack.iter_mut().enumerate() {
                        if liveness.is_alive(number, at) {
                            continue;
                        }
                        pools.slots.release(slot);
                        if order_free {
                            *pools.slots.get_mut(slot) = Slot::DEAD;
                        }
                    }
                }
            }
        }
        self.list_mut(list).uncleaned = uncleaned;
    }
}
