//! The current state meets those that were kept (`is_state_visited`).

use super::cover::{Closeness, Comparison, may_loop};
use super::scc::Loop;
use crate::spec::ProgFlags;
use crate::util::{Errno, Pc};
use crate::verifier::env::Verifier;
use crate::verifier::log::log;
use crate::verifier::reject::{Checked, Reject};
use crate::verifier::state::{LinkedSet, StateId};

/// Steps of history after which a state is kept in any case.
const LONG_HISTORY: usize = 40;
/// Misses that a state survives, for each hit, and at first.
const PATIENCE: u32 = 3;
/// The same where a state is always kept, while paths from it are being walked: loops
/// converge there.
const LOOP_PATIENCE: u32 = 64;

/// What the kept states say of the current one.
enum Found {
    /// Nothing.
    Nothing,
    /// This one covers it; `looping` if its marks are not complete yet.
    Covered { by: StateId, looping: bool },
    /// The walk is here again, and nothing has changed.
    Endless { since: StateId },
}

impl Verifier<'_> {
    /// Looks for a kept state that covers the current one, and keeps this one if it
    /// is worth it. Whether the path ends here (`is_state_visited`).
    pub(crate) fn is_visited(&mut self, pc: Pc) -> Checked<bool> {
        let force = self.program.flags.contains(ProgFlags::TEST_STATE_FREQ)
            || self.insn_info(pc).force_checkpoint
            || self.state.history.len() > LONG_HISTORY;
        let jumps = self.counts.jumps - self.counts.jumps_before;
        let processed = self.counts.processed - self.counts.processed_before;
        // States need not be closer than this.
        let mut add = force || jumps >= 2 && processed >= 8;
        // In a loop, the states of most rounds help nobody.
        let rare = !force && jumps < 20 && processed < 100;

        if self.recorder.is_none() {
            self.clean_kept(pc);
        }
        match self.find(pc, rare, &mut add) {
            Found::Covered { by, looping } => {
                self.arena.kept_mut(by).hits += 1;
                if self.insn_info(pc).jmp_point {
                    self.note_step(None, LinkedSet::default());
                }
                self.propagate_to_current(by)?;
                if looping {
                    self.add_backedge(pc, by);
                }
                return Ok(true);
            }
            Found::Endless { since } => return Err(self.endless(pc, since)),
            Found::Nothing => {}
        }
        if add {
            self.keep(pc);
        }
        Ok(false)
    }

    /// Compares with each state that was kept here.
    fn find(&mut self, pc: Pc, rare: bool, add: &mut bool) -> Found {
        let info = self.insn_info(pc);
        let (checkpoint, calls_back) = (info.force_checkpoint, info.calls_callback);
        let may_goto = matches!(self.code().insn(pc), Some(crate::isa::Insn::MayGoto { .. }));
        let mut count = 0;
        // Of the last state that was compared: one that calls back takes it over.
        let mut looping = false;
        let (mut before, mut next) = (None, self.arena.first(pc, self.state.frame().callsite));
        while let Some(id) = next {
            count += 1;
            let kept = self.arena.kept(id);
            let state = &kept.state;
            next = kept.next;
            if state.pc != pc {
                before = Some(id);
                continue;
            }
            if state.branches > 0 {
                if self.is_same_entry(id) {
                    if may_goto
                        && state.may_goto_depth != self.state.may_goto_depth
                        && self.is_covered(id, Closeness::RangeWithin)
                    {
                        return Found::Covered {
                            by: id,
                            looping: true,
                        };
                    }
                    if calls_back {
                        if self.is_covered(id, Closeness::RangeWithin) {
                            return Found::Covered { by: id, looping };
                        }
                    } else if self.is_endless(id) {
                        return Found::Endless { since: id };
                    }
                }
                if rare {
                    *add = false;
                }
            } else {
                looping = self.arena.is_incomplete(id);
                let closeness = if looping {
                    Closeness::RangeWithin
                } else {
                    Closeness::NotExact
                };
                if self.is_covered(id, closeness) {
                    return Found::Covered { by: id, looping };
                }
            }
            let kept = self.arena.kept_mut(id);
            kept.misses += u32::from(*add);
            let long = checkpoint && kept.state.branches > 0;
            let patience = if long { LOOP_PATIENCE } else { PATIENCE };
            if kept.misses > kept.hits * patience + patience {
                self.arena.drop_from_list(id, before);
            } else {
                before = Some(id);
            }
        }
        let most = &mut self.counts.max_states_per_insn;
        *most = (*most).max(count);
        Found::Nothing
    }

    /// Whether the kept state is of the same entry into a callback that is called
    /// later: if not, coming here again is not going round.
    fn is_same_entry(&self, id: StateId) -> bool {
        use crate::verifier::state::Entry::AsyncCallback;
        match (self.arena.get(id).frame().entry, self.state.frame().entry) {
            (AsyncCallback(old), AsyncCallback(current)) => old == current,
            (AsyncCallback(_), _) => false,
            _ => true,
        }
    }

    fn is_covered(&mut self, id: StateId, closeness: Closeness) -> bool {
        let mut ids = self.arena.take_ids(self.last_id);
        let kept = self.arena.kept(id);
        let (insns, closeness) = match self.recorder {
            None => (self.structure.insns.as_slice(), closeness),
            // What is recorded is to hold of registers too that are never read again.
            Some(_) => ([].as_slice(), Closeness::RangeWithin),
        };
        let mut comparison = Comparison {
            insns,
            ids: &mut ids,
            closeness,
            hint: kept.hints[0],
        };
        let covered = comparison.states(&kept.state, &self.state);
        let hint = comparison.hint;
        self.arena.return_ids(&mut ids);
        self.arena.kept_mut(id).hints[0] = hint;
        covered
    }

    /// Whether the walk came back to a state that it is still walking from, and nothing
    /// has changed that could end it.
    fn is_endless(&mut self, id: StateId) -> bool {
        let kept = self.arena.kept_mut(id);
        let (old, current) = (&kept.state, &self.state);
        old.may_goto_depth == current.may_goto_depth
            && old.callback_unroll_depth == current.callback_unroll_depth
            && may_loop(old, current, &mut kept.hints[1])
            && self.is_covered(id, Closeness::Exact)
    }

    fn endless(&self, pc: Pc, since: StateId) -> Reject {
        let frame = self.state.current();
        let text = |state| self.state_text(state, frame);
        Reject::new(
            Errno::EINVAL,
            format!("infinite loop detected at insn {pc}"),
        )
        .and(format_args!("cur state:{}", text(&self.state)))
        .and(format_args!("old state:{}", text(self.arena.get(since))))
    }

    /// Keeps the current state: paths that come here later are compared with it. It
    /// has no marks yet; those that were made on the way here are forgotten, for what
    /// follows has made none.
    fn keep(&mut self, pc: Pc) {
        self.counts.total_states += 1;
        self.counts.jumps_before = self.counts.jumps;
        self.counts.processed_before = self.counts.processed;
        self.arena.trodden.forget();
        for reg in self.state.all_regs_mut() {
            if reg.is_scalar() {
                reg.precise = false;
            }
        }
        (self.state.pc, self.state.last) = (pc, self.prev);
        let id = self.arena.keep(&mut self.state, self.structure.code.len());
        self.note_peak();
        if let Some(of) = Loop::of(&self.state, &self.structure.insns) {
            let (visit, first) = self.arena.visits.enter(of, id);
            self.arena.kept_mut(id).visit = Some(visit);
            if first && self.log.is_full() {
                log!(self, "SCC enter {of}\n");
            }
        }
        self.state.parent = Some(id);
        self.state.first = pc;
        self.state.depth += 1;
    }
}
