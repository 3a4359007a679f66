//! The index of a hash map: which slot holds which key.

use std::collections::VecDeque;
use std::hash::Hasher;

use rustc_hash::FxHasher;

use super::super::memory::Slab;
use super::list::List;

/// Chained buckets over the slots of a slab, which keeps the keys.
///
/// Slots are taken fresh while there are any, then the one that has been free for
/// the longest: a program's pointer to a deleted element shows as one for as long
/// as possible.
#[derive(Debug)]
pub(super) struct Index {
    /// For each bucket the first slot of its chain, plus 1.
    buckets: Vec<u32>,
    /// For each slot the next one of its chain, plus 1.
    chain: Vec<u32>,
    /// Slots in use, by insertion.
    order: List,
    /// Slots in use, by last use, for maps that evict.
    recency: Option<List>,
    free: VecDeque<u32>,
    fresh: u32,
    used: u32,
}

/// Where a key is, or would be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    bucket: usize,
    /// The slot before it in the chain, plus 1; 0 for the bucket itself.
    before: u32,
    /// The key's slot.
    pub(super) slot: Option<u32>,
}

impl Index {
    /// An index for `slots` slots, none in use.
    pub(super) fn new(slots: usize, evicts: bool) -> Self {
        Self {
            buckets: vec![0; slots.next_power_of_two()],
            chain: vec![0; slots],
            order: List::new(slots),
            recency: evicts.then(|| List::new(slots)),
            free: VecDeque::new(),
            fresh: 0,
            used: 0,
        }
    }

    /// How many slots are in use.
    pub(super) const fn used(&self) -> u32 {
        self.used
    }

    fn bucket(&self, key: &[u8]) -> usize {
        let mut hasher = FxHasher::default();
        hasher.write(key);
        // The buckets are a power of two; the high bits are the better ones.
        let hash = hasher.finish();
        usize::try_from(hash ^ hash >> 32).unwrap_or_default() & (self.buckets.len() - 1)
    }

    /// Looks for a key.
    pub(super) fn find(&self, slab: &Slab, key: &[u8]) -> Position {
        let bucket = self.bucket(key);
        let (mut before, mut at) = (0, self.buckets[bucket]);
        while let Some(slot) = at.checked_sub(1) {
            if slab.key_is(slot as usize, key) {
                break;
            }
            (before, at) = (at, self.chain[slot as usize]);
        }
        Position {
            bucket,
            before,
            slot: at.checked_sub(1),
        }
    }

    /// A slot for a new key; `None` when all are in use.
    fn take(&mut self) -> Option<u32> {
        if (self.fresh as usize) < self.chain.len() {
            self.fresh += 1;
            Some(self.fresh - 1)
        } else {
            self.free.pop_front()
        }
    }

    /// Makes the chain's link at a position lead to a slot (plus 1).
    fn set_link(&mut self, at: Position, to: u32) {
        match at.before.checked_sub(1) {
            Some(before) => self.chain[before as usize] = to,
            None => self.buckets[at.bucket] = to,
        }
    }

    /// Enters a key that is not there; its slot, or `None` when all are in use.
    pub(super) fn insert(&mut self, at: Position) -> Option<u32> {
        let slot = self.take()?;
        self.chain[slot as usize] = self.buckets[at.bucket];
        self.buckets[at.bucket] = slot + 1;
        self.order.push(slot);
        if let Some(recency) = &mut self.recency {
            recency.push(slot);
        }
        self.used += 1;
        Some(slot)
    }

    /// Gives a key that is there another slot, as the kernel does when a value is
    /// replaced; `None` when all are in use.
    pub(super) fn replace(&mut self, at: Position) -> Option<u32> {
        let old = at.slot?;
        let slot = self.take()?;
        self.chain[slot as usize] = self.chain[old as usize];
        self.set_link(at, slot + 1);
        self.order.replace(old, slot);
        if let Some(recency) = &mut self.recency {
            recency.remove(old);
            recency.push(slot);
        }
        self.free.push_back(old);
        Some(slot)
    }

    /// Removes a key that is there; its slot.
    pub(super) fn remove(&mut self, at: Position) -> Option<u32> {
        let slot = at.slot?;
        self.set_link(at, self.chain[slot as usize]);
        self.order.remove(slot);
        if let Some(recency) = &mut self.recency {
            recency.remove(slot);
        }
        self.free.push_back(slot);
        self.used -= 1;
        Some(slot)
    }

    /// Notes that a key was used.
    pub(super) fn touch(&mut self, slot: u32) {
        if let Some(recency) = &mut self.recency {
            recency.remove(slot);
            recency.push(slot);
        }
    }

    /// The slot that was not used for the longest, in maps that evict.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.recency.as_ref()?.first()
    }

    /// The slot after `slot` by insertion; the first one for `None`.
    pub(super) fn after(&self, slot: Option<u32>) -> Option<u32> {
        match slot {
            Some(slot) => self.order.after(slot),
            None => self.order.first(),
        }
    }
}
