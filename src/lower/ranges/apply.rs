//! Applies the results of the range analysis to a program.

use super::analyze;
use super::facts::{Fact, Index};
use crate::isa::Reg;
use crate::lower::lowered::Lowered;
use crate::lower::op::Op;
use crate::lower::prune::keep;

/// Analyzes a program and applies the results: notes; keys that are on the stack; look-ups
/// that always succeed, and their results; branches with a constant outcome. Then removes
/// dead code.
pub(in crate::lower) fn ranges(program: &mut Lowered) {
    let Some(facts) = analyze(program) else {
        return;
    };
    for (op, (fact, at)) in program.ops.iter_mut().zip(facts.of.iter().zip(0..)) {
        *op = applied(*op, fact, at);
    }
    program.notes = facts.of.iter().map(|fact| fact.notes).collect();
    keep(program, &facts.is_reached);
}

/// The operation at `at`, rewritten by its facts.
fn applied(op: Op, fact: &Fact, at: u32) -> Op {
    match op {
        Op::JumpIf { target, .. } => match fact.goes {
            Some(true) => Op::Jump { target },
            Some(false) => Op::Jump { target: at + 1 },
            None => op,
        },
        Op::Lookup { map, key, .. } => match fact.index {
            Some(Index::Constant(value)) => Op::LoadImm {
                dst: Reg::R0,
                value,
            },
            index => Op::Lookup {
                map,
                key: fact.key.unwrap_or(key),
                is_there: index.is_some(),
            },
        },
        _ => op,
    }
}
