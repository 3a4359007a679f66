//! What registers and stack slots may hold at each operation, by a walk of its own over
//! the whole control-flow graph.
//!
//! The verifier knows as much, but of the paths that it walked: a path is cut off where
//! a kept state covers what *matters* of it, and what does not matter may be anything
//! there. Here every edge counts. What is known where ways meet is what is known on
//! each of them; at the head of a loop an end that moves goes on to the next number that
//! the program compares with, so that the walk comes to rest.
//!
//! | file | what |
//! |---|---|
//! | `state` | what is known between two operations |
//! | `transfer` | what an operation makes of it |
//! | `facts` | what is known of operations in the end |
//! | `apply` | what becomes of the program |

pub(super) mod apply;
mod facts;
mod state;
mod transfer;

use facts::Fact;
use state::State;
use transfer::{Ways, World};

use super::flow::{Block, Flow, next};
use super::lowered::Lowered;
use super::op::{Op, Target};
use crate::isa::{AluOp, Operand, sign_extend32};

/// The most operations that a program may have for this: what it gains in a program of
/// more is not worth the time. A program is lowered in nanoseconds for each operation,
/// and this takes some hundred.
const MOST_OPS: usize = 2048;

/// How often the operations of a program may be looked at, on the average.
const MOST_ROUNDS: usize = 24;

/// How often ways may meet at the head of a loop before ends that move are sent on.
const PATIENCE: u32 = 3;

/// What is known of the operations of a program.
#[derive(Debug)]
struct Facts {
    of: Vec<Fact>,
    /// Whether some path reaches it.
    is_reached: Vec<bool>,
}

/// Whether something may come of it.
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

/// Walks over a program; none where that would gain nothing, or take too long.
fn walk(program: &Lowered) -> Option<Facts> {
    if !may_gain(&program.ops) {
        return None;
    }
    let flow = Flow::of(&program.ops, &program.functions);
    let mut walk = Walk {
        program,
        world: World {
            maps: &program.maps,
            helpers: &program.helpers,
            cpus: program.cpus,
        },
        ends: ends(&program.ops),
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
        walk.enter(function.entry, &State::at_entry());
    }
    walk.run()?;
    Some(walk.facts)
}

/// The numbers with which the program compares, and those next to them, in order.
fn ends(ops: &[Op]) -> Vec<u64> {
    let constant = |op: &Op| match op {
        Op::JumpIf {
            src: Operand::Imm(imm),
            ..
        } => Some(sign_extend32(*imm)),
        _ => None,
    };
    let near = |end: u64| [end.wrapping_sub(1), end, end.wrapping_add(1)];
    let mut ends: Vec<u64> = ops.iter().filter_map(constant).flat_map(near).collect();
    // Offsets and indices of most loops end below one of these.
    ends.extend([u64::from(u16::MAX), u64::from(u32::MAX)]);
    ends.sort_unstable();
    ends.dedup();
    ends
}

/// A walk under way.
struct Walk<'a> {
    program: &'a Lowered,
    world: World<'a>,
    flow: &'a Flow,
    ends: Vec<u64>,
    /// For each block what is known at its start, if some way leads there.
    entering: Vec<Option<State>>,
    visits: Vec<u32>,
    is_pending: Vec<bool>,
    facts: Facts,
}

impl Walk<'_> {
    /// Walks until nothing new is learnt; none where that takes too long.
    fn run(&mut self) -> Option<()> {
        let mut left = self.program.ops.len().saturating_mul(MOST_ROUNDS);
        // In the order of the program, which is that of most ways; jumps back are for
        // the next round.
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

    /// Goes through a block.
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
                let (ways, fact) = state.branch(op, width, dst, src);
                let Ways { taken, not_taken } = ways;
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

    /// A way leads to a block with this state.
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
                let sends_on = block.is_loop_head && *visits > PATIENCE;
                known.join(state, sends_on.then_some(&self.ends))
            }
        };
        if is_new && let Some(pending) = self.is_pending.get_mut(at) {
            *pending = true;
        }
    }
}
