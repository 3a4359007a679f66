//! The control flow among operations.

use super::lowered::Function;
use super::op::{Op, Target};

/// A basic block: entered only at its first operation and left only after its last.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// The first operation.
    pub start: Target,
    /// The operation after the last.
    pub end: Target,
    /// Some jump from this block or a later one goes to it.
    pub is_loop_head: bool,
}

/// The blocks of a program, in its order.
#[derive(Debug)]
pub(super) struct Flow {
    pub blocks: Vec<Block>,
    /// For each operation its block.
    block_of: Vec<u32>,
}

impl Flow {
    pub fn of(ops: &[Op], functions: &[Function]) -> Self {
        let mut leads = vec![false; ops.len() + 1];
        let mut heads = vec![false; ops.len()];
        let mut lead = |at: Target| {
            if let Some(leads) = leads.get_mut(at as usize) {
                *leads = true;
            }
        };
        for function in functions {
            lead(function.entry);
        }
        for (op, at) in ops.iter().zip(0..) {
            let next = next(*op);
            if let Some(target) = next.target {
                lead(target);
                lead(at + 1);
                if target <= at
                    && let Some(head) = heads.get_mut(target as usize)
                {
                    *head = true;
                }
            } else if !next.follows {
                lead(at + 1);
            }
        }
        let mut flow = Self {
            blocks: Vec::new(),
            block_of: Vec::with_capacity(ops.len()),
        };
        for ((leads, head), at) in leads.iter().zip(heads).zip(0..) {
            if *leads || at == 0 {
                flow.blocks.push(Block {
                    start: at,
                    end: at,
                    is_loop_head: head,
                });
            }
            if let Some(block) = flow.blocks.last_mut() {
                block.end = at + 1;
            }
            flow.block_of.push(number(flow.blocks.len()) - 1);
        }
        flow
    }

    /// The block that an operation is in.
    pub fn block_of(&self, at: Target) -> Option<usize> {
        self.block_of.get(at as usize).map(|block| *block as usize)
    }
}

/// There are at most as many blocks as operations, which have 32-bit numbers.
fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The successors of an operation within its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Successors {
    /// The next operation is a successor.
    pub follows: bool,
    /// The jump target, if it is a successor.
    pub target: Option<Target>,
}

/// The successors of an operation; a call returns.
pub(super) const fn next(op: Op) -> Successors {
    let (follows, target) = match op {
        Op::Jump { target } => (false, Some(target)),
        Op::JumpIf { target, .. } | Op::MayGoto { target } => (true, Some(target)),
        Op::Exit => (false, None),
        _ => (true, None),
    };
    Successors { follows, target }
}

/// A forward dataflow analysis.
pub(super) trait Domain {
    /// The facts between two operations.
    type State: Clone;

    /// The state at a function's entry.
    fn at_entry(&self) -> Self::State;

    /// Joins the state of another incoming edge; returns whether fewer facts are left.
    fn join(&self, known: &mut Self::State, other: &Self::State) -> bool;

    /// The transfer function: turns the state before an operation into the state after it.
    /// The last call for an operation sees the fixed point.
    fn step(&mut self, state: &mut Self::State, at: Target, op: Op);
}

/// Iterates to a fixed point.
pub(super) fn solve<D: Domain>(domain: &mut D, ops: &[Op], functions: &[Function]) {
    let flow = Flow::of(ops, functions);
    let mut entering: Vec<Option<D::State>> = vec![None; flow.blocks.len()];
    let mut is_pending = vec![false; flow.blocks.len()];
    for function in functions {
        if let Some(block) = flow.block_of(function.entry) {
            entering[block] = Some(domain.at_entry());
            is_pending[block] = true;
        }
    }
    while is_pending.contains(&true) {
        for (at, block) in flow.blocks.iter().enumerate() {
            if !std::mem::take(&mut is_pending[at]) {
                continue;
            }
            let Some(mut state) = entering[at].clone() else {
                continue;
            };
            let mut next_ones = Successors::default();
            for at in block.start..block.end {
                if let Some(&op) = ops.get(at as usize) {
                    domain.step(&mut state, at, op);
                    next_ones = next(op);
                }
            }
            let following = next_ones.follows.then_some(block.end);
            for to in following.into_iter().chain(next_ones.target) {
                let Some(to) = flow.block_of(to) else {
                    continue;
                };
                is_pending[to] |= match &mut entering[to] {
                    Some(known) => domain.join(known, &state),
                    none => {
                        *none = Some(state.clone());
                        true
                    }
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::Passes;
    use crate::lower::tests::lowered;

    #[test]
    fn blocks_end_where_ways_part_and_meet() {
        let text = "r0 = 3
            again: r0 += 2
            if r0 > 9 goto out
            goto again
            out: exit";
        let program = lowered(text, &[], Passes::empty()).unwrap();
        let flow = Flow::of(program.ops(), program.functions());
        let blocks: Vec<_> = flow.blocks.iter().map(|b| (b.start, b.end)).collect();
        assert_eq!(blocks, [(0, 1), (1, 3), (3, 4), (4, 5)]);
        let heads: Vec<_> = flow.blocks.iter().map(|b| b.is_loop_head).collect();
        assert_eq!(heads, [false, true, false, false]);
        assert_eq!(flow.block_of(2), Some(1));
        assert_eq!(flow.block_of(5), None);
    }
}
