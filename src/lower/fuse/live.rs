//! Which registers are live: may be read before they are written.

use crate::analysis::Effect;
use crate::isa::RegSet;
use crate::lower::lowered::Lowered;
use crate::lower::op::{Op, Target};

/// How often the operations are gone through: programs with more nested loops are rare.
const MOST_ROUNDS: u32 = 8;

/// The registers that are live before each operation.
pub(super) struct Live(Vec<RegSet>);

impl Live {
    /// Goes through the operations backwards. All registers are taken as live until it is known
    /// better, so that no round takes one as dead that is live. The first round finds what holds
    /// without backward jumps; another one is needed where it found less to be live at their
    /// targets than they were taken to need.
    pub fn of(program: &Lowered) -> Self {
        let mut live = Self(vec![RegSet::ALL; program.ops.len()]);
        let mut end = program.ops.len();
        for _ in 0..MOST_ROUNDS {
            match live.round(program, end) {
                Some(last) => end = last as usize + 1,
                None => break,
            }
        }
        live
    }

    /// Goes through the operations before `end`. Returns the last backward jump whose target is
    /// known better now.
    fn round(&mut self, program: &Lowered, end: usize) -> Option<Target> {
        let mut backward: Vec<(Target, Target, RegSet)> = Vec::new();
        let mut next = self.0.get(end).copied().unwrap_or(RegSet::ALL);
        let (ops, effects) = (program.ops.get(..end)?, program.effects.get(..end)?);
        let mut at = Target::try_from(end).ok()?;
        for (op, effect) in ops.iter().zip(effects).rev() {
            at -= 1;
            let mut at_target = |to: Target| {
                let live = self.before(to);
                if to <= at {
                    backward.push((at, to, live));
                }
                live
            };
            let after = match *op {
                Op::Jump { target } => at_target(target),
                Op::JumpIf { target, .. } | Op::MayGoto { target } => next.union(at_target(target)),
                // A function restores its caller's r6 to r9.
                Op::Throw { .. } | Op::Exit => RegSet::EMPTY,
                _ => next,
            };
            next = before(effect, after);
            if let Some(live) = self.0.get_mut(at as usize) {
                *live = next;
            }
        }
        let mut changed = backward.into_iter();
        let changed = changed.find(|(_, to, live)| self.before(*to) != *live);
        changed.map(|(from, _, _)| from)
    }

    /// The registers that are live before an operation.
    pub fn before(&self, at: Target) -> RegSet {
        self.0.get(at as usize).copied().unwrap_or(RegSet::ALL)
    }
}

/// The registers that are live before an operation, from those after it.
fn before(effect: &Effect, after: RegSet) -> RegSet {
    after.minus(effect.writes).union(effect.reads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Liveness;
    use crate::isa::Reg;
    use crate::lower::Passes;
    use crate::lower::flow::graph;
    use crate::lower::tests::lowered;

    const LOOPS: &str = "r0 = 0
        r6 = 0
        outer: r7 = 0
        inner: r1 = r7
        r0 += r1
        r7 += 1
        if r7 < 3 goto inner
        r6 += 1
        if r6 < 3 goto outer
        exit";

    #[test]
    fn no_live_register_is_taken_as_dead() {
        let branches = "r6 = *(u32 *)(r1 + 12)
            if r6 > 7 goto more
            r0 = 1
            goto out
            more: r0 = r6
            r0 += 1
            out: exit";
        for (text, is_exact) in [(branches, true), (LOOPS, false)] {
            let program = lowered(text, &[], Passes::all()).unwrap();
            let live = Live::of(&program);
            let exact = Liveness::new(&graph(&program), program.effects.clone());
            for at in 0..u32::try_from(program.ops.len()).unwrap() {
                let (known, exact) = (live.before(at), exact.before(at));
                assert!(exact.minus(known).is_empty(), "{at}: {known:?} {exact:?}");
                assert!(!is_exact || known == exact, "{at}: {known:?} {exact:?}");
            }
        }
    }

    #[test]
    fn what_each_round_of_a_loop_writes_first_is_dead_at_its_end() {
        let program = lowered(LOOPS, &[], Passes::all()).unwrap();
        let live = Live::of(&program);
        assert!(live.before(4).contains(Reg::R1) && !live.before(5).contains(Reg::R1));
        assert!(live.before(6).contains(Reg::R7) && !live.before(7).contains(Reg::R7));
    }
}
