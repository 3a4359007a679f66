//! Resources that the running program acquired and has to release before it ends. The
//! verifier rejects programs that don't; this module tracks them at run time.

use smallvec::SmallVec;

use crate::spec::call::IteratorKind;

/// An active iterator.
#[derive(Debug)]
pub(in crate::vm) enum Iterator {
    /// `bpf_iter_num`: the last number returned, and the end (exclusive).
    Num { last: i32, end: i32 },
    /// `bpf_iter_bits`: the words, and the next bit to test.
    Bits { words: Vec<u64>, next: usize },
    /// Kernel objects of a kind: the remaining ones.
    Objects {
        kind: IteratorKind,
        left: std::vec::IntoIter<u64>,
    },
    /// `bpf_iter_scx_dsq`: the tasks of a dispatch queue.
    ScxDsq {
        /// The queue's number; `None` if there is no such queue.
        queue: Option<u64>,
        left: std::vec::IntoIter<u64>,
        /// What the next task that is moved gets.
        slice: Option<u64>,
        vtime: Option<u64>,
    },
}

impl Iterator {
    /// Its kind.
    pub(in crate::vm) const fn kind(&self) -> IteratorKind {
        match self {
            Self::Num { .. } => IteratorKind::Num,
            Self::Bits { .. } => IteratorKind::Bits,
            Self::Objects { kind, .. } => *kind,
            Self::ScxDsq { .. } => IteratorKind::ScxDsq,
        }
    }

    /// Whether it has no further elements.
    fn is_drained(&self) -> bool {
        match self {
            Self::Num { last, end } => last.wrapping_add(1) >= *end,
            Self::Bits { words, next } => {
                let rest = words.iter().enumerate().skip(next / 64);
                let bits = |at: usize, word: u64| match next.checked_sub(at * 64) {
                    Some(first @ 0..64) => word >> first,
                    Some(_) => 0,
                    None => word,
                };
                rest.into_iter().all(|(at, word)| bits(at, *word) == 0)
            }
            Self::Objects { left, .. } | Self::ScxDsq { left, .. } => left.as_slice().is_empty(),
        }
    }
}

/// Resources that one running program acquired and has not released.
#[derive(Debug, Default)]
pub struct AcquiredResources {
    /// Addresses of referenced objects, one entry per reference.
    pub(in crate::vm) references: SmallVec<[u64; 4]>,
    /// Active iterators, by their address on the stack.
    pub(in crate::vm) iterators: SmallVec<[(u64, Iterator); 2]>,
    /// Nesting depth of RCU read sections.
    pub(in crate::vm) rcu: u32,
    /// Nesting depth of disabled preemption.
    pub(in crate::vm) preempt: u32,
    /// Addresses of saved interrupt states, the last one last.
    pub(in crate::vm) interrupts: SmallVec<[u64; 1]>,
}

impl AcquiredResources {
    /// Whether everything was released.
    pub(in crate::vm) fn is_empty(&self) -> bool {
        self.references.is_empty()
            && self.iterators.is_empty()
            && self.interrupts.is_empty()
            && self.rcu == 0
            && self.preempt == 0
    }

    /// Records a reference.
    pub(in crate::vm) fn acquire(&mut self, object: u64) {
        self.references.push(object);
    }

    /// Removes a reference; returns whether there was one.
    pub(in crate::vm) fn release(&mut self, object: u64) -> bool {
        let at = self.references.iter().rposition(|one| *one == object);
        at.map(|at| self.references.remove(at)).is_some()
    }

    /// Adds an iterator at an address; returns false if there is one already.
    pub(in crate::vm) fn begin(&mut self, at: u64, iterator: Iterator) -> bool {
        let is_new = self.iterator(at).is_none();
        if is_new {
            self.iterators.push((at, iterator));
        }
        is_new
    }

    /// The iterator at an address.
    pub(in crate::vm) fn iterator(&mut self, at: u64) -> Option<&mut Iterator> {
        let found = self.iterators.iter_mut().rfind(|(place, _)| *place == at);
        found.map(|(_, iterator)| iterator)
    }

    /// The structure of the iterator at an address, and whether it has no further elements.
    pub(in crate::vm) fn iterator_state(&self, at: u64) -> Option<(&'static str, bool)> {
        let found = self.iterators.iter().rfind(|(place, _)| *place == at);
        found.map(|(_, iterator)| (iterator.kind().structure(), iterator.is_drained()))
    }

    /// Removes the iterator at an address.
    pub(in crate::vm) fn end(&mut self, at: u64) {
        self.iterators.retain(|(place, _)| *place != at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iterator_is_drained_after_its_last_element() {
        let num = |last| Iterator::Num { last, end: 3 }.is_drained();
        assert_eq!([-1, 1, 2].map(num), [false, false, true]);
        let bits = |next| {
            let words = vec![1 << 63, 1];
            Iterator::Bits { words, next }.is_drained()
        };
        assert_eq!(
            [0, 63, 64, 65, 128].map(bits),
            [false, false, false, true, true]
        );
    }
}
