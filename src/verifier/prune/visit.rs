//! Compares the current state with the checkpoints at an instruction (`is_state_visited`).

use super::arena::{Checkpoint, ListId};
use super::ids::IdMap;
use super::scc::Loop;
use super::subsume::{Comparison, ExactLevel, Strictness, may_loop};
use crate::spec::ProgFlags;
use crate::spec::limits::MAX_STATES;
use crate::util::{Errno, Pc};
use crate::verifier::env::Verifier;
use crate::verifier::history::LinkedSet;
use crate::verifier::log::log;
use crate::verifier::pool::Pools;
use crate::verifier::reg::RegState;
use crate::verifier::reject::{Reject, VerifyResult};
use crate::verifier::stack_object::iterator::steps_differ;
use crate::verifier::state::{Entry, SavedState, State, StateId};
use crate::verifier::structure::InsnInfo;

/// The history length from which a checkpoint is always created.
const LONG_HISTORY: usize = 40;
/// A checkpoint is dropped after this many misses for each hit, and as many more.
const MISSES_PER_HIT: u32 = 3;
/// The same at an instruction with forced checkpoints, while paths from the checkpoint are
/// being explored: such loops converge.
const LOOP_MISSES_PER_HIT: u32 = 64;

/// The result of the comparison with the checkpoints.
enum Found {
    /// None of so many checkpoints ends the path.
    Nothing { compared: u64 },
    /// This checkpoint subsumes the state; `looping` if its marks are incomplete.
    Subsumed { by: StateId, looping: bool },
    /// An infinite loop: the state is identical to this checkpoint on the same path.
    InfiniteLoop { since: StateId },
}

/// The comparison of the current state with checkpoints.
struct Search<'a> {
    current: &'a State,
    /// The registers of its innermost frame.
    regs: &'a [RegState],
    insns: &'a [InsnInfo],
    /// Whether dead registers are compared, too, as the oracle checks them.
    strictly: bool,
    strictness: Strictness,
    ids: IdMap,
    /// The last id assigned.
    last_id: u32,
}

impl Search<'_> {
    /// Whether the checkpoint is in the same entry of an asynchronous callback; if not,
    /// reaching its instruction again is not a loop.
    fn is_same_entry(&self, old: &SavedState) -> bool {
        match (old.frame().entry, self.current.frame().entry) {
            (Entry::AsyncCallback(old), Entry::AsyncCallback(current)) => old == current,
            (Entry::AsyncCallback(_), _) => false,
            _ => true,
        }
    }

    /// Whether the checkpoint subsumes the current state.
    fn is_subsumed(
        &mut self,
        checkpoint: &mut Checkpoint,
        pools: &Pools,
        level: ExactLevel,
    ) -> bool {
        // Most often, the scalar that was out of range last is so again.
        if let Some(range) = &checkpoint.range
            && range.excludes(self.regs)
        {
            return false;
        }
        let (insns, level) = if self.strictly {
            ([].as_slice(), ExactLevel::RangeWithin)
        } else {
            (self.insns, level)
        };
        self.ids.reset(self.last_id);
        let mut comparison = Comparison {
            insns,
            pools,
            ids: &mut self.ids,
            level,
            strictness: self.strictness,
            sleepable: self.current.sleepable,
            hint: checkpoint.hint,
        };
        let subsumed = comparison.states(&checkpoint.state, self.current);
        checkpoint.hint = comparison.hint;
        if !subsumed {
            checkpoint.range = comparison.violated_range(&checkpoint.state, self.regs);
        }
        subsumed
    }

    /// Whether the current state is a repetition: the same path passed an identical state,
    /// and nothing has changed that could end the loop.
    #[inline]
    fn is_infinite_loop(&mut self, checkpoint: &mut Checkpoint, pools: &Pools) -> bool {
        let (old, current) = (&checkpoint.state, self.current);
        // Most often, the register that differed last differs again.
        !checkpoint.differed.still(self.regs)
            && may_loop(old, pools, current, &mut checkpoint.differed)
            && self.is_same_entry(old)
            && old.may_goto_depth == current.may_goto_depth
            && old.callback_unroll_depth == current.callback_unroll_depth
            && self.is_subsumed(checkpoint, pools, ExactLevel::Exact)
            && !steps_differ(&checkpoint.state, pools, self.current)
    }
}

