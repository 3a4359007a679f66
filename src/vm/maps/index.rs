//! The index of a hash map: which slot holds which key. Readers take no lock.
//!
//! Slots of a slab, which keeps the keys, hang in chains; each chain begins at a bucket.
//! A bucket's word is the first slot of its chain, plus 1, and in the upper half a
//! *version*, which rises with every change of the chain. Those who change anything hold
//! the lock, and a change is, in this order:
//!
//! 1. The new slot, in which nobody looks for anything, gets its key, its value and its
//!    link.
//! 2. One link leads to it, or past a slot that goes: another slot's, or the bucket's.
//! 3. The bucket's version rises; where its link changes, that is the same store.
//!
//! A reader loads the word of the bucket, follows the chain, and loads the word again. If
//! it is the same, every slot that it has seen was in the chain all the time: slots are
//! used anew only after their removal made a version rise. What it found is what was
//! there at some moment in between. If not, it begins again, and after some attempts it
//! takes the lock.
//!
//! On the ordering (Boehm, "Can seqlocks get along with programming language memory
//! models?", 2012): whoever comes by a link with an acquiring load sees the key and the
//! value behind it. Whoever sees anything of a slot's next use, which is written behind a
//! releasing fence, sees after an acquiring fence that the version rose before.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::super::memory::{SharedBytes, Slab, key_words};
use super::list::List;
use super::lock::{Guard, Lock};
use super::uses::Uses;

/// Chained buckets over the slots of a slab.
///
/// Slots are taken fresh while there are any, then the one that has been free for
/// the longest: a program's pointer to a deleted element shows as one for as long
/// as possible.
#[derive(Debug)]
pub(super) struct Index {
    /// A word for each bucket; how many there are is a power of two.
    buckets: SharedBytes,
    /// For each slot the next one of its chain, plus 1.
    chain: SharedBytes,
    /// The bits of a hash that are not a bucket's number.
    shift: u32,
    order: Lock<Order>,
}

/// What only those need who change the index.
#[derive(Debug)]
struct Order {
    /// Slots in use, by insertion.
    inserted: List,
    /// Slots in use, by last use, for maps that evict.
    used: Option<Uses>,
    free: VecDeque<u32>,
    fresh: u32,
    /// How many there are.
    slots: u32,
    len: u32,
}

/// A key to look for.
pub(super) trait Key {
    /// A number of 64 bits whose upper ones depend on all of the key.
    fn hash(&self) -> u64;
    /// Whether a slot's key is this one.
    fn is_at(&self, slab: &Slab, slot: u32) -> bool;
}

/// 2^64 divided by the golden ratio: multiplied by it, numbers that follow one another
/// are spread evenly over the upper bits (Knuth, TAOCP 3, 6.4).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A key of at most 8 bytes as a number, with zeros above it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number(pub u64);

impl Key for Number {
    #[inline(always)]
    fn hash(&self) -> u64 {
        self.0.wrapping_mul(SPREAD)
    }

    #[inline(always)]
    fn is_at(&self, slab: &Slab, slot: u32) -> bool {
        let word = slab.keys().and_then(|keys| keys.word(slot as usize));
        word.is_some_and(|word| u64::from_le(word.load(Ordering::Relaxed)) == self.0)
    }
}

/// A key of any size.
impl Key for [u8] {
    fn hash(&self) -> u64 {
        key_words(self).fold(0, |hash: u64, word| {
            (hash.rotate_left(23) ^ word).wrapping_mul(SPREAD)
        })
    }

    fn is_at(&self, slab: &Slab, slot: u32) -> bool {
        slab.key_is(slot as usize, self)
    }
}

/// The link in a bucket's word.
#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
const fn link(word: u64) -> u32 {
    word as u32
}

/// What is added to a bucket's word to make its version rise.
const VERSION: u64 = 1 << 32;

/// How often a reader begins again before it takes the lock.
const ATTEMPTS: usize = 16;

