//! Live registers: those that may be read before they are written.
//!
//! ```text
//! after(i)  = ∪ before(s)                     for s that can follow i
//! before(i) = after(i) \ writes(i) ∪ reads(i)
//! ```
//!
//! The caller gives what each node reads and writes, since it differs: in the verifier a call
//! reads as many arguments as its prototype has, as in the kernel; in the recorder's
//! instrumentation a call of a subprogram reads the arguments that the subprogram reads.
//!
//! ```text
//!                         live before
//! 0: r2 = 1               r0 r1
//! 1: if r1 == 0 goto 3    r0 r1 r2      r0: read by 3 if 1 jumps there
//! 2: r0 = r2              r2
//! 3: exit                 r0
//! ```

use std::convert::Infallible;

use rustc_hash::FxHashMap;

use super::graph::Graph;
use super::solve::{Meeting, Problem, Solver};
use crate::isa::RegSet;

/// The registers that a node reads and writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Effect {
    /// The registers read, before any is written.
    pub reads: RegSet,
    /// The registers written or made unreadable.
    pub writes: RegSet,
}

/// The live registers of a program.
#[derive(Debug, Clone)]
pub(crate) struct Liveness {
    /// By node.
    before: Vec<RegSet>,
}

impl Liveness {
    /// Analyses a program whose nodes have these effects (a second slot has none).
    pub(crate) fn new(graph: &Graph, effects: Vec<Effect>) -> Self {
        Self::across_calls(graph, effects, [])
    }

    /// Like [`new`](Self::new), but a call also reads the arguments that its callee reads.
    /// `calls` has the calls, each with the first node of its callee.
    pub(crate) fn across_calls(
        graph: &Graph,
        effects: Vec<Effect>,
        calls: impl IntoIterator<Item = (u32, u32)>,
    ) -> Self {
        let mut callers: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (call, callee) in calls {
            callers.entry(callee).or_default().push(call);
        }
        let mut registers = Registers {
            before: vec![RegSet::EMPTY; effects.len()],
            effects,
            callers,
        };
        let mut solver = Solver::backwards(graph);
        solver.arrive_everywhere(&registers, &RegSet::EMPTY);
        let Ok(()) = solver.run(&mut registers);
        Self {
            before: registers.before,
        }
    }

    /// The registers that the node or what follows it may read.
    pub(crate) fn before(&self, node: u32) -> RegSet {
        let before = self.before.get(node as usize);
        before.copied().unwrap_or_default()
    }

    /// The registers that what follows the node may read. `graph` is the same.
    pub(crate) fn after(&self, graph: &Graph, node: u32) -> RegSet {
        let next = graph.successors(node);
        next.fold(RegSet::EMPTY, |set, next| set.union(self.before(next)))
    }
}

struct Registers {
    effects: Vec<Effect>,
    before: Vec<RegSet>,
    /// By first node of a function the calls of it.
    callers: FxHashMap<u32, Vec<u32>>,
}

impl Problem for Registers {
    type State = RegSet;
    type Stop = Infallible;

    fn join(&self, known: &mut RegSet, other: &RegSet, _: Meeting) -> bool {
        let before = *known;
        *known = before.union(*other);
        *known != before
    }

    fn step(
        &mut self,
        solver: &mut Solver<'_, RegSet>,
        state: &mut RegSet,
        node: u32,
    ) -> Result<bool, Infallible> {
        let at = node as usize;
        let (Some(effect), Some(before)) = (self.effects.get(at), self.before.get_mut(at)) else {
            return Ok(true);
        };
        *state = state.minus(effect.writes).union(effect.reads);
        if *before != *state {
            *before = *state;
            if !self.callers.is_empty()
                && let Some(calls) = self.callers.get(&node)
            {
                for call in calls {
                    if let Some(effect) = self.effects.get_mut(*call as usize) {
                        let arguments = state.and(RegSet::arguments(5));
                        effect.reads = effect.reads.union(arguments);
                    }
                    solver.step_again(*call);
                }
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cfg;
    use super::*;
    use crate::isa::{Code, assemble};
    use crate::util::Pc;

    /// The registers before each slot, calls of functions read nothing by themselves.
    fn live(text: &str) -> Vec<String> {
        let code = Code::new(&assemble(text).unwrap());
        let cfg = Cfg::new(&code).unwrap();
        let slots = || (0..code.len()).map(Pc::from_index);
        let effects = slots().map(|pc| {
            let insn = code.insn(pc);
            insn.map_or(Effect::default(), |insn| Effect {
                reads: if insn.is_call() {
                    RegSet::EMPTY
                } else {
                    insn.reads()
                },
                writes: insn.writes(),
            })
        });
        let calls = slots().filter_map(|pc| {
            let to = code.insn(pc)?.subprogram_target(pc)?;
            Some((pc.0, u32::try_from(to).ok()?))
        });
        let live = Liveness::across_calls(cfg.graph(), effects.collect(), calls);
        slots()
            .map(|pc| {
                let names: Vec<_> = live
                    .before(pc.0)
                    .iter()
                    .map(|reg| reg.to_string())
                    .collect();
                names.join(" ")
            })
            .collect()
    }

    #[test]
    fn a_register_lives_from_its_writing_to_its_last_reading() {
        let text = "r2 = 1\n if r1 == 0 goto +1\n r0 = r2\n exit";
        assert_eq!(live(text), ["r0 r1", "r0 r1 r2", "r2", "r0"]);
        let wide = "r2 = 7 ll\n r0 = r2\n exit";
        assert_eq!(live(wide), ["", "r2", "r2", "r0"]);
    }

    #[test]
    fn what_one_round_reads_the_round_before_keeps() {
        let text = "r0 = 0\n r3 = 9\n r0 += r3\n r3 = r1\n if r0 < 9 goto -3\n exit";
        assert_eq!(
            live(text),
            ["r1", "r0 r1", "r0 r1 r3", "r0 r1", "r0 r1 r3", "r0"]
        );
    }

    /// Also where the callee stands before its caller, and calls itself.
    #[test]
    fn a_call_reads_what_the_callee_reads() {
        let text = "call pc+3\n exit\n r0 = r2\n exit\n call pc-3\n exit";
        assert_eq!(live(text)[0], "r2");
        let text = "call pc+1\n exit\n if r4 == 0 goto +2\n call pc-2\n exit\n r0 = r3\n exit";
        assert_eq!(live(text)[0], "r3 r4");
        // What it returns is not an argument.
        assert_eq!(live("call pc+1\n exit\n exit")[0], "");
    }
}
