//! Loops: the strongly connected components of a graph (`compute_scc`,
//! `kernel/bpf/verifier.c`).
//!
//! Two blocks are in the same component if each can be reached from the other. A
//! component is a *loop* if control can come back in it: it has two blocks, or one that
//! follows itself. Loops are numbered from 1 as the search completes them.
//!
//! Tarjan's search, with the low number of a component left behind on what was
//! searched (Pearce, "A Space-Efficient Algorithm for Finding Strongly Connected
//! Components", algorithm 3). The kernel searches instructions. Blocks give the same
//! numbers: instructions of one block are in one component, and are searched in a row.

use super::graph::{Graph, NOWHERE};

/// The low number of what is done with: higher than any.
const DONE: u32 = u32::MAX;

/// What is known of a block during the search.
#[derive(Debug, Clone, Copy, Default)]
struct Numbers {
    /// When it was first seen, from 1; 0 if it was not.
    pre: u32,
    /// The earliest that can be reached from it and is not done with.
    low: u32,
}

/// For each block the number of the loop that it belongs to, from 1; 0 for none.
pub(crate) fn loop_numbers(graph: &Graph) -> Vec<u32> {
    let blocks = graph.blocks();
    let mut loops = vec![0; blocks.len()];
    let mut numbers = vec![Numbers::default(); blocks.len()];
    let (mut next_pre, mut next_loop) = (1, 1);
    let mut component = Vec::new();
    let mut path = Vec::new();
    for root in 0..blocks.len() {
        if numbers[root].pre != 0 {
            continue;
        }
        path.push(root);
        while let Some(&at) = path.last() {
            let mut own = numbers[at];
            if own.pre == 0 {
                own = Numbers {
                    pre: next_pre,
                    low: next_pre,
                };
                next_pre += 1;
                component.push(at);
            }
            let mut deeper = NOWHERE as usize;
            let mut follows_itself = false;
            for next in blocks[at].successors() {
                let next = next as usize;
                // An edge to itself: its own number, which is not written yet.
                if next == at {
                    follows_itself = true;
                    continue;
                }
                let Numbers { pre, low } = numbers[next];
                if pre == 0 {
                    deeper = next;
                    break;
                }
                own.low = own.low.min(low);
            }
            numbers[at] = own;
            if deeper != NOWHERE as usize {
                path.push(deeper);
                continue;
            }
            path.pop();
            if own.low < own.pre {
                continue;
            }
            let is_loop = component.last() != Some(&at) || follows_itself;
            while let Some(member) = component.pop() {
                numbers[member].low = DONE;
                if is_loop {
                    loops[member] = next_loop;
                }
                if member == at {
                    break;
                }
            }
            next_loop += u32::from(is_loop);
        }
    }
    loops
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::graph::tests::{edges, steps};
    use super::*;

    proptest! {
        /// Same number: each reaches the other. None: it does not reach itself.
        #[test]
        fn a_loop_is_what_can_come_back(steps in steps()) {
            let graph = Graph::new(edges(&steps), [0]);
            let count = graph.blocks().len();
            let reach = |from: usize| {
                let (mut seen, mut open) = (vec![false; count], vec![from]);
                while let Some(at) = open.pop() {
                    for to in graph.blocks()[at].successors() {
                        if !std::mem::replace(&mut seen[to as usize], true) {
                            open.push(to as usize);
                        }
                    }
                }
                seen
            };
            let reaches: Vec<Vec<bool>> = (0..count).map(reach).collect();
            let loops = loop_numbers(&graph);
            for a in 0..count {
                prop_assert_eq!(loops[a] != 0, reaches[a][a]);
                for b in 0..count {
                    let together = reaches[a][b] && reaches[b][a];
                    prop_assert_eq!(loops[a] == loops[b] && loops[a] != 0, together);
                }
            }
        }
    }

    /// The inner loop is complete first, and so is what follows.
    #[test]
    fn loops_are_numbered_as_they_are_completed() {
        // 0: goes on; 1: loops to itself; 2: jumps to 1 or goes on; 3: loops to itself.
        let steps = [(true, None), (true, Some(0)), (true, None), (true, Some(0))];
        let graph = Graph::new(edges(&steps), [0]);
        assert_eq!(loop_numbers(&graph), [0, 2, 0, 1]);
    }
}
