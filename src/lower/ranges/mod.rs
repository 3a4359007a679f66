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

use super::flow::{Block, Flow, next};
use super::lowered::Lowered;
use super::op::{Op, Target};
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
    let flow = Flow::of(&program.ops, &program.functions);
    let mut analysis = Analysis {
        program,
        world: World {
            maps: &program.maps,
            helpers: &program.helpers,
            cpus: program.cpus,
        },
        thresholds: thresholds(&program.ops),
        entering: vec![None; flow.blocks.len()],
        visits: vec![0; flow.blocks.len()],
        is_pending: vec![false; flow.blocks.len()],
        facts: Facts {
            of: vec![Fact::default(); program.ops.len()],
            is_reached: vec![false; program.ops.len()],
        },
        flow: &flow,
    };
    for function in &program.functions {
        analysis.enter(function.entry, &State::at_entry());
    }
    analysis.run()?;
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
    flow: &'a Flow,
    thresholds: Vec<u64>,
    /// For each block the state at its start, if it is reachable.
    entering: Vec<Option<State>>,
    visits: Vec<u32>,
    is_pending: Vec<bool>,
    facts: Facts,
}

impl Analysis<'_> {
    /// Iterates to the fixed point; none if that takes too long.
    fn run(&mut self) -> Option<()> {
        let mut left = self.program.ops.len().saturating_mul(MOST_ROUNDS);
        // In program order, which most edges follow; backward jumps wait for the next
        // round.
        while self.is_pending.contains(&true) {
            for at in 0..self.flow.blocks.len() {
                let Some(pending) = self.is_pending.get_mut(at) else {
                    continue;
                };
                if !std::mem::take(pending) {
                    continue;
                }
                let block = self.flow.blocks.get(at)?.clone();
                left = left.checked_sub((block.end - block.start) as usize)?;
                let state = self.entering.get(at)?.clone()?;
                self.block(&block, state);
            }
        }
        Some(())
    }

    /// Applies the transfer functions of a block.
    fn block(&mut self, block: &Block, mut state: State) {
        for at in block.start..block.end {
            let Some(&op) = self.program.ops.get(at as usize) else {
                return;
            };
            if let Some(reached) = self.facts.is_reached.get_mut(at as usize) {
                *reached = true;
            }
            let fact = if let Op::JumpIf {
                op,
                width,
                dst,
                src,
                target,
            } = op
            {
                let (states, fact) = state.branch(op, width, dst, src);
                let BranchStates { taken, not_taken } = states;
                if let Some(taken) = taken {
                    self.enter(target, &taken);
                }
                if let Some(not_taken) = not_taken {
                    self.enter(at + 1, &not_taken);
                }
                self.note(at, fact);
                return;
            } else {
                state.step(self.world, op)
            };
            self.note(at, fact);
            let next = next(op);
            if let Some(target) = next.target {
                self.enter(target, &state);
            }
            if !next.follows {
                return;
            }
        }
        self.enter(block.end, &state);
    }

    fn note(&mut self, at: Target, fact: Fact) {
        if let Some(known) = self.facts.of.get_mut(at as usize) {
            *known = fact;
        }
    }

    /// Joins a state into a block's start.
    fn enter(&mut self, at: Target, state: &State) {
        let Some(at) = self.flow.block_of(at) else {
            return;
        };
        let (Some(entering), Some(visits), Some(block)) = (
            self.entering.get_mut(at),
            self.visits.get_mut(at),
            self.flow.blocks.get(at),
        ) else {
            return;
        };
        let is_new = match entering {
            None => {
                *entering = Some(state.clone());
                true
            }
            Some(known) => {
                *visits += 1;
                let widens = block.is_loop_head && *visits > WIDEN_AFTER;
                known.join(state, widens.then_some(&self.thresholds))
            }
        };
        if is_new && let Some(pending) = self.is_pending.get_mut(at) {
            *pending = true;
        }
    }
}
