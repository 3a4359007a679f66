//! What a program that runs has to give back before it ends. The verifier lets no program
//! pass that forgets any of it; here it is kept track of.

use smallvec::SmallVec;

/// An iterator under way.
#[derive(Debug)]
pub(super) enum Iterator {
    /// `bpf_iter_num`: the last number given and the one that is not given.
    Num { last: i32, end: i32 },
    /// `bpf_iter_bits`: the words, and the next bit to look at.
    Bits { words: Vec<u64>, next: usize },
    /// Kernel objects, by kind: what is left of them.
    Objects {
        kind: &'static str,
        left: std::vec::IntoIter<u64>,
    },
}

impl Iterator {
    /// What follows `bpf_iter_` in its functions' names.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Num { .. } => "num",
            Self::Bits { .. } => "bits",
            Self::Objects { kind, .. } => kind,
        }
    }
}

/// What one program that runs holds.
#[derive(Debug, Default)]
pub struct Held {
    /// Addresses of the objects it has references to, once for each reference.
    pub(super) references: SmallVec<[u64; 4]>,
    /// Its iterators, by the address of their place on the stack.
    pub(super) iterators: SmallVec<[(u64, Iterator); 2]>,
    /// How many RCU read sections it is in.
    pub(super) rcu: u32,
    /// How often it disabled preemption.
    pub(super) preempt: u32,
    /// Where it saved the interrupts' state, the last one last.
    pub(super) interrupts: SmallVec<[u64; 1]>,
}

impl Held {
    /// Whether it has to give nothing back.
    pub(super) fn is_empty(&self) -> bool {
        self.references.is_empty()
            && self.iterators.is_empty()
            && self.interrupts.is_empty()
            && self.rcu == 0
            && self.preempt == 0
    }

    /// Notes a reference.
    pub(super) fn acquire(&mut self, object: u64) {
        self.references.push(object);
    }

    /// Forgets a reference; whether there was one.
    pub(super) fn release(&mut self, object: u64) -> bool {
        let at = self.references.iter().rposition(|held| *held == object);
        at.map(|at| self.references.remove(at)).is_some()
    }

    /// Makes an iterator at a place; whether there was none.
    pub(super) fn begin(&mut self, at: u64, iterator: Iterator) -> bool {
        let is_new = self.iterator(at).is_none();
        if is_new {
            self.iterators.push((at, iterator));
        }
        is_new
    }

    /// The iterator at a place.
    pub(super) fn iterator(&mut self, at: u64) -> Option<&mut Iterator> {
        let found = self.iterators.iter_mut().rfind(|(place, _)| *place == at);
        found.map(|(_, iterator)| iterator)
    }

    /// Ends the iterator at a place.
    pub(super) fn end(&mut self, at: u64) {
        self.iterators.retain(|(place, _)| *place != at);
    }
}
