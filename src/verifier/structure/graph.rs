//! Who follows whom inside of a function, and an order in which facts flow backwards.
//!
//! A call goes on to the next instruction here: the callee is another function's
//! business (`bpf_insn_successors`, `kernel/bpf/liveness.c`).

use std::ops::Range;

use crate::isa::{Code, Flow};
use crate::util::Pc;

/// Stands for "no instruction".
const NOWHERE: u32 = u32::MAX;

/// The control flow of a program whose jumps are known to stay in their functions.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// Next instruction and jump target of each slot.
    edges: Vec<[u32; 2]>,
    /// The instructions that can be reached, function by function, each after those
    /// that follow it, but for loops (`compute_postorder`).
    postorder: Vec<Pc>,
    /// The part of each function in it.
    functions: Vec<Range<usize>>,
}

impl Graph {
    /// The graph of `code`, whose functions begin at `starts`.
    pub(super) fn new(code: &Code, starts: impl Iterator<Item = Pc>) -> Self {
        let slots = (0..code.len()).map(Pc::from_index);
        let mut graph = Self {
            edges: slots.map(|pc| edges(code, pc)).collect(),
            postorder: Vec::with_capacity(code.len()),
            functions: Vec::new(),
        };
        let mut seen = vec![Seen::No; code.len()];
        for start in starts {
            let from = graph.postorder.len();
            graph.visit(start, &mut seen);
            graph.functions.push(from..graph.postorder.len());
        }
        graph
    }

    /// The instructions that can be next, the following one before the jump's target.
    pub(crate) fn successors(&self, pc: Pc) -> impl Iterator<Item = Pc> + use<> {
        let edges = self.edges.get(pc.index()).copied();
        let edges = edges.unwrap_or([NOWHERE; 2]);
        edges.into_iter().filter(|to| *to != NOWHERE).map(Pc)
    }

    /// The reachable instructions, function by function.
    pub(crate) fn postorder(&self) -> &[Pc] {
        &self.postorder
    }

    /// The reachable instructions of a function.
    pub(crate) fn postorder_of(&self, subprogram: usize) -> &[Pc] {
        self.functions
            .get(subprogram)
            .and_then(|range| self.postorder.get(range.clone()))
            .unwrap_or_default()
    }

    fn visit(&mut self, start: Pc, seen: &mut [Seen]) {
        let mut stack = vec![start];
        while let Some(&top) = stack.last() {
            let Some(state) = seen.get_mut(top.index()) else {
                stack.pop();
                continue;
            };
            if *state == Seen::Expanded {
                self.postorder.push(top);
                stack.pop();
                continue;
            }
            *state = Seen::Expanded;
            for next in self.successors(top) {
                if let Some(state) = seen.get_mut(next.index())
                    && *state == Seen::No
                {
                    *state = Seen::Waiting;
                    stack.push(next);
                }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    No,
    Waiting,
    Expanded,
}

fn edges(code: &Code, pc: Pc) -> [u32; 2] {
    let inside = |to: i64| {
        let to = u32::try_from(to).unwrap_or(NOWHERE);
        if Pc(to).index() < code.len() {
            to
        } else {
            NOWHERE
        }
    };
    let next = inside(i64::from(code.next(pc).0));
    match code.flow(pc) {
        None | Some(Flow::Exit) => [NOWHERE; 2],
        Some(Flow::Next) => [next, NOWHERE],
        Some(Flow::Goto(to)) => [NOWHERE, inside(to)],
        Some(Flow::Branch(to)) => [next, inside(to)],
    }
}