/// Where a key is, or would be, while the index is locked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    bucket: usize,
    /// The slot before it in the chain, plus 1; 0 for the bucket itself.
    before: u32,
    /// The key's slot.
    pub(super) slot: Option<u32>,
}

impl Index {
    /// An index for `slots` slots, none in use; in a map that evicts with so many lists
    /// of what was used last.
    pub(super) fn new(slots: usize, lists: Option<usize>) -> Self {
        // With one bucket all bits of a hash would be shifted out.
        let buckets = slots.next_power_of_two().max(2);
        Self {
            buckets: SharedBytes::zeroed(8 * buckets),
            chain: SharedBytes::zeroed(8 * slots),
            shift: u64::BITS - buckets.trailing_zeros(),
            order: Lock::new(Order {
                inserted: List::new(slots),
                used: lists.map(|lists| Uses::new(slots, lists)),
                free: VecDeque::new(),
                fresh: 0,
                slots: u32::try_from(slots).unwrap_or(u32::MAX),
                len: 0,
            }),
        }
    }

    #[inline(always)]
    fn bucket_of(&self, hash: u64) -> usize {
        usize::try_from(hash >> self.shift).unwrap_or_default()
    }

    /// The slot of a key.
    #[inline]
    pub(super) fn find<K: Key + ?Sized>(&self, slab: &Slab, key: &K) -> Option<u32> {
        let bucket = self.buckets.word(self.bucket_of(key.hash()))?;
        for _ in 0..ATTEMPTS {
            if let Ok(found) = self.walk(bucket, slab, key) {
                return found;
            }
        }
        self.lock().find(slab, key).slot
    }

    /// One attempt to find a key; `Err` where the chain changed meanwhile.
    #[inline(always)]
    fn walk<K: Key + ?Sized>(
        &self,
        bucket: &AtomicU64,
        slab: &Slab,
        key: &K,
    ) -> Result<Option<u32>, Changed> {
        let word = bucket.load(Ordering::Acquire);
        let unchanged = || {
            fence(Ordering::Acquire);
            bucket.load(Ordering::Relaxed) == word
        };
        let mut at = link(word);
        while let Some(slot) = at.checked_sub(1) {
            if key.is_at(slab, slot) {
                return unchanged().then_some(Some(slot)).ok_or(Changed);
            }
            at = self.next(slot);
            // Who walks from chain to chain, as slots are used anew, might never end.
            if bucket.load(Ordering::Relaxed) != word {
                return Err(Changed);
            }
        }
        unchanged().then_some(None).ok_or(Changed)
    }

    /// The link of a slot.
    fn next(&self, slot: u32) -> u32 {
        let word = self.chain.word(slot as usize);
        word.map_or(0, |word| link(word.load(Ordering::Acquire)))
    }

    /// Makes a slot lead to another.
    fn set_next(&self, slot: u32, to: u32) {
        if let Some(word) = self.chain.word(slot as usize) {
            word.store(to.into(), Ordering::Release);
        }
    }

    /// Locks the index, to change it.
    pub(super) fn lock(&self) -> Locked<'_> {
        Locked {
            index: self,
            order: self.order.lock(),
        }
    }
}

/// The chain changed while it was read.
struct Changed;

/// An index that nobody else changes.
pub(super) struct Locked<'a> {
    index: &'a Index,
    order: Guard<'a, Order>,
}

