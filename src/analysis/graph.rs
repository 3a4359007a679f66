//! The control-flow graph of numbered nodes.
//!
//! A *block* is the longest run of nodes that is entered only at its first and left only
//! at its last. Blocks are numbered in the order of their nodes, and partition them. The
//! second slot of a 64-bit immediate is a node that falls through and that nothing leads
//! to: it ends up inside the block of the first.

use std::ops::Range;

/// No node, no block.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// The successors of a node in its function: the next node, then the target of its jump.
/// [`NOWHERE`] stands for no successor, and for one outside of the graph.
pub(crate) type Edges = [u32; 2];

/// A basic block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// The first node.
    pub start: u32,
    /// The node after the last.
    pub end: u32,
    /// Whether an edge from this block or a later one leads here.
    pub is_loop_head: bool,
    /// The succeeding blocks, as [`Edges`]; only once if both are the same.
    successors: Edges,
}

impl Block {
    /// The nodes of the block, including second slots of immediates.
    pub(crate) fn nodes(&self) -> Range<u32> {
        self.start..self.end
    }

    /// The numbers of the succeeding blocks: the next block first.
    pub(crate) fn successors(&self) -> impl Iterator<Item = u32> + use<> {
        present(self.successors)
    }
}

/// The control-flow graph of a program.
#[derive(Debug, Clone, Default)]
pub(crate) struct Graph {
    /// By node.
    edges: Vec<Edges>,
    blocks: Vec<Block>,
    /// By node, the number of its block.
    block_of: Vec<u32>,
}

impl Graph {
    /// The graph of nodes with these edges. `entries` are the first nodes of functions.
    pub(crate) fn new(edges: Vec<Edges>, entries: impl IntoIterator<Item = u32>) -> Self {
        let mut starts = vec![false; edges.len()];
        let mut start = |at: u32| {
            if let Some(is_start) = starts.get_mut(at as usize) {
                *is_start = true;
            }
        };
        start(0);
        entries.into_iter().for_each(&mut start);
        for (&[next, jump], at) in edges.iter().zip(0u32..) {
            if jump != NOWHERE {
                start(jump);
                start(at + 1);
            } else if next == NOWHERE {
                start(at + 1);
            }
        }
        let mut blocks: Vec<Block> = Vec::new();
        let mut block_of = Vec::with_capacity(edges.len());
        for (is_start, at) in starts.iter().zip(0..) {
            if *is_start {
                blocks.push(Block {
                    start: at,
                    end: at,
                    is_loop_head: false,
                    successors: [NOWHERE; 2],
                });
            }
            if let Some(block) = blocks.last_mut() {
                block.end = at + 1;
            }
            block_of.push(index(blocks.len()) - 1);
        }
        let mut graph = Self {
            edges,
            blocks,
            block_of,
        };
        graph.link();
        graph
    }

    /// Adds the edges among blocks.
    fn link(&mut self) {
        for at in 0..self.blocks.len() {
            let last = self.blocks[at].end.wrapping_sub(1);
            let [next, jump] = self.edges_of(last).map(|to| self.block_of(to));
            let jump = if jump == next { NOWHERE } else { jump };
            self.blocks[at].successors = [next, jump];
            for to in present([next, jump]) {
                if to as usize <= at {
                    self.blocks[to as usize].is_loop_head = true;
                }
            }
        }
    }

    /// The blocks, in the order of their nodes.
    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The number of the block that a node is in, or [`NOWHERE`].
    pub(crate) fn block_of(&self, node: u32) -> u32 {
        let block = self.block_of.get(node as usize).copied();
        block.unwrap_or(NOWHERE)
    }

    /// The successors of a node: the next node first.
    pub(crate) fn successors(&self, node: u32) -> impl Iterator<Item = u32> + use<> {
        present(self.edges_of(node))
    }

    fn edges_of(&self, node: u32) -> Edges {
        let edges = self.edges.get(node as usize).copied();
        edges.unwrap_or([NOWHERE; 2])
    }

    /// The nodes that these entries reach, entry by entry, in the kernel's postorder: each
    /// node after its successors, except in loops (`compute_postorder`,
    /// `kernel/bpf/verifier.c`).
    ///
    /// A node that waits on the stack is not pushed again, so that the order is not that
    /// of a depth-first search:
    ///
    /// ```text
    /// 0: if r1 == 0 goto 2     0 pushes 1, then 2
    /// 1: r0 = 1                2 is on top: done first, though 1 leads to it as well
    /// 2: exit                  order: 2 1 0
    /// ```
    pub(crate) fn postorder(&self, entries: impl IntoIterator<Item = u32>) -> Postorder {
        let mut order = Postorder {
            nodes: Vec::with_capacity(self.edges.len()),
            parts: Vec::new(),
        };
        let mut seen = vec![Seen::No; self.blocks.len()];
        let mut stack = Vec::new();
        for entry in entries {
            let from = order.nodes.len();
            stack.push(self.block_of(entry));
            while let Some(&top) = stack.last() {
                let Some(state) = seen.get_mut(top as usize) else {
                    stack.pop();
                    continue;
                };
                let block = &self.blocks[top as usize];
                if *state == Seen::Expanded {
                    self.append_reversed(block, &mut order.nodes);
                    stack.pop();
                    continue;
                }
                *state = Seen::Expanded;
                for next in block.successors() {
                    let state = &mut seen[next as usize];
                    if *state == Seen::No {
                        *state = Seen::Waiting;
                        stack.push(next);
                    }
                }
            }
            order.parts.push(from..order.nodes.len());
        }
        order
    }

