//! The table of deferred callbacks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::clock::TimerClock;
use crate::vm::maps::MapHandle;

/// The kind of a deferred callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeferredKind {
    /// A `struct bpf_timer` with this clock.
    Timer(TimerClock),
    /// A `struct bpf_wq`.
    Work,
    /// A `struct bpf_task_work`.
    TaskWork,
}

/// The location of a `struct bpf_timer`, `bpf_wq` or `bpf_task_work`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::vm) struct Slot {
    /// The map.
    pub map: MapHandle,
    /// The element whose value contains the struct.
    pub element: usize,
    /// The struct's address.
    pub address: u64,
}

/// When a callback is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::vm) enum When {
    /// As soon as possible.
    Soon,
    /// When the timer's clock reaches this time in nanoseconds.
    At(u64),
}

/// The state of one such struct.
#[derive(Debug, Clone)]
pub(in crate::vm) struct Entry {
    pub kind: DeferredKind,
    pub slot: Slot,
    /// The program's callback, once it is set.
    pub callback: Option<u64>,
    pub armed: Option<Armed>,
}

/// A scheduled call.
#[derive(Debug, Clone, Copy)]
pub(in crate::vm) struct Armed {
    pub when: When,
    /// Increases with each call: of two at the same time the one armed first runs first.
    pub order: u64,
    /// The CPU that armed it, on which it runs.
    pub cpu: u32,
}

/// The deferred callbacks of a machine.
#[derive(Debug, Default)]
pub(in crate::vm) struct Deferred(Mutex<Table>);

#[derive(Debug, Default)]
pub(in crate::vm) struct Table {
    entries: BTreeMap<u64, Entry>,
    made: u64,
    armed: u64,
    /// Maps to which user space has no file descriptor any more.
    closed: BTreeSet<MapHandle>,
}

/// The key of the first entry: looks like a kernel pointer, and is not mapped.
const FIRST_KEY: u64 = 0xffff_8880_0000_0000;
/// Distance between keys, similar to that of allocations.
const KEY_STEP: u64 = 192;

impl Deferred {
    /// Locks the table until the guard is dropped.
    pub(in crate::vm) fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Adds an entry and returns its key.
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

    /// The entry with this key, if its struct is at this address.
    pub(in crate::vm) fn find(&mut self, key: u64, address: u64) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(&key)?;
        (entry.slot.address == address).then_some(entry)
    }

    /// The entry with this key.
    pub(in crate::vm) fn get(&self, key: u64) -> Option<&Entry> {
        self.entries.get(&key)
    }

    /// The entry with this key, mutable.
    pub(in crate::vm) fn get_mut(&mut self, key: u64) -> Option<&mut Entry> {
        self.entries.get_mut(&key)
    }

    /// Schedules a call, replacing one that is already scheduled.
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
        self.closed.insert(map);
    }

    /// Whether user space has a file descriptor of a map (`map->usercnt`).
    pub(in crate::vm) fn is_held(&self, map: MapHandle) -> bool {
        !self.closed.contains(&map)
    }
}
