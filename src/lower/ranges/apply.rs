//! What becomes of a program by what is known of its operations.

use super::facts::{Fact, Index};
use super::walk;
use crate::isa::Reg;
use crate::lower::lowered::Lowered;
use crate::lower::op::Op;
use crate::lower::prune::keep;

/// Applies what a walk finds: notes; keys that are on the stack; look-ups that always
/// find something, and what they find; branches that always go one way. Then what is
/// dead is left out.
pub(in crate::lower) fn ranges(program: &mut Lowered) {
    let Some(facts) = walk(program) else {
        return;
    };
    for (op, (fact, at)) in program.ops.iter_mut().zip(facts.of.iter().zip(0..)) {
        *op = applied(*op, fact, at);
    }
    program.notes = facts.of.iter().map(|fact| fact.notes).collect();
    keep(program, &facts.is_reached);
}

/// The operation at `at`, of which this is known.
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
