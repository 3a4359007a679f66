//! What stands for a map of a type that is not implemented, so that an object that
//! declares one can be opened, and the programs run that don't use it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::base::{Base, Mode};
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::Errno;

/// Keeps what user space writes; programs can't use it.
#[derive(Debug)]
pub(super) struct Placeholder {
    base: Base,
    written: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl Placeholder {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        Self {
            base: Base::new(def, cpus),
            written: Mutex::new(BTreeMap::new()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, Vec<u8>>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Map for Placeholder {
    fn base(&self) -> &Base {
        &self.base
    }

    fn kind(&self) -> Kind<'_> {
        Kind::Placeholder
    }

    fn sys_lookup(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        self.lock().get(key).cloned().ok_or(Errno::ENOENT)
    }

    fn sys_update(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        let mode = Mode::of(flags)?;
        let mut written = self.lock();
        mode.check(written.contains_key(key))?;
        written.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn sys_delete(&self, key: &[u8]) -> Result<(), Errno> {
        self.lock().remove(key).map(drop).ok_or(Errno::ENOENT)
    }

    fn sys_next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        let written = self.lock();
        let from = match key.filter(|key| written.contains_key(*key)) {
            Some(key) => Bound::Excluded(key),
            None => Bound::Unbounded,
        };
        let mut after = written.range::<[u8], _>((from, Bound::Unbounded));
        after
            .next()
            .map(|(key, _)| key.clone())
            .ok_or(Errno::ENOENT)
    }
}