impl Verifier<'_> {
    /// Compares the current state with the checkpoints at `pc`, and creates one if the
    /// heuristics say so. Returns whether the path is pruned (`is_state_visited`).
    pub(crate) fn is_visited(&mut self, pc: Pc) -> VerifyResult<bool> {
        let capable = self.privileges.bpf_capable;
        let force = capable && self.program.flags.contains(ProgFlags::TEST_STATE_FREQ)
            || self.insn_info(pc).force_checkpoint
            || self.state.history.len() > LONG_HISTORY;
        let list = self.arena.list_of(pc, self.state.frame().callsite);
        let since = self.counts.since(self.arena.counts_before);
        let (jumps, processed) = (since.jumps(), since.processed());
        // Checkpoints have a minimum distance.
        let mut add = force || jumps >= 2 && processed >= 8;
        // Within a loop, few checkpoints ever prune a state.
        let rare = !force && jumps < 20 && processed < 100;

        if self.recorder.is_none() {
            let order_free = self.options.order_free;
            let (structure, liveness) = (self.structure, &mut self.liveness);
            self.arena
                .clean(order_free, &self.state, pc, list, structure, liveness);
        }
        match self.find(pc, list, rare, &mut add) {
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
            Found::Nothing { compared } if !capable && compared > MAX_STATES as u64 => add = false,
            Found::Nothing { .. } => {}
        }
        if add {
            self.add_checkpoint(pc, list);
        }
        Ok(false)
    }

    /// Compares with each checkpoint at `pc`, in this list. Not inlined: its inner loop
    /// needs the machine's registers.
    #[inline(never)]
    fn find(&mut self, pc: Pc, list: ListId, rare: bool, add: &mut bool) -> Found {
        let info = self.insn_info(pc);
        let (forced, calls_back) = (info.force_checkpoint, info.calls_callback);
        let advances = info.advances_iterator;
        let active_iterator = advances && self.advances_active_iterator();
        let may_goto =
            forced && matches!(self.code().insn(pc), Some(crate::isa::Insn::MayGoto { .. }));
        let last_id = self.ids.last();
        let mut search = Search {
            current: &self.state,
            regs: &self.state.frame().regs,
            insns: &self.structure.insns,
            strictly: self.recorder.is_some(),
            strictness: Strictness {
                uninit: !self.privileges.allow_uninit_stack,
                unwritten: self.options.order_free,
                scalars: self.speculation.compares_scalars_exactly(),
            },
            ids: self.arena.take_ids(last_id),
            last_id,
        };
        let arena = &mut self.arena;
        let mut count = 0;
        // From the checkpoint compared last: a call with a callback uses the previous
        // value.
        let mut looping = false;
        let (mut before, mut next) = (None, arena.list(list).head);
        let found = loop {
            let Some(id) = next else {
                arena.note_list(count);
                break Found::Nothing { compared: count };
            };
            count += 1;
            let (checkpoint, pools, visits) = arena.checkpoint_in_use(id);
            next = checkpoint.next;
            if checkpoint.state.pc != pc {
                before = Some(id);
                continue;
            }
            let exploring = checkpoint.state.branches > 0;
            if exploring {
                // At other instructions, an unfinished path ends only in an infinite loop.
                if forced && search.is_same_entry(&checkpoint.state) {
                    let within = ExactLevel::RangeWithin;
                    let other_depth =
                        checkpoint.state.may_goto_depth != search.current.may_goto_depth;
                    let converges = active_iterator || may_goto && other_depth;
                    if converges && search.is_subsumed(checkpoint, pools, within) {
                        let looping = true;
                        break Found::Subsumed { by: id, looping };
                    }
                    if calls_back && search.is_subsumed(checkpoint, pools, within) {
                        break Found::Subsumed { by: id, looping };
                    }
                }
                if !calls_back && !advances && search.is_infinite_loop(checkpoint, pools) {
                    break Found::InfiniteLoop { since: id };
                }
                if rare {
                    *add = false;
                }
            } else {
                looping = visits.is_incomplete(checkpoint.visit);
                let level = if looping {
                    ExactLevel::RangeWithin
                } else {
                    ExactLevel::NotExact
                };
                if search.is_subsumed(checkpoint, pools, level) {
                    break Found::Subsumed { by: id, looping };
                }
            }
            checkpoint.misses += u32::from(*add);
            let misses_per_hit = if forced && exploring {
                LOOP_MISSES_PER_HIT
            } else {
                MISSES_PER_HIT
            };
            if checkpoint.misses > checkpoint.hits * misses_per_hit + misses_per_hit {
                arena.drop_from_list(id, before);
            } else {
                before = Some(id);
            }
        };
        let ids = search.ids;
        self.arena.return_ids(ids);
        found
    }

    fn infinite_loop(&self, pc: Pc, since: StateId) -> Reject {
        let frame = self.state.current();
        let text = |state: &State| self.state_text(state, frame).to_string();
        Reject::new(
            Errno::EINVAL,
            format!("infinite loop detected at insn {pc}"),
        )
        .and(format_args!("cur state:{}", text(&self.state)))
        .and(format_args!(
            "old state:{}",
            text(&self.arena.pools().restored(self.arena.get(since)))
        ))
    }

    /// Makes the current state a checkpoint. Its precision marks are cleared: the code that
    /// follows has not required any yet.
    fn add_checkpoint(&mut self, pc: Pc, list: ListId) {
        self.arena.counts_before = self.counts;
        if self.privileges.bpf_capable {
            for reg in self.state.all_regs_mut() {
                if reg.is_scalar() {
                    reg.precise = false;
                }
            }
        }
        (self.state.pc, self.state.last) = (pc, self.position.prev());
        let id = self.arena.insert(&mut self.state, list);
        self.backtrack_cache.clear();
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
