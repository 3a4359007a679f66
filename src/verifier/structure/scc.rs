//! Loops: the strongly connected components of the control flow (`compute_scc`,
//! `kernel/bpf/verifier.c`).
//!
//! Tarjan's search, with the low number of a component left behind on what was
//! searched (Pearce, "A Space-Efficient Algorithm for Finding Strongly Connected
//! Components", algorithm 3). A component gets a number if control can come back: it
//! has two instructions, or one that follows itself.

use super::graph::Graph;
use super::model::InsnInfo;
use crate::util::Pc;

/// The low number of what is done with: higher than any.
const DONE: u32 = u32::MAX;

/// What is known of an instruction during the search.
#[derive(Debug, Clone, Copy, Default)]
struct Numbers {
    /// When it was first seen, from 1; 0 if it was not.
    pre: u32,
    /// The earliest that can be reached from it and is not done with.
    low: u32,
}

/// Numbers the loops, from 1.
pub(super) fn number_loops(graph: &Graph, insns: &mut [InsnInfo]) {
    let mut numbers = vec![Numbers::default(); insns.len()];
    let at = |numbers: &[Numbers], pc: Pc| numbers.get(pc.index()).copied().unwrap_or_default();
    let (mut next_pre, mut next_scc) = (1, 1);
    let mut component = Vec::new();
    let mut path = Vec::new();
    for root in (0..insns.len()).map(Pc::from_index) {
        if at(&numbers, root).pre != 0 {
            continue;
        }
        path.push(root);
        while let Some(&pc) = path.last() {
            let mut own = at(&numbers, pc);
            if own.pre == 0 {
                own = Numbers {
                    pre: next_pre,
                    low: next_pre,
                };
                next_pre += 1;
                component.push(pc);
            }
            let mut deeper = None;
            for next in graph.successors(pc) {
                let Numbers { pre, low } = at(&numbers, next);
                // An edge to itself: its own number, which is not written yet.
                if next == pc {
                    continue;
                }
                if pre == 0 {
                    deeper = Some(next);
                    break;
                }
                own.low = own.low.min(low);
            }
            if let Some(slot) = numbers.get_mut(pc.index()) {
                *slot = own;
            }
            if let Some(next) = deeper {
                path.push(next);
                continue;
            }
            path.pop();
            if own.low < own.pre {
                continue;
            }
            let loops =
                component.last() != Some(&pc) || graph.successors(pc).any(|next| next == pc);
            while let Some(member) = component.pop() {
                if let Some(slot) = numbers.get_mut(member.index()) {
                    slot.low = DONE;
                }
                if loops && let Some(info) = insns.get_mut(member.index()) {
                    info.scc = next_scc;
                }
                if member == pc {
                    break;
                }
            }
            next_scc += u32::from(loops);
        }
    }
}
