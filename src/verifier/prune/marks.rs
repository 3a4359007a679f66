//! What a covering state needs, the covered one needs, too; and the end of a path, when
//! that of a loop may be known.

use super::scc::VisitId;
use crate::isa::Reg;
use crate::util::Pc;
use crate::verifier::env::Verifier;
use crate::verifier::log::{Log, log};
use crate::verifier::precision::{Chain, Marks};
use crate::verifier::reject::Checked;
use crate::verifier::state::{State, StateId};

/// How often the marks of a loop go round before all numbers in it are marked
/// (`MAX_BACKEDGE_ITERS`).
const MAX_ROUNDS: u32 = 64;

impl Verifier<'_> {
    /// The kept state covers the current one: what is precise in it has to be so on
    /// the way here (`propagate_precision`).
    pub(super) fn propagate_to_current(&mut self, from: StateId) -> Checked {
        let marks = wanted(self.arena.get(from), &mut self.log);
        self.mark_chain(marks)
    }

    /// A path from the current state came to its end (`update_branch_counts`).
    pub(crate) fn end_of_path(&mut self) -> Checked {
        self.arena.trodden.forget();
        self.state.branches = self.state.branches.saturating_sub(1);
        let mut parent = self.state.parent;
        while let Some(id) = parent {
            let state = self.arena.get_mut(id);
            state.branches = state.branches.saturating_sub(1);
            if state.branches > 0 {
                break;
            }
            parent = state.parent;
            self.exit_loop(id)?;
            self.arena.free_if_done(id);
        }
        Ok(())
    }

    /// If the state is the one by which a loop was entered, all paths through the loop
    /// have ended (`maybe_exit_scc`).
    fn exit_loop(&mut self, id: StateId) -> Checked {
        let Some(number) = self.arena.kept(id).visit else {
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
        self.note_peak();
        if self.log.is_full() {
            log!(self, "SCC exit {of}\n");
        }
        self.propagate_backedges(number)
    }

    /// Marks on the way to each back edge what the state needs that it came back to,
    /// until no mark is new (`propagate_backedges`).
    fn propagate_backedges(&mut self, visit: VisitId) -> Checked {
        let Some(visit) = self.arena.visits.get_mut(visit) else {
            return Ok(());
        };
        let edges = std::mem::take(&mut visit.backedges);
        let mut rounds = 0;
        loop {
            let mut chain = Chain {
                program: self.program,
                maps: &self.maps,
                structure: &self.structure,
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
                let Some(covering) = edge.equal_to else {
                    continue;
                };
                let marks = wanted(chain.arena.get(covering), chain.log);
                changed |= chain.mark(edge, edge.pc, marks, None)?;
            }
            if !changed {
                break;
            }
        }
        for edge in edges {
            self.arena.recycle(edge);
        }
        Ok(())
    }

    /// A copy of the current state waits for the marks of the one that it came back to
    /// (`add_scc_backedge`).
    pub(super) fn add_backedge(&mut self, pc: Pc, to: StateId) {
        let mut edge = self.arena.copy(&self.state);
        (edge.equal_to, edge.pc) = (Some(to), pc);
        let number = self.arena.kept(to).visit;
        let visit = number.and_then(|number| self.arena.visits.get_mut(number));
        let Some(visit) = visit else {
            return;
        };
        visit.backedges.push(edge);
        let of = visit.of;
        self.arena.visits.backedges += 1;
        if self.log.is_full() {
            log!(self, "SCC backedge {of}\n");
        }
        self.note_peak();
    }

    /// How many states there are (`update_peak_states`).
    pub(super) fn note_peak(&mut self) {
        self.counts.peak_states = self.counts.peak_states.max(self.arena.count());
    }
}

/// The numbers of a state that are precise.
fn wanted(state: &State, log: &mut Log) -> Marks {
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
            if reg.is_scalar() && reg.precise {
                note("r", at);
                marks.set_reg(number, at);
            }
        }
        for (at, slot) in frame.stack.iter().enumerate() {
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
