//! The control flow among operations.

use super::lowered::Function;
use super::op::{Op, Target};

/// A run of operations that is entered at its first one only and left at its last.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// The first operation.
    pub start: Target,
    /// The one after the last.
    pub end: Target,
    /// A jump from here or further on leads to it.
    pub is_loop_head: bool,
}

/// The blocks of a program, in its order.
#[derive(Debug)]
pub(super) struct Flow {
    pub blocks: Vec<Block>,
    /// For each operation the block that it is in.
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

/// Blocks are no more than operations, which have 32-bit numbers.
fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Where an operation leads within its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Successors {
    /// The next operation may be executed after it.
    pub follows: bool,
    /// This one may.
    pub target: Option<Target>,
}

/// Where an operation leads; a call comes back.
pub(super) const fn next(op: Op) -> Successors {
    let (follows, target) = match op {
        Op::Jump { target } => (false, Some(target)),
        Op::JumpIf { target, .. } | Op::MayGoto { target } => (true, Some(target)),
        Op::Exit => (false, None),
        _ => (true, None),
    };
    Successors { follows, target }
}
