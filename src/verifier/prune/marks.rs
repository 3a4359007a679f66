//! Propagates precision from a checkpoint to the state that it pruned, and completes loops
//! at the end of a path.

use super::arena::Arena;
use super::scc::VisitId;
use crate::isa::Reg;
use crate::util::Pc;
use crate::verifier::env::Verifier;
use crate::verifier::log::{Log, log};
use crate::verifier::pool::Pools;
use crate::verifier::precision::{Chain, Marks};
use crate::verifier::reject::VerifyResult;
use crate::verifier::state::{SavedState, State, StateId};

/// The maximum number of rounds over a loop's back edges; then all of its scalars are
/// marked (`MAX_BACKEDGE_ITERS`).
const MAX_ROUNDS: u32 = 64;

impl Verifier<'_> {
    /// A checkpoint prunes the current state: marks on the current path what is precise in
    /// the checkpoint (`propagate_precision`).
    pub(super) fn propagate_to_current(&mut self, from: StateId) -> VerifyResult {
        let from = self.arena.get(from);
        let marks = wanted(from, self.arena.pools(), &mut self.log);
        self.mark_chain(marks)
    }

    /// Ends a path: updates the branch counts of its checkpoints (`update_branch_counts`).
    pub(crate) fn end_of_path(&mut self) -> VerifyResult {
        self.backtrack_cache.clear();
        self.state.branches = self.state.branches.saturating_sub(1);
        let mut parent = self.state.parent;
        while let Some(id) = parent {
            let checkpoint = self.arena.checkpoint_mut(id);
            let state = &mut checkpoint.state;
            state.branches = state.branches.saturating_sub(1);
            if state.branches > 0 {
                break;
            }
            parent = state.parent;
            let list = checkpoint.list;
            self.arena.list_mut(list).uncleaned = true;
            self.exit_loop(id)?;
            self.arena.free_if_done(id);
        }
        Ok(())
    }

    /// Completes a loop if the state is its entry: all paths through the loop are explored
    /// (`maybe_exit_scc`).
    fn exit_loop(&mut self, id: StateId) -> VerifyResult {
        let Some(number) = self.arena.checkpoint(id).visit else {
            return Ok(());
        };
        let Some(visit) = self.arena.visits.get_mut(number) else {
            return Ok(());
        };
        if visit.entry != Some(id) {
            return Ok(());
        }
        visit.entry = None;
        let (of, count) = (visit.of, visit.backedges.len() as u64);
        self.arena.visits.backedges -= count;
        self.arena.note_peak();
        if self.log.is_full() {
            log!(self, "SCC exit {of}\n");
        }
        self.propagate_backedges(number)
    }

    /// Propagates precision from each back edge's checkpoint along the path of the back
    /// edge, until no mark is new (`propagate_backedges`).
    fn propagate_backedges(&mut self, visit: VisitId) -> VerifyResult {
        let Some(visit) = self.arena.visits.get_mut(visit) else {
            return Ok(());
        };
        let edges = std::mem::take(&mut visit.backedges);
        let mut rounds = 0;
        loop {
            let mut chain = Chain {
                program: self.program,
                maps: &self.maps,
                structure: self.structure,
                arena: &mut self.arena,
                log: &mut self.log,
            };
            if rounds > MAX_ROUNDS {
                if chain.log.is_full() {
                    chain
                        .log
                        .write(format_args!("propagate_backedges: too many iterations\n"));
                }
                for edge in edges.iter().rev() {
                    chain.mark_all(edge);
                }
                break;
            }
            rounds += 1;
            let mut changed = false;
            for edge in edges.iter().rev() {
                let Some(subsuming) = edge.equal_to else {
                    continue;
                };
                let subsuming = chain.arena.get(subsuming);
                let marks = wanted(subsuming, chain.arena.pools(), chain.log);
                changed |= chain.mark(edge, edge.pc, marks, None)?;
            }
            if !changed {
                break;
            }
        }
        Ok(())
    }
}

impl Arena {
    /// Stores a copy of a state at `pc` as a back edge to the checkpoint that subsumes it
    /// (`add_scc_backedge`).
    pub(super) fn add_backedge(&mut self, state: &State, pc: Pc, to: StateId, log: &mut Log) {
        let mut edge = state.clone();
        (edge.equal_to, edge.pc) = (Some(to), pc);
        let number = self.checkpoint(to).visit;
        let visit = number.and_then(|number| self.visits.get_mut(number));
        let Some(visit) = visit else {
            return;
        };
        visit.backedges.push(edge);
        let of = visit.of;
        self.visits.backedges += 1;
        if log.is_full() {
            log.write(format_args!("SCC backedge {of}\n"));
        }
        self.note_peak();
    }
}

/// The precise scalars of a state.
fn wanted(state: &SavedState, pools: &Pools, log: &mut Log) -> Marks {
    let mut marks = Marks::new(state.current());
    for (number, frame) in state.frames.iter().enumerate().rev() {
        let mut first = true;
        let mut note = |kind: &str, at: usize| {
            if !log.is_full() {
                return;
            }
            if first {
                log.write(format_args!("frame {number}: propagating {kind}{at}"));
            } else {
                log.write(format_args!(",{kind}{at}"));
            }
            first = false;
        };
        for (at, reg) in frame.regs.iter().enumerate().take(Reg::FP.index()) {
            let reg = pools.regs.get(*reg);
            if reg.is_scalar() && reg.precise {
                note("r", at);
                marks.set_reg(number, at);
            }
        }
        for (at, slot) in frame.stack.iter().enumerate() {
            let slot = pools.slots.get(*slot);
            if slot.is_scalar_spill() && slot.reg.precise {
                note("fp-", (at + 1) * 8);
                marks.set_slot(number, at);
            }
        }
        if !first {
            log.write(format_args!("\n"));
        }
    }
    marks
}
