//! What hashes of maps and of sockets hold: for each key one number, behind a lock.

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
    /// An empty one with room for so many.
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

    /// What is under a key.
    pub(super) fn get(&self, key: &[u8]) -> Option<T> {
        self.read().get(key).copied()
    }

    /// Puts something under a key: `EEXIST` and `ENOENT` by mode, `E2BIG` when full.
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

    /// Removes a key; `ENOENT` where it is not there.
    pub(super) fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        self.write().remove(key).map(drop).ok_or(Errno::ENOENT)
    }

    /// The key behind this one, the first without one or behind one that is not there;
    /// `ENOENT` at the end.
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
