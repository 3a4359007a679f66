//! The order in which the equations of stack liveness are solved.
//!
//! The kernel sweeps over a function in postorder until nothing changes. Here, a sweep
//! solves only the equations of which an input has changed: the instruction's own masks, or
//! those of a successor. The others would give what they gave before, so the sweeps have
//! the same results in the same order, and there are as many of them.

use std::ops::Range;

use crate::util::Pc;
use crate::verifier::structure::Structure;

/// The instructions of a program in postorder, and where each one's predecessors are.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The position of each instruction; 0 for those that no path reaches.
    positions: Vec<u32>,
    /// By instruction, the end of its range in `predecessors`; it begins where that of the
    /// instruction before it ends.
    ends: Vec<u32>,
    /// Positions.
    predecessors: Vec<u32>,
}

impl Order {
    pub(super) fn new(structure: &Structure) -> Self {
        let (graph, nodes) = (&structure.graph, structure.postorder.nodes());
        let len = structure.code.len();
        let (mut positions, mut ends) = (vec![0; len], vec![0; len]);
        let mut edges = 0;
        for (&node, at) in nodes.iter().zip(0u32..) {
            positions[node as usize] = at;
            for next in graph.successors(node) {
                ends[next as usize] += 1;
                edges += 1;
            }
        }
        // First where each range begins; filling it moves that to its end.
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        let mut predecessors = vec![0; edges];
        for (&node, at) in nodes.iter().zip(0u32..) {
            for next in graph.successors(node) {
                let end = &mut ends[next as usize];
                predecessors[*end as usize] = at;
                *end += 1;
            }
        }
        Self {
            positions,
            ends,
            predecessors,
        }
    }

    /// The position of an instruction.
    pub(super) fn position(&self, pc: Pc) -> usize {
        self.positions.get(pc.index()).map_or(0, |at| *at as usize)
    }

    /// The positions of the instructions that lead to this one.
    pub(super) fn predecessors(&self, pc: Pc) -> impl Iterator<Item = usize> {
        let end = |at: usize| self.ends.get(at).map_or(0, |end| *end as usize);
        let start = pc.index().checked_sub(1).map_or(0, end);
        let positions = self.predecessors.get(start..end(pc.index()));
        positions.unwrap_or_default().iter().map(|at| *at as usize)
    }
}

/// A set of positions.
#[derive(Debug, Default)]
pub(super) struct Positions {
    words: Vec<u64>,
}

impl Positions {
    pub(super) fn insert(&mut self, at: usize) {
        let (word, bit) = (at / 64, at % 64);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << bit;
    }

    /// Removes the first position in this range.
    pub(super) fn take_first(&mut self, range: Range<usize>) -> Option<usize> {
        let mut from = range.start;
        while from < range.end {
            let word = self.words.get_mut(from / 64)?;
            let bits = *word & u64::MAX << (from % 64);
            if bits != 0 {
                let at = from / 64 * 64 + bits.trailing_zeros() as usize;
                if at >= range.end {
                    break;
                }
                *word &= !(1 << (at % 64));
                return Some(at);
            }
            from = (from / 64 + 1) * 64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_taken_in_order() {
        let mut set = Positions::default();
        for at in [200, 3, 63, 64] {
            set.insert(at);
        }
        assert_eq!(set.take_first(0..64), Some(3));
        assert_eq!(set.take_first(4..64), Some(63));
        assert_eq!(set.take_first(0..64), None);
        assert_eq!(set.take_first(0..200), Some(64));
        assert_eq!(set.take_first(65..1000), Some(200));
        assert_eq!(set.take_first(0..1000), None);
    }
}
