//! The index of a hash map: maps keys to slots. Readers take no lock.
//!
//! The slots of a slab, which stores the keys, are linked in chains, one per bucket. A bucket's
//! word has the first slot of its chain, plus 1, in the lower half. The upper half is a
//! *version*, which is incremented with every change of the chain. Writers hold the lock, and
//! make a change in this order:
//!
//! 1. Write key, value and link of the new slot, which is not in any chain.
//! 2. Change one link (another slot's, or the bucket's) to insert the new slot, or to skip a
//!    removed slot.
//! 3. Increment the bucket's version; if step 2 changes the bucket's link, in the same store.
//!
//! A reader loads the bucket's word, follows the chain, and loads the word again. If it is
//! unchanged, every slot that the reader saw was in the chain all the time, since slots are only
//! reused after their removal has incremented a version. So its result was true at some moment
//! in between. If the word changed, the reader starts again; after some attempts it takes the
//! lock.
//!
//! Memory ordering (Boehm, "Can seqlocks get along with programming language memory models?",
//! 2012): a reader that follows a link with an acquire load sees the key and value of the slot.
//! A reader that sees anything of a slot's next use, which is written after a release fence,
//! also sees the incremented version after an acquire fence.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use super::super::memory::{Slab, key_words, zeroed};
use super::list::List;
use super::lock::{Guard, Lock};
use super::lru_lists::LruLists;

/// Chained buckets over the slots of a slab.
///
/// Unused slots are taken first, then the one that has been free for the longest: so stale
/// pointers to deleted elements are detected for as long as possible.
#[derive(Debug)]
pub(super) struct Index {
    /// A word for each bucket; the number of buckets is a power of two.
    buckets: Box<[AtomicU64]>,
    /// For each slot, the next one of its chain, plus 1.
    chain: Box<[AtomicU32]>,
    /// How far to shift a hash right to get the bucket number.
    shift: u32,
    order: Lock<Order>,
}

/// State of writers.
#[derive(Debug)]
struct Order {
    /// Slots in use, by insertion.
    inserted: List,
    /// Slots in use, by last use, for maps that evict.
    used: Option<LruLists>,
    free: VecDeque<u32>,
    fresh: u32,
    /// The number of slots.
    slots: u32,
    len: u32,
}

/// A key for look-ups.
pub(super) trait Key {
    /// A 64-bit hash whose upper bits depend on the whole key.
    fn hash(&self) -> u64;
    /// Whether a slot has this key.
    fn is_at(&self, slab: &Slab, slot: u32) -> bool;
}

/// 2^64 divided by the golden ratio: multiplication by it spreads consecutive numbers evenly
/// over the upper bits (Knuth, TAOCP 3, 6.4).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A key of at most 8 bytes as a number, padded with zeros.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number(pub u64);

impl Key for Number {
    #[inline(always)]
    fn hash(&self) -> u64 {
        self.0.wrapping_mul(SPREAD)
    }

    #[inline(always)]
    fn is_at(&self, slab: &Slab, slot: u32) -> bool {
        slab.key_number(slot as usize) == Some(self.0)
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

/// Added to a bucket's word to increment its version.
const VERSION: u64 = 1 << 32;

/// How often a reader tries before it takes the lock.
const ATTEMPTS: usize = 16;

/// The position of a key, or of its insertion, while the index is locked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    bucket: usize,
    /// The previous slot in the chain, plus 1; 0 for the bucket itself.
    before: u32,
    /// The key's slot.
    pub(super) slot: Option<u32>,
}

impl Index {
    /// An index for `slots` free slots. `lists` is the number of LRU lists, for maps that evict.
    pub(super) fn new(slots: usize, lists: Option<usize>) -> Self {
        // With a single bucket, the shift would be by all 64 bits.
        let buckets = slots.next_power_of_two().max(2);
        Self {
            buckets: zeroed(buckets),
            chain: zeroed(slots),
            shift: u64::BITS - buckets.trailing_zeros(),
            order: Lock::new(Order {
                inserted: List::new(slots),
                used: lists.map(|lists| LruLists::new(slots, lists)),
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
        let bucket = self.buckets.get(self.bucket_of(key.hash()))?;
        for _ in 0..ATTEMPTS {
            if let Ok(found) = self.try_find(bucket, slab, key) {
                return found;
            }
        }
        self.lock().find(slab, key).slot
    }

    /// Tries to find a key; `Err` if the chain changed meanwhile.
    #[inline(always)]
    fn try_find<K: Key + ?Sized>(
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
            // As slots are reused, a reader could move from chain to chain forever.
            if bucket.load(Ordering::Relaxed) != word {
                return Err(Changed);
            }
        }
        unchanged().then_some(None).ok_or(Changed)
    }

    /// The link of a slot.
    fn next(&self, slot: u32) -> u32 {
        let next = self.chain.get(slot as usize);
        next.map_or(0, |next| next.load(Ordering::Acquire))
    }

    /// Sets the link of a slot.
    fn set_next(&self, slot: u32, to: u32) {
        if let Some(next) = self.chain.get(slot as usize) {
            next.store(to, Ordering::Release);
        }
    }

    /// Locks the index for changes.
    pub(super) fn lock(&self) -> Locked<'_> {
        Locked {
            index: self,
            order: self.order.lock(),
        }
    }
}

/// The chain changed while it was read.
struct Changed;

/// A locked index.
pub(super) struct Locked<'a> {
    index: &'a Index,
    order: Guard<'a, Order>,
}

impl Locked<'_> {
    /// The number of keys.
    pub(super) fn len(&self) -> u32 {
        self.order.len
    }

    /// Finds a key.
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

    /// The slots of a bucket, newest first; `None` past the last bucket.
    pub(super) fn bucket(&self, bucket: usize) -> Option<Vec<u32>> {
        self.index.buckets.get(bucket)?;
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
        let word = self.index.buckets.get(bucket);
        word.map_or(0, |word| link(word.load(Ordering::Relaxed)))
    }

    /// Sets the link at a position to a slot (plus 1).
    fn set_link(&self, at: Position, to: u32) {
        let Some(bucket) = self.index.buckets.get(at.bucket) else {
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

    /// Takes a free slot, to be filled and then inserted or given back; `None` if all are in
    /// use.
    pub(super) fn take(&mut self) -> Option<u32> {
        let order = &mut *self.order;
        let slot = if order.fresh < order.slots {
            order.fresh += 1;
            Some(order.fresh - 1)
        } else {
            order.free.pop_front()
        };
        // A reader that sees the slot's new contents also sees that it was removed.
        fence(Ordering::Release);
        slot
    }

    /// Gives back a slot that was taken but not inserted.
    pub(super) fn give_back(&mut self, slot: u32) {
        self.order.free.push_front(slot);
    }

    /// Inserts a slot with a new key, in one of the LRU lists.
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

    /// Moves an existing key to another slot, as the kernel does when it replaces a value.
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

    /// Removes a key and returns its slot.
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

    /// Records a use of a key.
    pub(super) fn touch(&mut self, slot: u32) {
        if let Some(used) = &mut self.order.used {
            used.touch(slot);
        }
    }

    /// The LRU lists, for maps that evict.
    pub(super) fn lru_lists(&self) -> Option<&LruLists> {
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
