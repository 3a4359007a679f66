//! The explored states.
//!
//! Each instruction has a list of the checkpoints before it, the latest first
//! (`explored_states`). A checkpoint that rarely prunes anything leaves its list. It is
//! freed once all paths from it are explored (`free_list`).

use super::ids::IdMap;
use super::scc::{Visit, VisitId, Visits};
use crate::util::Pc;
use crate::verifier::explore::counts::Counts;
use crate::verifier::precision::BacktrackCache;
use crate::verifier::state::{Frame, State, StateId};

/// A checkpoint (`struct bpf_verifier_state_list`).
#[derive(Debug)]
pub(super) struct Checkpoint {
    pub state: State,
    /// The next checkpoint in its list.
    pub next: Option<StateId>,
    /// How many states it pruned, and how many it was compared with in vain.
    pub hits: u32,
    pub misses: u32,
    /// The register that differed last, in a full comparison and in the quick one for
    /// loops.
    pub hints: [u8; 2],
    /// Whether it left its list.
    pub dropped: bool,
    /// The loop visit that it belongs to.
    pub visit: Option<VisitId>,
}

/// The explored states (`explored_states` and `free_list`).
#[derive(Debug, Default)]
pub(crate) struct Arena {
    checkpoints: Vec<Checkpoint>,
    /// The indices of freed checkpoints, whose memory is reused.
    free: Vec<StateId>,
    /// States whose memory can be reused.
    spare: Vec<State>,
    /// The head of each list.
    lists: Vec<Option<StateId>>,
    /// The number of checkpoints in lists, and of those that left their list but aren't
    /// freed.
    listed: u64,
    dropped: u64,
    pub(super) visits: Visits,
    /// The id map, reused by all comparisons.
    ids: IdMap,
    /// The counters of exploration at the last checkpoint.
    pub(super) counts_before: Counts,
    /// Checkpoints: in total, at most at one time, and at most at one instruction.
    total: u64,
    peak: u64,
    max_per_insn: u64,
    /// For the path since the last checkpoint.
    pub(super) backtrack_cache: BacktrackCache,
}

