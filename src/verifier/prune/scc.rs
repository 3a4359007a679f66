//! Loops that are being walked.
//!
//! A path that comes back to a state in a loop can only be cut if nothing is known of
//! what that state's other paths will need: their marks are not made yet. So the place
//! where it came back (a "back edge") is kept, and when the last path out of the loop
//! has ended, what the state turned out to need is marked on the way to each of them,
//! until nothing new comes of it. (`struct bpf_scc_visit`; a loop is a strongly
//! connected component of the program's graph.)

use std::fmt;

use rustc_hash::FxHashMap;

use crate::spec::limits::MAX_CALL_FRAMES;
use crate::util::Pc;
use crate::verifier::state::{State, StateId};
use crate::verifier::structure::InsnInfo;

/// A loop, as reached through calls (`struct bpf_scc_callchain`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Loop {
    /// The calls from frames that are in no loop.
    callsites: [Pc; MAX_CALL_FRAMES],
    /// Its number.
    scc: u32,
}

impl Loop {
    /// The loop that the outermost frame which is in one is in
    /// (`compute_scc_callchain`).
    pub(super) fn of(state: &State, insns: &[InsnInfo]) -> Option<Self> {
        let mut found = Self::default();
        for number in 0..state.frames.len() {
            let pc = state.frame_pc(number);
            let scc = insns.get(pc.index()).map_or(0, |info| info.scc);
            if scc != 0 {
                found.scc = scc;
                return Some(found);
            }
            *found.callsites.get_mut(number)? = pc;
        }
        None
    }
}

/// As the log has it (`format_callchain`): it ends the calls at number 0.
impl fmt::Display for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for callsite in self.callsites.iter().take_while(|pc| pc.0 != 0) {
            write!(f, "{callsite},")?;
        }
        write!(f, "{})", self.scc)
    }
}

/// The walk of a loop, by its place in [`Visits`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct VisitId(u32);

/// The walk of a loop.
#[derive(Debug)]
pub(super) struct Visit {
    pub of: Loop,
    /// The first state kept in it, until all paths from there have ended.
    pub entry: Option<StateId>,
    /// Where paths came back, with [`State::equal_to`] telling to which state.
    pub backedges: Vec<State>,
}

impl Visit {
    /// Whether states in it may still get marks.
    pub(super) fn is_incomplete(&self) -> bool {
        !self.backedges.is_empty()
    }
}

/// Every loop that was walked.
#[derive(Debug, Default)]
pub(super) struct Visits {
    visits: Vec<Visit>,
    by_loop: FxHashMap<Loop, VisitId>,
    /// How many back edges wait in all.
    pub backedges: u64,
}

impl Visits {
    pub(super) fn get(&self, id: VisitId) -> Option<&Visit> {
        self.visits.get(id.0 as usize)
    }

    pub(super) fn get_mut(&mut self, id: VisitId) -> Option<&mut Visit> {
        self.visits.get_mut(id.0 as usize)
    }

    /// The walk of a loop; whether `state` is the first that was kept in it
    /// (`maybe_enter_scc`).
    pub(super) fn enter(&mut self, of: Loop, state: StateId) -> (VisitId, bool) {
        let new = VisitId(u32::try_from(self.visits.len()).unwrap_or(u32::MAX));
        let id = *self.by_loop.entry(of).or_insert(new);
        if id == new {
            self.visits.push(Visit {
                of,
                entry: None,
                backedges: Vec::new(),
            });
        }
        let Some(visit) = self.get_mut(id) else {
            return (id, false);
        };
        let first = visit.entry.is_none();
        visit.entry.get_or_insert(state);
        (id, first)
    }

    pub(super) fn clear(&mut self) {
        // The kernel's count goes on: it is of the whole verification.
        self.visits.clear();
        self.by_loop.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_loop_counts() {
        let mut insns = vec![InsnInfo::default(); 20];
        insns[12].scc = 3;
        insns[5].scc = 2;
        let state = super::super::tests::state(&[5], Pc(12));
        let found = Loop::of(&state, &insns).unwrap();
        assert_eq!(found.to_string(), "(2)");
        insns[5].scc = 0;
        let found = Loop::of(&state, &insns).unwrap();
        assert_eq!(found.to_string(), "(5,3)");
        insns[12].scc = 0;
        assert_eq!(Loop::of(&state, &insns), None);
    }

    #[test]
    fn the_first_state_kept_enters() {
        let mut visits = Visits::default();
        let (id, first) = visits.enter(Loop::default(), StateId(4));
        assert!(first && visits.get(id).unwrap().entry == Some(StateId(4)));
        assert_eq!(visits.enter(Loop::default(), StateId(5)), (id, false));
        visits.get_mut(id).unwrap().entry = None;
        assert_eq!(visits.enter(Loop::default(), StateId(6)), (id, true));
    }
}
