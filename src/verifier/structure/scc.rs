//! Loops: the strongly connected components of the control flow (`compute_scc`,
//! `kernel/bpf/verifier.c`).
//!
//! Tarjan's algorithm; `low` is reused as the component's mark after it is complete
//! (Pearce, "A Space-Efficient Algorithm for Finding Strongly Connected Components",
//! algorithm 3). A component gets a number if it is a loop: it has at least two
//! instructions, or one that follows itself.

use super::graph::Graph;
use super::model::InsnInfo;
use crate::util::Pc;

/// The `low` of completed instructions: greater than any other.
const DONE: u32 = u32::MAX;

/// The numbers of an instruction during the search.
#[derive(Debug, Clone, Copy, Default)]
struct Numbers {
    /// The order of discovery, from 1; 0 if not yet discovered.
    pre: u32,
    /// The smallest `pre` reachable from it that is not completed.
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
                // An edge to itself: it has its own number, which is not yet stored.
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