    /// The nodes of a block, last first, without second slots of immediates.
    fn append_reversed(&self, block: &Block, to: &mut Vec<u32>) {
        let from = to.len();
        let mut at = block.start;
        while at < block.end {
            to.push(at);
            let [next, _] = self.edges_of(at);
            at = next;
        }
        if let Some(nodes) = to.get_mut(from..) {
            nodes.reverse();
        }
    }
}

/// The progress of the postorder search in a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    No,
    Waiting,
    Expanded,
}

/// The nodes of a graph in the order of [`Graph::postorder`].
#[derive(Debug, Default)]
pub(crate) struct Postorder {
    nodes: Vec<u32>,
    /// The range of each entry in `nodes`.
    parts: Vec<Range<usize>>,
}

impl Postorder {
    /// All nodes that an entry reaches, entry by entry.
    pub(crate) fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// The positions of the nodes that this entry reaches and no earlier entry does.
    pub(crate) fn of(&self, entry: usize) -> Range<usize> {
        self.parts.get(entry).cloned().unwrap_or_default()
    }
}

/// The successors that exist.
fn present(edges: Edges) -> impl Iterator<Item = u32> {
    edges.into_iter().filter(|to| *to != NOWHERE)
}

/// A count of blocks: not above that of nodes, which have 32-bit numbers.
fn index(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(NOWHERE)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The edges of a program of these steps: whether it goes on, and a jump's distance.
    pub(in crate::analysis) fn edges(steps: &[(bool, Option<i8>)]) -> Vec<Edges> {
        let len = index(steps.len());
        let inside = |to: i64| u32::try_from(to).ok().filter(|to| *to < len);
        let edges = steps.iter().zip(0i64..).map(|(&(falls, jump), at)| {
            let next = falls.then(|| inside(at + 1)).flatten();
            let jump = jump.and_then(|off| inside(at + i64::from(off)));
            [next, jump].map(|to| to.unwrap_or(NOWHERE))
        });
        edges.collect()
    }

    /// Steps of random small graphs.
    pub(in crate::analysis) fn steps() -> impl Strategy<Value = Vec<(bool, Option<i8>)>> {
        let jump = proptest::option::weighted(0.4, -9i8..9);
        proptest::collection::vec((proptest::bool::weighted(0.8), jump), 1..32)
    }

    /// The kernel's search, node by node.
    fn kernel_postorder(edges: &[Edges], start: u32) -> Vec<u32> {
        let (mut waiting, mut expanded) = (vec![false; edges.len()], vec![false; edges.len()]);
        let (mut order, mut stack) = (Vec::new(), vec![start]);
        while let Some(&top) = stack.last() {
            if std::mem::replace(&mut expanded[top as usize], true) {
                order.push(top);
                stack.pop();
                continue;
            }
            for next in present(edges[top as usize]) {
                if !waiting[next as usize] && !expanded[next as usize] {
                    waiting[next as usize] = true;
                    stack.push(next);
                }
            }
        }
        order
    }

    #[test]
    fn blocks_end_at_branches_and_joins() {
        // 0 → 1; 1 → 2; 2 → 3 or 4; 3 → 1; 4 ends.
        let steps = [
            (true, None),
            (true, None),
            (true, Some(2)),
            (false, Some(-2)),
            (false, None),
        ];
        let graph = Graph::new(edges(&steps), [0]);
        let blocks: Vec<_> = graph.blocks().iter().map(|b| (b.start, b.end)).collect();
        assert_eq!(blocks, [(0, 1), (1, 3), (3, 4), (4, 5)]);
        let heads: Vec<_> = graph.blocks().iter().map(|b| b.is_loop_head).collect();
        assert_eq!(heads, [false, true, false, false]);
        let next = |block: usize| graph.blocks()[block].successors().collect::<Vec<_>>();
        assert_eq!([next(0), next(1), next(3)], [vec![1], vec![2, 3], vec![]]);
        assert_eq!((graph.block_of(2), graph.block_of(5)), (1, NOWHERE));
        let order = graph.postorder([0]);
        assert_eq!(order.nodes(), [4, 3, 2, 1, 0]);
        assert_eq!([order.of(0), order.of(1)], [0..5, 0..0]);
    }

    proptest! {
        #[test]
        fn blocks_are_what_their_edges_say(steps in steps()) {
            let edges = edges(&steps);
            let graph = Graph::new(edges.clone(), [0]);
            let mut end = 0;
            for (number, block) in (0u32..).zip(graph.blocks()) {
                prop_assert!(block.start == end && block.start < block.end);
                end = block.end;
                for node in block.nodes() {
                    prop_assert_eq!(graph.block_of(node), number);
                    let is_last = node + 1 == block.end;
                    prop_assert!(is_last || edges[node as usize] == [node + 1, NOWHERE]);
                    for to in present(edges[node as usize]) {
                        let to_block = graph.block_of(to);
                        let inner = !is_last && to == node + 1;
                        prop_assert!(inner || graph.blocks()[to_block as usize].start == to);
                        prop_assert!(inner || block.successors().any(|next| next == to_block));
                    }
                }
                prop_assert_eq!(
                    block.is_loop_head,
                    graph.blocks()[number as usize..].iter().any(|b| b.successors().any(|to| to == number))
                );
            }
            prop_assert_eq!(end as usize, edges.len());
        }

        #[test]
        fn the_postorder_is_the_kernels(steps in steps()) {
            let edges = edges(&steps);
            let graph = Graph::new(edges.clone(), [0]);
            let order = graph.postorder([0]);
            prop_assert_eq!(order.nodes(), kernel_postorder(&edges, 0));
        }
    }
}
