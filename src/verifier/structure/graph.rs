//! The control-flow graph inside functions, and its postorder.
//!
//! A call is followed by the next instruction; the callee is not entered
//! (`bpf_insn_successors`, `kernel/bpf/liveness.c`).
//!
//! A tail call and an `ABS` or `IND` packet load may also return from the function: they
//! have an additional edge to its exit. Linux added this after 6.18. Without it, Linux 6.18
//! considers a slot of the caller's stack always overwritten if the code after a tail call
//! overwrites it.

use std::ops::Range;

use super::functions::SubprogramInfo;
use crate::isa::{CallTarget, Code, Flow, Insn};
use crate::spec::helpers::id;
use crate::util::Pc;

/// Stands for "no instruction".
const NOWHERE: u32 = u32::MAX;

/// The control-flow graph of a program whose jumps stay in their functions.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// Next instruction and jump target of each slot.
    edges: Vec<[u32; 2]>,
    /// The reachable instructions, function by function, each after its successors except
    /// in loops (`compute_postorder`).
    postorder: Vec<Pc>,
    /// The range of each function in `postorder`.
    functions: Vec<Range<usize>>,
}

impl Graph {
    /// Builds the graph of `code` with these functions.
    pub(super) fn new(code: &Code, subprograms: &[SubprogramInfo]) -> Self {
        let slots = (0..code.len()).map(Pc::from_index);
        let mut graph = Self {
            edges: slots.map(|pc| edges(code, pc)).collect(),
            postorder: Vec::with_capacity(code.len()),
            functions: Vec::new(),
        };
        for sub in subprograms.iter().skip(1) {
            graph.add_early_exits(code, sub);
        }
        let mut seen = vec![Seen::No; code.len()];
        for sub in subprograms {
            let from = graph.postorder.len();
            graph.visit(sub.start, &mut seen);
            graph.functions.push(from..graph.postorder.len());
        }
        graph
    }

    /// The possible successors, the next instruction before the jump's target.
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

    /// Adds an edge to the exit from each instruction that may return early from a
    /// subprogram.
    fn add_early_exits(&mut self, code: &Code, sub: &SubprogramInfo) {
        if !sub.has_tail_call && !sub.has_ld_abs {
            return;
        }
        let slots = || sub.range().map(Pc::from_index);
        let exit = |pc: &Pc| code.insn(*pc) == Some(Insn::Exit);
        let Some(exit) = slots().rev().find(exit) else {
            return;
        };
        for pc in slots() {
            let leaves = matches!(
                code.insn(pc),
                Some(Insn::LoadPacket { .. } | Insn::Call(CallTarget::Helper(id::tail_call)))
            );
            if leaves && let Some([_, jump]) = self.edges.get_mut(pc.index()) {
                *jump = exit.0;
            }
        }
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
