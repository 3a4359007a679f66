//! The explored states.
//!
//! Each instruction has a list of the checkpoints before it, the latest first
//! (`explored_states`). A checkpoint that rarely prunes anything leaves its list. It is
//! freed once all paths from it are explored (`free_list`).

use std::mem::take;

use super::ids::IdMap;
use super::scc::{VisitId, Visits};
use super::subsume::{Differed, PreciseRange};
use crate::isa::Reg;
use crate::util::Pc;
use crate::verifier::explore::counts::Counts;
use crate::verifier::pool::Pools;
use crate::verifier::state::{SavedState, Segment, State, StateId};

/// A checkpoint (`struct bpf_verifier_state_list`).
#[derive(Debug)]
pub(super) struct Checkpoint {
    pub state: SavedState,
    /// Its list, and the next checkpoint there.
    pub list: ListId,
    pub next: Option<StateId>,
    /// How many states it pruned, and how many it was compared with in vain.
    pub hits: u32,
    pub misses: u32,
    /// The register that differed last in a full comparison.
    pub hint: u8,
    /// The range that this register has to have, if it is a precise scalar.
    pub range: Option<PreciseRange>,
    /// The same in the quick comparison for loops.
    pub differed: Differed,
    /// Whether it left its list.
    pub dropped: bool,
    /// The loop visit that it belongs to.
    pub visit: Option<VisitId>,
}

/// The number of a list of checkpoints.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListId(u32);

/// A list of checkpoints.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct List {
    pub head: Option<StateId>,
    /// Whether all paths from a checkpoint in it are explored that was not cleaned yet.
    pub uncleaned: bool,
}

/// Memory is reserved for one checkpoint for so many instructions of the program: to extend it
/// later copies the checkpoints. It costs nothing until it is used.
const INSNS_PER_CHECKPOINT: usize = 8;

/// The explored states (`explored_states` and `free_list`).
#[derive(Debug, Default)]
pub(crate) struct Arena {
    checkpoints: Vec<Checkpoint>,
    /// The indices of freed checkpoints, whose memory is reused.
    free: Vec<StateId>,
    pools: Pools,
    lists: Vec<List>,
    /// The number of the list for instruction 0 of the main program.
    main_list: u32,
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
}

impl Arena {
    /// The explored states of a program with `slots` slots.
    pub(crate) fn new(slots: usize) -> Self {
        let lists = u32::try_from(slots).unwrap_or(u32::MAX);
        Self {
            checkpoints: Vec::with_capacity(slots / INSNS_PER_CHECKPOINT),
            pools: Pools::with_capacity(slots / INSNS_PER_CHECKPOINT),
            lists: vec![List::default(); slots],
            main_list: u32::MAX.checked_rem(lists).unwrap_or(0),
            ..Self::default()
        }
    }

    pub(crate) fn get(&self, id: StateId) -> &SavedState {
        &self.checkpoint(id).state
    }

