//! The control flow among operations.

use super::lowered::Lowered;
use super::op::Op;
use crate::analysis::{Edges, Graph, NOWHERE, Problem, Solver};

/// The edges of the operation at `at` within its function; a call is followed by the next
/// operation.
pub(super) const fn edges(op: Op, at: u32) -> Edges {
    match op {
        Op::Jump { target } => [NOWHERE, target],
        Op::JumpIf { target, .. } | Op::MayGoto { target } => [at + 1, target],
        Op::Throw { .. } | Op::Exit => [NOWHERE; 2],
        _ => [at + 1, NOWHERE],
    }
}

/// The graph of a program's operations.
pub(super) fn graph(program: &Lowered) -> Graph {
    let ops = program.ops.iter().zip(0..);
    let edges = ops.map(|(op, at)| edges(*op, at)).collect();
    Graph::new(edges, program.functions.iter().map(|it| it.entry))
}

/// Solves a problem forwards over a program, from this state at the start of each of its
/// functions.
///
/// # Errors
/// The problem's.
pub(super) fn solve<P: Problem>(
    program: &Lowered,
    problem: &mut P,
    entry: &P::State,
) -> Result<(), P::Stop> {
    let graph = graph(program);
    let mut solver = Solver::forwards(&graph);
    for function in &program.functions {
        solver.arrive(problem, function.entry, entry);
    }
    solver.run(problem)
}