impl Locked<'_> {
    /// How many keys there are.
    pub(super) fn len(&self) -> u32 {
        self.order.len
    }

    /// Looks for a key.
    pub(super) fn find<K: Key + ?Sized>(&self, slab: &Slab, key: &K) -> Position {
        let bucket = self.index.bucket_of(key.hash());
        let (mut before, mut at) = (0, self.first(bucket));
        while let Some(slot) = at.checked_sub(1) {
            if key.is_at(slab, slot) {
                break;
            }
            (before, at) = (at, self.index.next(slot));
        }
        Position {
            bucket,
            before,
            slot: at.checked_sub(1),
        }
    }

    /// The slots of a bucket, the newest first; `None` past the last bucket.
    pub(super) fn bucket(&self, bucket: usize) -> Option<Vec<u32>> {
        self.index.buckets.word(bucket)?;
        let mut slots = Vec::new();
        let mut at = self.first(bucket);
        while let Some(slot) = at.checked_sub(1) {
            slots.push(slot);
            at = self.index.next(slot);
        }
        Some(slots)
    }

    /// The first link of a bucket's chain.
    fn first(&self, bucket: usize) -> u32 {
        let word = self.index.buckets.word(bucket);
        word.map_or(0, |word| link(word.load(Ordering::Relaxed)))
    }

    /// Makes the chain's link at a position lead to a slot (plus 1).
    fn set_link(&self, at: Position, to: u32) {
        let Some(bucket) = self.index.buckets.word(at.bucket) else {
            return;
        };
        let old = bucket.load(Ordering::Relaxed);
        let first = match at.before.checked_sub(1) {
            Some(before) => {
                self.index.set_next(before, to);
                link(old)
            }
            None => to,
        };
        let version = (old & !u64::from(u32::MAX)).wrapping_add(VERSION);
        bucket.store(version | u64::from(first), Ordering::Release);
    }

    /// A slot in which nobody looks for anything, to be filled and then entered or given
    /// back; `None` when all are in use.
    pub(super) fn take(&mut self) -> Option<u32> {
        let order = &mut *self.order;
        let slot = if order.fresh < order.slots {
            order.fresh += 1;
            Some(order.fresh - 1)
        } else {
            order.free.pop_front()
        };
        // Whoever sees what is written to it now sees that it was removed.
        fence(Ordering::Release);
        slot
    }

    /// Gives a slot back that was taken and not entered.
    pub(super) fn give_back(&mut self, slot: u32) {
        self.order.free.push_front(slot);
    }

    /// Enters a slot with a key that is not there, in one of the lists of uses.
    pub(super) fn insert(&mut self, at: Position, slot: u32, list: u32) {
        let head = Position { before: 0, ..at };
        self.index.set_next(slot, self.first(at.bucket));
        self.set_link(head, slot + 1);
        self.order.inserted.push(slot);
        if let Some(used) = &mut self.order.used {
            used.enter(slot, list);
        }
        self.order.len += 1;
    }

    /// Gives a key that is there another slot, as the kernel does when a value is
    /// replaced.
    pub(super) fn replace(&mut self, at: Position, slot: u32, list: u32) {
        let Some(old) = at.slot else { return };
        self.index.set_next(slot, self.index.next(old));
        self.set_link(at, slot + 1);
        self.order.inserted.replace(old, slot);
        if let Some(used) = &mut self.order.used {
            used.leave(old);
            used.enter(slot, list);
        }
        self.order.free.push_back(old);
    }

    /// Removes a key that is there; its slot.
    pub(super) fn remove(&mut self, at: Position) -> Option<u32> {
        let slot = at.slot?;
        self.set_link(at, self.index.next(slot));
        self.order.inserted.remove(slot);
        if let Some(used) = &mut self.order.used {
            used.leave(slot);
        }
        self.order.free.push_back(slot);
        self.order.len -= 1;
        Some(slot)
    }

    /// Notes that a key was used.
    pub(super) fn touch(&mut self, slot: u32) {
        if let Some(used) = &mut self.order.used {
            used.touch(slot);
        }
    }

    /// What was used last, in maps that evict.
    pub(super) fn uses(&self) -> Option<&Uses> {
        self.order.used.as_ref()
    }

    /// The slot after `slot` by insertion; the first one for `None`.
    pub(super) fn after(&self, slot: Option<u32>) -> Option<u32> {
        match slot {
            Some(slot) => self.order.inserted.after(slot),
            None => self.order.inserted.first(),
        }
    }
}