impl Arena {
    /// The explored states of a program with `slots` slots.
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            lists: vec![None; slots],
            ..Self::default()
        }
    }

    pub(crate) fn get(&self, id: StateId) -> &State {
        &self.checkpoint(id).state
    }

    pub(crate) fn get_mut(&mut self, id: StateId) -> &mut State {
        &mut self.checkpoint_mut(id).state
    }

    /// Removes every state, before the next function is explored (`free_states`). The
    /// statistics continue, as in the kernel.
    pub(crate) fn clear(&mut self) {
        let len = u32::try_from(self.checkpoints.len()).unwrap_or(u32::MAX);
        self.free = (0..len).rev().map(StateId).collect();
        self.lists.fill(None);
        self.visits.clear();
    }

    /// Takes the id map for a comparison; `last_id` is the last id assigned.
    pub(super) fn take_ids(&mut self, last_id: u32) -> IdMap {
        let mut ids = std::mem::take(&mut self.ids);
        ids.reset(last_id);
        ids
    }

    /// Returns the id map for reuse.
    pub(super) fn return_ids(&mut self, ids: &mut IdMap) {
        self.ids = std::mem::take(ids);
    }

    /// Takes the cache for backtracking from the current instruction.
    pub(crate) fn take_backtrack_cache(&mut self) -> BacktrackCache {
        std::mem::take(&mut self.backtrack_cache)
    }

    /// Returns the cache for reuse on the same path.
    pub(crate) fn return_backtrack_cache(&mut self, cache: BacktrackCache) {
        self.backtrack_cache = cache;
    }

    /// Updates the peak number of states, including back edges (`update_peak_states`).
    pub(super) fn note_peak(&mut self) {
        let count = self.listed + self.dropped + self.visits.backedges;
        self.peak = self.peak.max(count);
    }

    /// Records the number of checkpoints in the list of an instruction.
    pub(super) fn note_list(&mut self, count: u64) {
        self.max_per_insn = self.max_per_insn.max(count);
    }

    /// Checkpoints in total.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// The most checkpoints at one time.
    pub(crate) const fn peak(&self) -> u64 {
        self.peak
    }

    /// The most checkpoints at one instruction.
    pub(crate) const fn max_per_insn(&self) -> u64 {
        self.max_per_insn
    }

    pub(super) fn checkpoint(&self, id: StateId) -> &Checkpoint {
        &self.checkpoints[id.0 as usize]
    }

    pub(super) fn checkpoint_mut(&mut self, id: StateId) -> &mut Checkpoint {
        &mut self.checkpoints[id.0 as usize]
    }

    /// The first checkpoint in the list for an instruction in a call from `callsite`. The
    /// kernel hashes the two, so the list may contain checkpoints of other instructions.
    pub(super) fn first(&self, pc: Pc, callsite: Option<Pc>) -> Option<StateId> {
        *self.lists.get(self.list(pc, callsite))?
    }

    fn list(&self, pc: Pc, callsite: Option<Pc>) -> usize {
        let main = Pc(u32::MAX);
        let hash = pc.0 ^ callsite.unwrap_or(main).0;
        hash as usize % self.lists.len().max(1)
    }

    /// Stores a copy of a state at the head of its list. The copy takes the jump history;
    /// the history of `state` is cleared.
    pub(super) fn insert(&mut self, state: &mut State, slots: usize) -> StateId {
        if self.lists.len() != slots {
            self.lists.resize(slots, None);
        }
        let list = self.list(state.pc, state.frame().callsite);
        let next = self.lists.get(list).copied().flatten();
        let id = self.store(state);
        let checkpoint = self.checkpoint_mut(id);
        std::mem::swap(&mut checkpoint.state.history, &mut state.history);
        state.history.clear();
        checkpoint.next = next;
        if let Some(head) = self.lists.get_mut(list) {
            *head = Some(id);
        }
        self.listed += 1;
        self.total += 1;
        id
    }

    /// Stores a copy of a state, without its history, in a freed entry or at the end.
    fn store(&mut self, state: &State) -> StateId {
        let Some(id) = self.free.pop() else {
            let id = u32::try_from(self.checkpoints.len()).unwrap_or(u32::MAX);
            let state = State {
                frames: state.frames.clone(),
                refs: state.refs.clone(),
                history: Vec::new(),
                ..*state
            };
            self.checkpoints.push(Checkpoint {
                state,
                next: None,
                hits: 0,
                misses: 0,
                hints: [0; 2],
                dropped: false,
                visit: None,
            });
            return StateId(id);
        };
        let checkpoint = self.checkpoint_mut(id);
        copy_state(&mut checkpoint.state, state);
        (checkpoint.next, checkpoint.hits, checkpoint.misses) = (None, 0, 0);
        (checkpoint.dropped, checkpoint.visit) = (false, None);
        id
    }

    /// Removes a checkpoint from its list, in which it follows `before`, and frees it if
    /// possible.
    pub(super) fn drop_from_list(&mut self, id: StateId, before: Option<StateId>) {
        let checkpoint = self.checkpoint_mut(id);
        checkpoint.dropped = true;
        let (next, pc) = (checkpoint.next.take(), checkpoint.state.pc);
        let callsite = checkpoint.state.frame().callsite;
        match before {
            Some(before) => self.checkpoint_mut(before).next = next,
            None => {
                let list = self.list(pc, callsite);
                if let Some(head) = self.lists.get_mut(list) {
                    *head = next;
                }
            }
        }
        self.listed -= 1;
        self.dropped += 1;
        self.free_if_done(id);
    }

    /// Frees a checkpoint that left its list if all paths from it are explored and no back
    /// edge of its loop is pending (`maybe_free_verifier_state`).
    pub(super) fn free_if_done(&mut self, id: StateId) {
        let checkpoint = self.checkpoint(id);
        if !checkpoint.dropped || checkpoint.state.branches != 0 || self.is_incomplete(id) {
            return;
        }
        self.checkpoint_mut(id).dropped = false;
        self.dropped -= 1;
        self.free.push(id);
    }

    /// Whether the checkpoint may still get precision marks: it is in a loop with back
    /// edges that is still being explored (`incomplete_read_marks`).
    pub(super) fn is_incomplete(&self, id: StateId) -> bool {
        let visit = self
            .checkpoint(id)
            .visit
            .and_then(|visit| self.visits.get(visit));
        visit.is_some_and(Visit::is_incomplete)
    }

    /// A copy of a state for another branch. The path from its checkpoint has one branch
    /// more then.
    pub(crate) fn branch(&mut self, state: &State) -> State {
        if let Some(parent) = state.parent {
            self.get_mut(parent).branches += 1;
        }
        self.copy(state)
    }

    /// Copies a state, into the memory of a recycled one if possible.
    pub(super) fn copy(&mut self, state: &State) -> State {
        match self.spare.pop() {
            Some(mut copy) => {
                copy_state(&mut copy, state);
                copy.history.clone_from(&state.history);
                copy
            }
            None => state.clone(),
        }
    }

    /// Takes a state whose memory can be reused.
    pub(crate) fn recycle(&mut self, state: State) {
        self.spare.push(state);
    }
}

/// Copies a state without its history, reusing the memory of `to`.
fn copy_state(to: &mut State, from: &State) {
    let mut frames = std::mem::take(&mut to.frames);
    frames.truncate(from.frames.len());
    for (to, from) in frames.iter_mut().zip(&from.frames) {
        let mut stack = std::mem::take(&mut to.stack);
        stack.clone_from(&from.stack);
        *to = Frame { stack, ..*from };
    }
    let there = frames.len();
    frames.extend(from.frames.iter().skip(there).cloned());
    let mut refs = std::mem::take(&mut to.refs);
    refs.clone_from(&from.refs);
    let history = std::mem::take(&mut to.history);
    *to = State {
        frames,
        refs,
        history,
        ..*from
    };
}
