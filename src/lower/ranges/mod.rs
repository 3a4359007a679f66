//! Value range analysis: what registers and stack slots may hold at each operation, by a
//! dataflow analysis over the whole control-flow graph.
//!
//! The verifier's ranges hold only on the paths that it explored. It prunes a path that an
//! explored state subsumes, and imprecise scalars of a pruned path may have any value:
//!
//! ```text
//!   r7 = 0
//!   if r0 > 9 goto l
//!   r7 = 3
//! l: r6 /= r7        ; explored with r7 = 3 only: the path with r7 = 0 is pruned
//! ```
//!
//! This analysis takes every edge into account. At a join the result is the union of the
//! incoming states; at the head of a loop, a bound that changes is widened to the next
//! number that the program compares with, so that the analysis terminates.
//!
//! | file | what |
//! |---|---|
//! | `state` | the facts between two operations |
//! | `transfer` | the transfer function of each operation |
//! | `facts` | facts about operations at the fixed point |
//! | `apply` | applies the facts to the program |

pub(super) mod apply;
mod facts;
mod state;
mod transfer;

use facts::Fact;
use state::State;
use transfer::{BranchStates, World};

use super::flow::solve;
use super::lowered::Lowered;
use super::op::{Op, Target};
use crate::analysis::{Meeting, Problem, Solver};
use crate::isa::{AluOp, Operand, sign_extend32};

/// The most operations that a program may have for this analysis: in larger programs the
/// gain is not worth the time. Lowering takes nanoseconds for each operation, and this some
/// hundred.
const MOST_OPS: usize = 2048;

/// How often each operation may be processed, on average.
const MOST_ROUNDS: usize = 24;

/// How often states may be joined at the head of a loop before bounds are widened.
const WIDEN_AFTER: u32 = 3;

/// The facts about a program's operations.
#[derive(Debug)]
struct Facts {
    of: Vec<Fact>,
    /// Whether some path reaches it.
    is_reached: Vec<bool>,
}

/// Whether the analysis may find anything useful.
fn may_gain(ops: &[Op]) -> bool {
    let is_division =
        |op: &AluOp| matches!(op, AluOp::Div | AluOp::Mod | AluOp::Sdiv | AluOp::Smod);
    let gains = |op: &Op| match op {
        Op::Lookup { .. } => true,
        Op::Alu { op, .. } => is_division(op),
        _ => false,
    };
    ops.len() <= MOST_OPS && ops.iter().any(gains)
}

/// Analyzes a program; none if nothing can be gained, or it takes too long.
fn analyze(program: &Lowered) -> Option<Facts> {
    if !may_gain(&program.ops) {
        return None;
    }
    let mut analysis = Analysis {
        program,
        world: World {
            maps: &program.maps,
            helpers: &program.helpers,
            cpus: program.cpus,
        },
        thresholds: thresholds(&program.ops),
        left: program.ops.len().saturating_mul(MOST_ROUNDS),
        facts: Facts {
            of: vec![Fact::default(); program.ops.len()],
            is_reached: vec![false; program.ops.len()],
        },
    };
    solve(program, &mut analysis, &State::at_entry()).ok()?;
    Some(analysis.facts)
}

/// The widening thresholds, in order: the numbers with which the program compares, and
/// those next to them.
fn thresholds(ops: &[Op]) -> Vec<u64> {
    let constant = |op: &Op| match op {
        Op::JumpIf {
            src: Operand::Imm(imm),
            ..
        } => Some(sign_extend32(*imm)),
        _ => None,
    };
    let near = |end: u64| [end.wrapping_sub(1), end, end.wrapping_add(1)];
    let mut thresholds: Vec<u64> = ops.iter().filter_map(constant).flat_map(near).collect();
    // Offsets and indices of most loops are below one of these.
    thresholds.extend([u64::from(u16::MAX), u64::from(u32::MAX)]);
    thresholds.sort_unstable();
    thresholds.dedup();
    thresholds
}

/// The state of an analysis.
struct Analysis<'a> {
    program: &'a Lowered,
    world: World<'a>,
    thresholds: Vec<u64>,
    /// How many operations may still be processed.
    left: usize,
    facts: Facts,
}

/// The analysis takes too long.
struct TooLong;

impl Problem for Analysis<'_> {
    type State = State;
    type Stop = TooLong;

    fn join(&self, known: &mut State, other: &State, meeting: Meeting) -> bool {
        let widens = meeting.is_loop_head && meeting.times > WIDEN_AFTER;
        known.join(other, widens.then_some(&self.thresholds))
    }

    fn step(
        &mut self,
        solver: &mut Solver<'_, State>,
        state: &mut State,
        at: Target,
    ) -> Result<bool, TooLong> {
        self.left = self.left.checked_sub(1).ok_or(TooLong)?;
        let Some(&op) = self.program.ops.get(at as usize) else {
            return Ok(false);
        };
        if let Some(reached) = self.facts.is_reached.get_mut(at as usize) {
            *reached = true;
        }
        let Op::JumpIf {
            op: jump,
            width,
            dst,
            src,
            target,
        } = op
        else {
            let fact = state.step(self.world, op);
            self.note(at, fact);
            return Ok(true);
        };
        // A branch may be known never to be taken, or always.
        let (BranchStates { taken, not_taken }, fact) =
            std::mem::replace(state, State::at_entry()).branch(jump, width, dst, src);
        if let Some(taken) = taken {
            solver.arrive(self, target, &taken);
        }
        if let Some(not_taken) = not_taken {
            solver.arrive(self, at + 1, &not_taken);
        }
        self.note(at, fact);
        Ok(false)
    }
}

impl Analysis<'_> {
    fn note(&mut self, at: Target, fact: Fact) {
        if let Some(known) = self.facts.of.get_mut(at as usize) {
            *known = fact;
        }
    }
}
