//! The states that were kept, and where they stand.
//!
//! Each instruction has a list of the states kept before it, the latest first
//! (`explored_states`). A state that was of no use leaves its list, and is freed as
//! soon as no path from it is being walked (`free_list`).

use super::ids::IdMap;
use super::scc::{Visit, VisitId, Visits};
use crate::util::Pc;
use crate::verifier::precision::Trodden;
use crate::verifier::state::{Frame, State, StateId};

/// A kept state (`struct bpf_verifier_state_list`).
#[derive(Debug)]
pub(super) struct Kept {
    pub state: State,
    /// The next one in its list.
    pub next: Option<StateId>,
    /// How often it covered a state that arrived, and how often it did not.
    pub hits: u32,
    pub misses: u32,
    /// The register that told the current state from it last, in a comparison, and at
    /// a glance.
    pub hints: [u8; 2],
    /// Whether it left its list.
    pub dropped: bool,
    /// The walk of a loop that it belongs to.
    pub visit: Option<VisitId>,
}

/// The states that were kept (`explored_states` and `free_list`).
#[derive(Debug, Default)]
pub(crate) struct Arena {
    kept: Vec<Kept>,
    /// The places whose states were freed; their memory is used again.
    free: Vec<StateId>,
    /// States whose memory can be used again.
    spare: Vec<State>,
    /// The first state of each list.
    lists: Vec<Option<StateId>>,
    /// How many are in lists, and how many dropped.
    listed: u64,
    dropped: u64,
    pub(super) visits: Visits,
    /// For comparisons.
    ids: IdMap,
    /// Of the way since the last state was kept.
    pub(in crate::verifier) trodden: Trodden,
}

impl Arena {
    /// For a program of so many slots.
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            lists: vec![None; slots],
            ..Self::default()
        }
    }

    pub(crate) fn get(&self, id: StateId) -> &State {
        &self.kept(id).state
    }

    pub(crate) fn get_mut(&mut self, id: StateId) -> &mut State {
        &mut self.kept_mut(id).state
    }

    /// Forgets every state, for the walk of the next function (`free_states`).
    /// The statistics go on, as the kernel's do.
    pub(crate) fn clear(&mut self) {
        let places = u32::try_from(self.kept.len()).unwrap_or(u32::MAX);
        self.free = (0..places).rev().map(StateId).collect();
        self.lists.fill(None);
        self.visits.clear();
    }

    /// Room for a comparison; `last_id` is the last id that the walk gave out.
    pub(super) fn take_ids(&mut self, last_id: u32) -> IdMap {
        let mut ids = std::mem::take(&mut self.ids);
        ids.reset(last_id);
        ids
    }

    /// It can be used again.
    pub(super) fn return_ids(&mut self, ids: &mut IdMap) {
        self.ids = std::mem::take(ids);
    }

    /// How many states there are now, those that wait for a loop's end included
    /// (`update_peak_states`).
    pub(super) fn count(&self) -> u64 {
        self.listed + self.dropped + self.visits.backedges
    }

    pub(super) fn kept(&self, id: StateId) -> &Kept {
        &self.kept[id.0 as usize]
    }

    pub(super) fn kept_mut(&mut self, id: StateId) -> &mut Kept {
        &mut self.kept[id.0 as usize]
    }

    /// The first of the states that were kept at an instruction in a call from
    /// `callsite` — and of a few others: the kernel hashes the two.
    pub(super) fn first(&self, pc: Pc, callsite: Option<Pc>) -> Option<StateId> {
        *self.lists.get(self.list(pc, callsite))?
    }

    fn list(&self, pc: Pc, callsite: Option<Pc>) -> usize {
        let main = Pc(u32::MAX);
        let hash = pc.0 ^ callsite.unwrap_or(main).0;
        hash as usize % self.lists.len().max(1)
    }

    /// Puts a copy of a state at the head of its list; `visit` is the walk of a loop
    /// that it belongs to. The copy gets the history, which begins anew behind it.
    pub(super) fn keep(&mut self, state: &mut State, slots: usize) -> StateId {
        if self.lists.len() != slots {
            self.lists.resize(slots, None);
        }
        let list = self.list(state.pc, state.frame().callsite);
        let next = self.lists.get(list).copied().flatten();
        let id = self.place_for(state);
        let kept = self.kept_mut(id);
        std::mem::swap(&mut kept.state.history, &mut state.history);
        state.history.clear();
        kept.next = next;
        if let Some(head) = self.lists.get_mut(list) {
            *head = Some(id);
        }
        self.listed += 1;
        id
    }

    /// Puts a copy of a state, without its history, where one was freed, or at the end.
    fn place_for(&mut self, state: &State) -> StateId {
        let Some(id) = self.free.pop() else {
            let id = u32::try_from(self.kept.len()).unwrap_or(u32::MAX);
            let state = State {
                frames: state.frames.clone(),
                refs: state.refs.clone(),
                history: Vec::new(),
                ..*state
            };
            self.kept.push(Kept {
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
        let kept = self.kept_mut(id);
        copy_state(&mut kept.state, state);
        (kept.next, kept.hits, kept.misses) = (None, 0, 0);
        (kept.dropped, kept.visit) = (false, None);
        id
    }

    /// Takes a state out of its list, in which it follows `before`, and frees it if it
    /// is not needed.
    pub(super) fn drop_from_list(&mut self, id: StateId, before: Option<StateId>) {
        let kept = self.kept_mut(id);
        kept.dropped = true;
        let (next, pc) = (kept.next.take(), kept.state.pc);
        let callsite = kept.state.frame().callsite;
        match before {
            Some(before) => self.kept_mut(before).next = next,
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

    /// Frees a dropped state from which no path is being walked, and from which no
    /// loop waits for its marks (`maybe_free_verifier_state`).
    pub(super) fn free_if_done(&mut self, id: StateId) {
        let kept = self.kept(id);
        if !kept.dropped || kept.state.branches != 0 || self.is_incomplete(id) {
            return;
        }
        self.kept_mut(id).dropped = false;
        self.dropped -= 1;
        self.free.push(id);
    }

    /// Whether the state's marks are not complete: it is in a loop that is still being
    /// walked and was found to come back to it (`incomplete_read_marks`).
    pub(super) fn is_incomplete(&self, id: StateId) -> bool {
        let visit = self.kept(id).visit.and_then(|visit| self.visits.get(visit));
        visit.is_some_and(Visit::is_incomplete)
    }

    /// A copy of a state, in the memory of one that is not needed any more.
    pub(crate) fn copy(&mut self, state: &State) -> State {
        match self.spare.pop() {
            Some(mut copy) => {
                copy_state(&mut copy, state);
                copy.history.clone_from(&state.history);
                copy
            }
            None => state.clone(),
        }
    }

    /// The memory of this state can be used again.
    pub(crate) fn recycle(&mut self, state: State) {
        self.spare.push(state);
    }
}

/// Makes one state the same as another, but for the history, in the memory that it
/// has.
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
