//! Compares the current state with the checkpoints at an instruction (`is_state_visited`).

use super::scc::Loop;
use super::subsume::{Comparison, ExactLevel, may_loop};
use crate::spec::ProgFlags;
use crate::util::{Errno, Pc};
use crate::verifier::env::Verifier;
use crate::verifier::log::log;
use crate::verifier::reject::{Reject, VerifyResult};
use crate::verifier::stack_object::iterator::steps_differ;
use crate::verifier::state::{LinkedSet, StateId};

/// The history length from which a checkpoint is always created.
const LONG_HISTORY: usize = 40;
/// A checkpoint is dropped after this many misses for each hit, and as many more.
const MISSES_PER_HIT: u32 = 3;
/// The same at an instruction with forced checkpoints, while paths from the checkpoint are
/// being explored: such loops converge.
const LOOP_MISSES_PER_HIT: u32 = 64;

/// The result of the comparison with the checkpoints.
enum Found {
    /// No checkpoint ends the path.
    Nothing,
    /// This checkpoint subsumes the state; `looping` if its marks are incomplete.
    Subsumed { by: StateId, looping: bool },
    /// An infinite loop: the state is identical to this checkpoint on the same path.
    InfiniteLoop { since: StateId },
}

impl Verifier<'_> {
    /// Compares the current state with the checkpoints at `pc`, and creates one if the
    /// heuristics say so. Returns whether the path is pruned (`is_state_visited`).
    pub(crate) fn is_visited(&mut self, pc: Pc) -> VerifyResult<bool> {
        let force = self.program.flags.contains(ProgFlags::TEST_STATE_FREQ)
            || self.insn_info(pc).force_checkpoint
            || self.state.history.len() > LONG_HISTORY;
        let since = self.counts.since(self.arena.counts_before);
        let (jumps, processed) = (since.jumps(), since.processed());
        // Checkpoints have a minimum distance.
        let mut add = force || jumps >= 2 && processed >= 8;
        // Within a loop, few checkpoints ever prune a state.
        let rare = !force && jumps < 20 && processed < 100;

        if self.recorder.is_none() {
            self.arena
                .clean(&self.state, pc, self.structure, &mut self.liveness);
        }
        match self.find(pc, rare, &mut add) {
            Found::Subsumed { by, looping } => {
                self.arena.checkpoint_mut(by).hits += 1;
                if self.insn_info(pc).jmp_point {
                    self.note_step(None, LinkedSet::default());
                }
                self.propagate_to_current(by)?;
                if looping {
                    self.arena.add_backedge(&self.state, pc, by, &mut self.log);
                }
                return Ok(true);
            }
            Found::InfiniteLoop { since } => return Err(self.infinite_loop(pc, since)),
            Found::Nothing => {}
        }
        if add {
            self.add_checkpoint(pc);
        }
        Ok(false)
    }

    /// Compares with each checkpoint at `pc`.
    fn find(&mut self, pc: Pc, rare: bool, add: &mut bool) -> Found {
        let info = self.insn_info(pc);
        let (forced, calls_back) = (info.force_checkpoint, info.calls_callback);
        let advances = info.advances_iterator;
        let may_goto = matches!(self.code().insn(pc), Some(crate::isa::Insn::MayGoto { .. }));
        let mut count = 0;
        // From the checkpoint compared last: a call with a callback uses the previous
        // value.
        let mut looping = false;
        let (mut before, mut next) = (None, self.arena.first(pc, self.state.frame().callsite));
        while let Some(id) = next {
            count += 1;
            let checkpoint = self.arena.checkpoint(id);
            let state = &checkpoint.state;
            next = checkpoint.next;
            if state.pc != pc {
                before = Some(id);
                continue;
            }
            if state.branches > 0 {
                let other_depth = state.may_goto_depth != self.state.may_goto_depth;
                if self.is_same_entry(id) {
                    if advances
                        && self.is_subsumed(id, ExactLevel::RangeWithin)
                        && self.advances_active_iterator()
                    {
                        return Found::Subsumed {
                            by: id,
                            looping: true,
                        };
                    }
                    if may_goto && other_depth && self.is_subsumed(id, ExactLevel::RangeWithin) {
                        return Found::Subsumed {
                            by: id,
                            looping: true,
                        };
                    }
                    if calls_back {
                        if self.is_subsumed(id, ExactLevel::RangeWithin) {
                            return Found::Subsumed { by: id, looping };
                        }
                    } else if !advances && self.is_infinite_loop(id) {
                        return Found::InfiniteLoop { since: id };
                    }
                }
                if rare {
                    *add = false;
                }
            } else {
                looping = self.arena.is_incomplete(id);
                let level = if looping {
                    ExactLevel::RangeWithin
                } else {
                    ExactLevel::NotExact
                };
                if self.is_subsumed(id, level) {
                    return Found::Subsumed { by: id, looping };
                }
            }
            let checkpoint = self.arena.checkpoint_mut(id);
            checkpoint.misses += u32::from(*add);
            let long = forced && checkpoint.state.branches > 0;
            let misses_per_hit = if long {
                LOOP_MISSES_PER_HIT
            } else {
                MISSES_PER_HIT
            };
            if checkpoint.misses > checkpoint.hits * misses_per_hit + misses_per_hit {
                self.arena.drop_from_list(id, before);
            } else {
                before = Some(id);
            }
        }
        self.arena.note_list(count);
        Found::Nothing
    }

    /// Whether the checkpoint is in the same entry of an asynchronous callback; if not,
    /// reaching this instruction again is not a loop.
    fn is_same_entry(&self, id: StateId) -> bool {
        use crate::verifier::state::Entry::AsyncCallback;
        match (self.arena.get(id).frame().entry, self.state.frame().entry) {
            (AsyncCallback(old), AsyncCallback(current)) => old == current,
            (AsyncCallback(_), _) => false,
            _ => true,
        }
    }

    fn is_subsumed(&mut self, id: StateId, level: ExactLevel) -> bool {
        let mut ids = self.arena.take_ids(self.ids.last());
        let checkpoint = self.arena.checkpoint(id);
        let (insns, level) = match self.recorder {
            None => (self.structure.insns.as_slice(), level),
            // The oracle checks dead registers, too.
            Some(_) => ([].as_slice(), ExactLevel::RangeWithin),
        };
        let mut comparison = Comparison {
            insns,
            ids: &mut ids,
            level,
            hint: checkpoint.hints[0],
        };
        let subsumed = comparison.states(&checkpoint.state, &self.state);
        let hint = comparison.hint;
        self.arena.return_ids(&mut ids);
        self.arena.checkpoint_mut(id).hints[0] = hint;
        subsumed
    }

    /// Whether the current state is a repetition: the same path passed an identical state,
    /// and nothing has changed that could end the loop.
    fn is_infinite_loop(&mut self, id: StateId) -> bool {
        let checkpoint = self.arena.checkpoint_mut(id);
        let (old, current) = (&checkpoint.state, &self.state);
        old.may_goto_depth == current.may_goto_depth
            && old.callback_unroll_depth == current.callback_unroll_depth
            && may_loop(old, current, &mut checkpoint.hints[1])
            && self.is_subsumed(id, ExactLevel::Exact)
            && !steps_differ(self.arena.get(id), &self.state)
    }

    fn infinite_loop(&self, pc: Pc, since: StateId) -> Reject {
        let frame = self.state.current();
        let text = |state| self.state_text(state, frame);
        Reject::new(
            Errno::EINVAL,
            format!("infinite loop detected at insn {pc}"),
        )
        .and(format_args!("cur state:{}", text(&self.state)))
        .and(format_args!("old state:{}", text(self.arena.get(since))))
    }

    /// Makes the current state a checkpoint. Its precision marks are cleared: the code that
    /// follows has not required any yet.
    fn add_checkpoint(&mut self, pc: Pc) {
        self.arena.counts_before = self.counts;
        self.arena.backtrack_cache.clear();
        for reg in self.state.all_regs_mut() {
            if reg.is_scalar() {
                reg.precise = false;
            }
        }
        (self.state.pc, self.state.last) = (pc, self.position.prev());
        let id = self
            .arena
            .insert(&mut self.state, self.structure.code.len());
        self.arena.note_peak();
        if let Some(of) = Loop::of(&self.state, &self.structure.insns) {
            let (visit, first) = self.arena.visits.enter(of, id);
            self.arena.checkpoint_mut(id).visit = Some(visit);
            if first && self.log.is_full() {
                log!(self, "SCC enter {of}\n");
            }
        }
        self.state.parent = Some(id);
        self.state.first = pc;
        self.state.depth += 1;
    }
}
