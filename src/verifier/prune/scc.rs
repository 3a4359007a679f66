//! Loops under exploration (`struct bpf_scc_visit`). A loop is a strongly connected
//! component of the control-flow graph.
//!
//! ```text
//!    0: r7 = -16
//!    1: may_goto +7              ; checkpoint with r7 = -16
//!    2: call 7
//!    3: if r0 == 42 goto +2
//!    4: r7 = -1000
//!    5: goto -5                  ; back edge to 1
//!    6: r1 = r10
//!    7: r1 += r7                 ; makes r7 precise at 1
//!    8: r2 = *(u8 *)(r1 + 0)
//!    9: r0 = 0
//! ```
//!
//! Insn 5 may reach 1 before insn 7 is explored. Then `r7` is still imprecise in the
//! checkpoint at 1, and a comparison that ignores imprecise scalars would prune the state
//! with `r7 = -1000`. So states of an unfinished loop are compared with every range, and a
//! pruned state is stored as a *back edge*. When all paths through the loop are explored,
//! the precision marks of the checkpoint are propagated along each back edge, until no new
//! mark appears.

use std::fmt;

use rustc_hash::FxHashMap;

use crate::spec::limits::MAX_CALL_FRAMES;
use crate::util::Pc;
use crate::verifier::state::{State, StateId};
use crate::verifier::structure::InsnInfo;

/// A loop, with the calls that reach it (`struct bpf_scc_callchain`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Loop {
    /// The calls from frames that are not in a loop.
    callsites: [Pc; MAX_CALL_FRAMES],
    /// The number of the component.
    scc: u32,
}

impl Loop {
    /// The loop of the outermost frame that is in one (`compute_scc_callchain`).
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

/// Formats as in the log (`format_callchain`), which ends the calls at number 0.
impl fmt::Display for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for callsite in self.callsites.iter().take_while(|pc| pc.0 != 0) {
            write!(f, "{callsite},")?;
        }
        write!(f, "{})", self.scc)
    }
}

/// The index of a loop visit in [`Visits`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct VisitId(u32);

/// The exploration of a loop.
#[derive(Debug)]
pub(super) struct Visit {
    pub of: Loop,
    /// The first checkpoint in it, until all paths from there are explored.
    pub entry: Option<StateId>,
    /// The pruned states; [`State::equal_to`] is the checkpoint that subsumes each.
    pub backedges: Vec<State>,
}

/// All loop visits.
#[derive(Debug, Default)]
pub(super) struct Visits {
    visits: Vec<Visit>,
    by_loop: FxHashMap<Loop, VisitId>,
    /// The number of pending back edges of all visits.
    pub backedges: u64,
}

impl Visits {
    pub(super) fn get(&self, id: VisitId) -> Option<&Visit> {
        self.visits.get(id.0 as usize)
    }

    /// Whether checkpoints in this visit may still get precision marks.
    pub(super) fn is_incomplete(&self, id: Option<VisitId>) -> bool {
        id.and_then(|id| self.get(id))
            .is_some_and(|visit| !visit.backedges.is_empty())
    }

    pub(super) fn get_mut(&mut self, id: VisitId) -> Option<&mut Visit> {
        self.visits.get_mut(id.0 as usize)
    }

    /// Returns the visit of a loop; `true` if `state` is the first checkpoint in it
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
        // The kernel's count is that of the whole verification.
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
