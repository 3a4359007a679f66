//! The references that a state holds (`struct bpf_reference_state`).
//!
//! ```c
//! for (int i = 0; i < 1000000; i++)
//!     bpf_ringbuf_reserve(&records, 8, 0);
//! ```
//!
//! Such a loop ends at the limit of a million instructions, with tens of thousands of references in
//! each of thousands of checkpoints. A list shares its beginning with the list that it comes from, so
//! each costs one reference.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::reg::MapRef;
use crate::util::Pc;

/// A reference that was acquired and must be released (`struct bpf_reference_state`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reference {
    /// The id that pointers to the object carry in `ref_id`.
    pub id: u32,
    /// The call that acquired it.
    pub pc: Pc,
    /// What was acquired.
    pub kind: ReferenceKind,
}

impl Reference {
    /// The lock that it stands for.
    pub(crate) const fn lock(&self) -> Option<Lock> {
        match self.kind {
            ReferenceKind::Lock(lock) => Some(lock),
            ReferenceKind::Object | ReferenceKind::Irq => None,
        }
    }
}

/// What a reference stands for (`enum ref_state_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReferenceKind {
    /// An object, which must be released.
    Object,
    /// A lock that is held. The reference's id is that of the pointer to the map value or
    /// object with the lock.
    Lock(Lock),
    /// A saved interrupt state, which must be restored.
    Irq,
}

/// A lock that is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lock {
    pub kind: LockKind,
    /// Where it is. (All objects that the program allocates have types of one BTF.)
    pub owner: LockOwner,
}

/// The kind of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LockKind {
    /// `bpf_spin_lock`.
    Spin,
    /// `bpf_res_spin_lock`.
    Resilient,
    /// `bpf_res_spin_lock`, taken with interrupts disabled.
    ResilientIrq,
}

/// What has a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LockOwner {
    /// A value of this map.
    Map(MapRef),
    /// An object that the program allocated.
    Object,
}

/// References in the order in which they were acquired.
#[derive(Clone, Default)]
pub(crate) struct References(Option<Arc<Node>>);

/// The reference acquired last, and those before.
struct Node {
    reference: Reference,
    before: References,
    len: usize,
    /// How many are locks (`active_locks`).
    locks: usize,
}

impl References {
    /// The number of references.
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |node| node.len)
    }

    /// Whether there are none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// All, the one acquired last first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &Reference> {
        let nodes = std::iter::successors(self.0.as_deref(), |node| node.before.0.as_deref());
        nodes.map(|node| &node.reference)
    }

    /// All, in the order in which they were acquired.
    pub(crate) fn oldest_first(&self) -> impl Iterator<Item = &Reference> + Clone {
        let all: SmallVec<[&Reference; 8]> = self.newest_first().collect();
        all.into_iter().rev()
    }

    /// The lock that was taken last of those that are held.
    pub(crate) fn newest_lock(&self) -> Option<&Reference> {
        // Each call asks, and seldom is any held.
        if self.locks() == 0 {
            return None;
        }
        self.newest_first().find(|held| held.lock().is_some())
    }

    fn locks(&self) -> usize {
        self.0.as_ref().map_or(0, |node| node.locks)
    }

    /// Adds a reference.
    pub(crate) fn push(&mut self, reference: Reference) {
        let (len, locks) = (self.len() + 1, self.locks());
        let before = std::mem::take(self);
        self.0 = Some(Arc::new(Node {
            reference,
            before,
            len,
            locks: locks + usize::from(reference.lock().is_some()),
        }));
    }

    /// Removes the one of which `is_it` is true, the newest if there are more; returns whether there
    /// was one.
    pub(crate) fn remove(&mut self, is_it: impl Fn(&Reference) -> bool) -> bool {
        let Some(newer) = self.newest_first().position(is_it) else {
            return false;
        };
        let kept: SmallVec<[Reference; 8]> = self.newest_first().take(newer).copied().collect();
        for _ in 0..=newer {
            let node = self.0.take();
            *self = node.map_or_else(Self::default, |node| node.before.clone());
        }
        for reference in kept.into_iter().rev() {
            self.push(reference);
        }
        true
    }
}

/// Without recursion: a list may be long.
impl Drop for References {
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            next = node.before.0.take();
        }
    }
}

impl fmt::Debug for References {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.oldest_first()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(id: u32) -> Reference {
        Reference {
            id,
            pc: Pc(id),
            kind: ReferenceKind::Object,
        }
    }

    fn list(ids: impl IntoIterator<Item = u32>) -> References {
        let mut list = References::default();
        for id in ids {
            list.push(reference(id));
        }
        list
    }

    fn ids(list: &References) -> Vec<u32> {
        list.oldest_first().map(|it| it.id).collect()
    }

    #[test]
    fn a_copy_keeps_what_the_other_loses() {
        let mut one = list(1..=5);
        let other = one.clone();
        assert!(one.remove(|it| it.id == 3));
        one.push(reference(6));
        assert_eq!((ids(&one), one.len()), (vec![1, 2, 4, 5, 6], 5));
        assert_eq!((ids(&other), other.len()), (vec![1, 2, 3, 4, 5], 5));
        assert!(one.remove(|it| it.id % 2 == 0));
        assert_eq!(ids(&one), [1, 2, 4, 5], "the newest");
        assert!(!one.remove(|it| it.id == 3));
        while one.remove(|it| it.id < 6) {}
        assert!(one.is_empty());
        assert_eq!(other.newest_first().next(), Some(&reference(5)));
    }

    #[test]
    fn the_newest_lock_is_found() {
        let lock = |id| Reference {
            kind: ReferenceKind::Lock(Lock {
                kind: LockKind::Spin,
                owner: LockOwner::Object,
            }),
            ..reference(id)
        };
        let mut held = list([1]);
        assert_eq!(held.newest_lock(), None);
        for next in [lock(2), lock(3), reference(4)] {
            held.push(next);
        }
        let newest = |held: &References| held.newest_lock().map(|it| it.id);
        assert_eq!(newest(&held), Some(3));
        assert!(held.remove(|it| it.id == 3));
        assert_eq!(newest(&held), Some(2));
        assert!(held.remove(|it| it.id == 2));
        assert_eq!(newest(&held), None);
    }

    #[test]
    fn a_long_list_ends_without_recursion() {
        let long = list(0..1_000_000);
        let copy = long.clone();
        drop(long);
        assert_eq!(copy.len(), 1_000_000);
    }
}
