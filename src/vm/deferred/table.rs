//! What waits to be called back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::super::handle::MapHandle;
use super::clock::TimerClock;

/// What waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeferredKind {
    /// A `struct bpf_timer`, by this clock.
    Timer(TimerClock),
    /// A `struct bpf_wq`.
    Work,
    /// A `struct bpf_task_work`.
    TaskWork,
}

/// Where the struct is that a program keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::vm) struct Slot {
    /// The map.
    pub map: MapHandle,
    /// The element in whose value it is.
    pub element: usize,
    /// Its address.
    pub address: u64,
}

/// When something is to be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::vm) enum When {
    /// As soon as possible.
    Soon,
    /// When the timer's clock shows so many nanoseconds.
    At(u64),
}

/// What belongs to one such struct.
#[derive(Debug, Clone)]
pub(in crate::vm) struct Entry {
    pub kind: DeferredKind,
    pub slot: Slot,
    /// The program's function, once it is set.
    pub callback: Option<u64>,
    pub armed: Option<Armed>,
}

/// A call that will come.
#[derive(Debug, Clone, Copy)]
pub(in crate::vm) struct Armed {
    pub when: When,
    /// Rises from one to the next: of two at the same time the earlier goes first.
    pub order: u64,
    /// The CPU that asked for it, on which it runs.
    pub cpu: u32,
}

/// All that waits on a machine.
#[derive(Debug, Default)]
pub(in crate::vm) struct Deferred(Mutex<Table>);

#[derive(Debug, Default)]
pub(in crate::vm) struct Table {
    entries: BTreeMap<u64, Entry>,
    made: u64,
    armed: u64,
    /// Maps that user space has no descriptor of any more.
    unheld: BTreeSet<MapHandle>,
}

/// The key of the first entry: a number as kernel pointers are, at which nothing is.
const FIRST_KEY: u64 = 0xffff_8880_0000_0000;
/// From one key to the next, as between allocations.
const KEY_STEP: u64 = 192;

impl Deferred {
    /// The table, for this CPU alone until the guard is dropped.
    pub(in crate::vm) fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Makes an entry; its key.
    pub(in crate::vm) fn insert(&mut self, kind: DeferredKind, slot: Slot) -> u64 {
        let key = FIRST_KEY.wrapping_add(self.made.wrapping_mul(KEY_STEP));
        self.made += 1;
        let entry = Entry {
            kind,
            slot,
            callback: None,
            armed: None,
        };
        self.entries.insert(key, entry);
        key
    }

    /// The entry of the struct at an address that holds this key.
    pub(in crate::vm) fn find(&mut self, key: u64, address: u64) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(&key)?;
        (entry.slot.address == address).then_some(entry)
    }

    /// The entry of this key.
    pub(in crate::vm) fn get(&self, key: u64) -> Option<&Entry> {
        self.entries.get(&key)
    }

    /// The same, to be changed.
    pub(in crate::vm) fn get_mut(&mut self, key: u64) -> Option<&mut Entry> {
        self.entries.get_mut(&key)
    }

    /// Lets a call come; one that is to come already is put off to then.
    pub(in crate::vm) fn arm(&mut self, key: u64, when: When, cpu: u32) {
        let order = self.armed;
        self.armed += 1;
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.armed = Some(Armed { when, order, cpu });
        }
    }

    /// Removes an entry.
    pub(in crate::vm) fn remove(&mut self, key: u64) {
        self.entries.remove(&key);
    }

    /// All entries with their keys.
    pub(in crate::vm) fn iter(&self) -> impl Iterator<Item = (u64, &Entry)> {
        self.entries.iter().map(|(key, entry)| (*key, entry))
    }

    /// Notes that user space closed its last descriptor of a map.
    pub(in crate::vm) fn release_map(&mut self, map: MapHandle) {
        self.unheld.insert(map);
    }

    /// Whether user space has a descriptor of a map (`map->usercnt`).
    pub(in crate::vm) fn is_held(&self, map: MapHandle) -> bool {
        !self.unheld.contains(&map)
    }
}
