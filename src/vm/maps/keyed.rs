//! A locked table from keys to handles or addresses, for hashes of maps and sockets.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::base::Mode;
use crate::util::Errno;

/// A handle or an address for each key.
#[derive(Debug)]
pub(super) struct Keyed<T> {
    entries: RwLock<BTreeMap<Vec<u8>, T>>,
    max_entries: usize,
}

impl<T: Copy> Keyed<T> {
    /// An empty table for at most `max_entries` keys.
    pub(super) fn new(max_entries: u32) -> Self {
        Self {
            entries: RwLock::default(),
            max_entries: max_entries as usize,
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Vec<u8>, T>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<Vec<u8>, T>> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &[u8]) -> Option<T> {
        self.read().get(key).copied()
    }

    /// Sets the value of a key: `EEXIST` and `ENOENT` by mode, `E2BIG` if full.
    pub(super) fn set(&self, key: &[u8], value: T, mode: Mode) -> Result<(), Errno> {
        let mut there = self.write();
        let exists = there.contains_key(key);
        mode.check(exists)?;
        if !exists && there.len() >= self.max_entries {
            return Err(Errno::E2BIG);
        }
        there.insert(key.to_vec(), value);
        Ok(())
    }

    /// Removes a key; `ENOENT` if there is no such key.
    pub(super) fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        self.write().remove(key).map(drop).ok_or(Errno::ENOENT)
    }

    /// The key after this one, or the first if there is no such key; `ENOENT` at the end.
    pub(super) fn next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        let there = self.read();
        let from = match key.filter(|key| there.contains_key(*key)) {
            Some(key) => Bound::Excluded(key),
            None => Bound::Unbounded,
        };
        let mut after = there.range::<[u8], _>((from, Bound::Unbounded));
        let next = after.next().map(|(key, _)| key.clone());
        next.ok_or(Errno::ENOENT)
    }
}