    /// The way to a checkpoint; without one, to the state `start`.
    pub(crate) fn segment<'a>(
        &'a self,
        start: &'a State,
        checkpoint: Option<StateId>,
    ) -> Segment<'a> {
        checkpoint.map_or(start.segment(), |id| self.get(id).segment())
    }

    pub(crate) fn get_mut(&mut self, id: StateId) -> &mut SavedState {
        &mut self.checkpoint_mut(id).state
    }

    /// Removes every state, before the next function is explored (`free_states`). The
    /// statistics continue, as in the kernel.
    pub(crate) fn clear(&mut self) {
        self.checkpoints.clear();
        self.free.clear();
        self.lists.fill(List::default());
        self.visits.clear();
        self.pools.clear();
    }

    /// Takes the id map for comparisons; `last_id` is the last id assigned.
    pub(super) fn take_ids(&mut self, last_id: u32) -> IdMap {
        let mut ids = take(&mut self.ids);
        ids.reset(last_id);
        ids
    }

    /// Returns the id map for reuse.
    pub(super) fn return_ids(&mut self, ids: IdMap) {
        self.ids = ids;
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

    /// The registers and slots of the states.
    pub(crate) const fn pools(&self) -> &Pools {
        &self.pools
    }

    /// A state, with the registers and slots.
    pub(crate) fn state_and_pools(&mut self, id: StateId) -> (&mut SavedState, &mut Pools) {
        (&mut self.checkpoints[id.0 as usize].state, &mut self.pools)
    }

    /// A checkpoint with what a comparison needs: the registers and slots, and the visits of loops.
    pub(super) fn checkpoint_in_use(&mut self, id: StateId) -> (&mut Checkpoint, &Pools, &Visits) {
        (
            &mut self.checkpoints[id.0 as usize],
            &self.pools,
            &self.visits,
        )
    }

    /// The list for an instruction in a call from `callsite`. The kernel hashes the two, so
    /// the list may contain checkpoints of other instructions.
    pub(super) fn list_of(&self, pc: Pc, callsite: Option<Pc>) -> ListId {
        let lists = u32::try_from(self.lists.len()).unwrap_or(u32::MAX);
        ListId(match callsite {
            Some(callsite) => (pc.0 ^ callsite.0) % lists,
            // The kernel's callsite is u32::MAX then: `u32::MAX - pc`, without a division.
            None => match self.main_list.checked_sub(pc.0) {
                Some(list) => list,
                None => self.main_list + lists - pc.0,
            },
        })
    }

    pub(super) fn list(&self, list: ListId) -> &List {
        &self.lists[list.0 as usize]
    }

    pub(super) fn list_mut(&mut self, list: ListId) -> &mut List {
        &mut self.lists[list.0 as usize]
    }

    /// Stores a copy of a state at the head of its list, with its jump history, which is
    /// cleared in `state`.
    pub(super) fn insert(&mut self, state: &mut State, list: ListId) -> StateId {
        let free = self.free.pop();
        // The memory of the freed checkpoint.
        let (mut frames, mut history) = match free {
            Some(id) => {
                let old = &mut self.checkpoint_mut(id).state;
                (take(&mut old.frames), take(&mut old.history))
            }
            None => Default::default(),
        };
        let parent = state
            .parent
            .map(|id| &self.checkpoints[id.0 as usize].state);
        let pools = &mut self.pools;
        frames.extend(state.frames.iter().enumerate().map(|(number, frame)| {
            let parent = parent.and_then(|parent| parent.frames.get(number));
            pools.save(frame, parent)
        }));
        // The copy is as long as it has to be; `state` keeps its memory for the next one.
        history.clone_from(&state.history);
        state.history.clear();
        let checkpoint = Checkpoint {
            state: state.with(frames, state.refs.clone(), history),
            list,
            next: self.list(list).head,
            hits: 0,
            misses: 0,
            hint: 0,
            range: None,
            differed: Differed::new(0, state.reg(Reg::R0)),
            dropped: false,
            visit: None,
        };
        let id = match free {
            Some(id) => {
                *self.checkpoint_mut(id) = checkpoint;
                id
            }
            None => {
                let id = u32::try_from(self.checkpoints.len()).unwrap_or(u32::MAX);
                self.checkpoints.push(checkpoint);
                StateId(id)
            }
        };
        self.list_mut(list).head = Some(id);
        self.listed += 1;
        self.total += 1;
        id
    }

    /// Removes a checkpoint from its list, in which it follows `before`, and frees it if
    /// possible.
    pub(super) fn drop_from_list(&mut self, id: StateId, before: Option<StateId>) {
        let checkpoint = self.checkpoint_mut(id);
        checkpoint.dropped = true;
        let (list, next) = (checkpoint.list, checkpoint.next.take());
        match before {
            Some(before) => self.checkpoint_mut(before).next = next,
            None => self.list_mut(list).head = next,
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
        let checkpoint = &mut self.checkpoints[id.0 as usize];
        checkpoint.dropped = false;
        self.pools.release(&mut checkpoint.state.frames);
        self.dropped -= 1;
        self.free.push(id);
    }

    /// Whether the checkpoint may still get precision marks: it is in a loop with back
    /// edges that is still being explored (`incomplete_read_marks`).
    pub(super) fn is_incomplete(&self, id: StateId) -> bool {
        self.visits.is_incomplete(self.checkpoint(id).visit)
    }

    /// Counts one more branch of the path from the state's checkpoint.
    pub(crate) fn count_branch(&mut self, state: &State) {
        if let Some(parent) = state.parent {
            self.get_mut(parent).branches += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::state;
    use super::*;

    const LIST: ListId = ListId(2);

    fn insert(arena: &mut Arena) -> StateId {
        let id = arena.insert(&mut state(&[], Pc(0)), LIST);
        arena.note_peak();
        id
    }

    /// What the last line of a log says of checkpoints.
    #[test]
    fn checkpoints_are_counted() {
        let mut arena = Arena::new(8);
        let counts = |arena: &Arena| (arena.total(), arena.peak());
        let [first, second, third] = [(); 3].map(|()| insert(&mut arena));
        assert_eq!(counts(&arena), (3, 3));
        assert_eq!(arena.list(LIST).head, Some(third));

        // All of its paths are explored: its memory is reused.
        arena.drop_from_list(second, Some(third));
        assert_eq!(arena.checkpoint(third).next, Some(first));
        assert_eq!(insert(&mut arena), second);
        assert_eq!(counts(&arena), (4, 3));

        // A path from it is not explored yet: it has left its list, but counts.
        arena.get_mut(first).branches = 1;
        arena.drop_from_list(first, Some(third));
        let fourth = insert(&mut arena);
        assert_ne!(fourth, first);
        assert_eq!(counts(&arena), (5, 4));
        arena.free_if_done(first);
        assert_ne!(insert(&mut arena), first);
        arena.get_mut(first).branches = 0;
        arena.free_if_done(first);
        assert_eq!(insert(&mut arena), first);
        assert_eq!(counts(&arena), (7, 5));

        // Back edges that wait count, too.
        arena.visits.backedges = 2;
        arena.note_peak();
        assert_eq!(arena.peak(), 7);

        for (count, most) in [(3, 3), (2, 3), (4, 4)] {
            arena.note_list(count);
            assert_eq!(arena.max_per_insn(), most);
        }

        // The next function begins with none; the kernel goes on counting (`free_states`).
        arena.clear();
        assert_eq!(arena.list(LIST).head, None);
        assert_eq!(insert(&mut arena), StateId(0));
        assert_eq!(counts(&arena), (8, 8));
    }

    /// `(pc ^ callsite) % length`, with -1 for the callsite of the main function
    /// (`explored_state`, `kernel/bpf/verifier.c`).
    #[test]
    fn lists_are_those_of_the_kernel() {
        for slots in [1u32, 7, 10, 4096] {
            let arena = Arena::new(slots as usize);
            for pc in [0, 1, 5, 6].into_iter().filter(|pc| *pc < slots) {
                let list = (u32::MAX ^ pc) % slots;
                assert_eq!(arena.list_of(Pc(pc), None).0, list);
            }
        }
        let arena = Arena::new(10);
        for (pc, callsite, list) in [(6, 3, 5), (9, 5, 2), (7, 9, 4), (4, 4, 0)] {
            assert_eq!(arena.list_of(Pc(pc), Some(Pc(callsite))).0, list);
        }
    }

    #[test]
    fn the_id_map_is_reused() {
        let mut arena = Arena::new(1);
        let mut ids = arena.take_ids(100);
        assert!(ids.same(3, 7) && !ids.same(4, 7));
        arena.return_ids(ids);
        assert!(arena.take_ids(100).same(4, 7), "forgotten");
    }
}
