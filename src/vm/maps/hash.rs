//! Hash maps: plain, per CPU, and with eviction (`kernel/bpf/hashtab.c`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::memory::Slab;
use super::Map;
use super::base::{Base, Mode};
use super::index::Index;
use super::values::Values;
use crate::program::MapDef;
use crate::spec::{MapFlags, MapType, UpdateFlags};
use crate::util::Errno;

/// `BPF_MAP_TYPE_HASH`, `PERCPU_HASH`, `LRU_HASH` and `LRU_PERCPU_HASH`.
///
/// A lock guards the index for as long as a key is looked for; values are read
/// and written without it, by whoever holds an element's address. As in the
/// kernel an update of a key that is there makes a new element of it, except in
/// per-CPU maps, so that an address from an earlier look-up shows the old value.
///
/// Eviction is by true last use (look-ups and updates of programs, updates of user
/// space). The kernel approximates that with a reference bit and lists per CPU,
/// and may evict earlier than at `max_entries`.
#[derive(Debug)]
pub(super) struct Hash {
    base: Base,
    values: Values,
    index: Mutex<Index>,
    /// The most keys.
    max: u32,
    evicts: bool,
}

/// Slots of a hash map besides `max_entries`: one for each CPU that replaces a
/// value while all others are in use (the kernel's `extra_elems`).
pub(super) const fn slots(def: &MapDef, cpus: u32) -> usize {
    def.max_entries as usize + cpus as usize
}

impl Hash {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        let evicts = matches!(def.map_type, MapType::LruHash | MapType::LruPercpuHash);
        let per_cpu = def.map_type.info().per_cpu.then_some(cpus);
        let slots = slots(def, cpus);
        // Lists of their own make each CPU's part as large as the others'.
        let max = if def.flags.contains(MapFlags::NO_COMMON_LRU) {
            def.max_entries.checked_next_multiple_of(cpus)
        } else {
            None
        };
        Self {
            base: Base::new(def, cpus),
            values: Values::keyed(def.key_size, def.value_size, slots, per_cpu),
            index: Mutex::new(Index::new(slots, evicts)),
            max: max.unwrap_or(def.max_entries),
            evicts,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds or makes the slot of a key that is to be written, under the lock,
    /// and lets `fill` write it: `fill(slot, new)`.
    fn store(
        &self,
        key: &[u8],
        flags: UpdateFlags,
        fill: impl FnOnce(usize, bool) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let mode = Mode::of(flags)?;
        self.base.check_key(key)?;
        let slab = self.values.slab();
        let mut index = self.lock();
        let at = index.find(slab, key);
        mode.check(at.slot.is_some())?;
        match at.slot {
            Some(slot) if self.values.per_cpu() => {
                index.touch(slot);
                fill(slot as usize, false)
            }
            Some(old) => {
                let slot = index.replace(at).ok_or(Errno::E2BIG)? as usize;
                slab.kill(old as usize);
                slab.revive(slot, key).ok_or(Errno::EINVAL)?;
                fill(slot, false)
            }
            None => {
                if index.used() >= self.max {
                    self.evict(&mut index)?;
                }
                // The chain may have lost its first slot to eviction.
                let at = index.find(slab, key);
                let slot = index.insert(at).ok_or(Errno::E2BIG)? as usize;
                slab.revive(slot, key).ok_or(Errno::EINVAL)?;
                fill(slot, true)
            }
        }
    }

    /// Makes room for a key, where the map evicts; `E2BIG` where it does not.
    fn evict(&self, index: &mut Index) -> Result<(), Errno> {
        let slab = self.values.slab();
        let oldest = index.oldest().filter(|_| self.evicts).ok_or(Errno::E2BIG)?;
        let key = slab.key(oldest as usize).ok_or(Errno::E2BIG)?;
        let at = index.find(slab, &key);
        let gone = index.remove(at).ok_or(Errno::E2BIG)?;
        slab.kill(gone as usize);
        Ok(())
    }
}

impl Map for Hash {
    fn base(&self) -> &Base {
        &self.base
    }

    fn slab(&self) -> Option<&Arc<Slab>> {
        Some(self.values.slab())
    }

    fn lookup(&self, cpu: u32, key: &[u8]) -> Result<Option<usize>, Errno> {
        let mut index = self.lock();
        let Some(slot) = index.find(self.values.slab(), key).slot else {
            return Ok(None);
        };
        index.touch(slot);
        Ok(self.values.element(cpu, slot as usize))
    }

    fn find(&self, cpu: u32, key: &[u8]) -> Result<Option<usize>, Errno> {
        let slot = self.lock().find(self.values.slab(), key).slot;
        Ok(slot.and_then(|slot| self.values.element(cpu, slot as usize)))
    }

    fn update(&self, cpu: u32, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        self.base.check_value(value)?;
        self.store(key, flags, |slot, new| {
            if new {
                self.values.init(cpu, slot, value)
            } else {
                self.values.set(cpu, slot, value)
            }
        })
    }

    fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        let slab = self.values.slab();
        let mut index = self.lock();
        let at = index.find(slab, key);
        let slot = index.remove(at).ok_or(Errno::ENOENT)?;
        slab.kill(slot as usize);
        Ok(())
    }

    fn sys_lookup(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        let slot = self.lock().find(self.values.slab(), key).slot;
        self.values.read(slot.ok_or(Errno::ENOENT)? as usize)
    }

    fn sys_update(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        self.store(key, flags, |slot, _| self.values.write(slot, value))
    }

    fn sys_next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        let slab = self.values.slab();
        let index = self.lock();
        let at = key.and_then(|key| index.find(slab, key).slot);
        let next = index.after(at).ok_or(Errno::ENOENT)?;
        slab.key(next as usize).ok_or(Errno::ENOENT)
    }
}
