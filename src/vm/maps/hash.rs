//! Hash maps: plain, per CPU, and LRU (`kernel/bpf/hashtab.c`).

use std::sync::Arc;

use super::super::memory::Slab;
use super::Map;
use super::base::{Base, Mode};
use super::batch::{Bucket, Reading};
use super::index::{Index, Locked, Number, Position};
use super::values::Values;
use crate::program::MapDef;
use crate::spec::{MapFlags, MapType, UpdateFlags};
use crate::util::Errno;

/// `BPF_MAP_TYPE_HASH`, `PERCPU_HASH`, `LRU_HASH` and `LRU_PERCPU_HASH`.
///
/// Adding and removing keys takes a lock. Look-ups take none, except in LRU maps, where a
/// look-up counts as a use. Values are read and written without the lock, by the holders of
/// their addresses. As in the kernel, updating an existing key moves it to a new element,
/// except in per-CPU maps, so the address from an earlier look-up shows the old value.
///
/// Eviction is strictly by last use (look-ups and updates by programs, updates by user space).
/// The kernel approximates this with a reference bit and per-CPU lists, and may evict before
/// there are `max_entries` keys. With `BPF_F_NO_COMMON_LRU` each CPU has an equal share of the
/// elements, and evicts only its own (`kernel/bpf/bpf_lru_list.c`); user space counts as CPU 0.
#[derive(Debug)]
pub(super) struct Hash {
    base: Base,
    values: Values,
    index: Index,
    /// The maximum number of keys; in LRU maps, per list.
    max: u32,
    evicts: bool,
    /// Whether each CPU has its own LRU list.
    lists: bool,
}

/// Number of slots: `max_entries`, and one per CPU for replacing a value while all others are
/// in use (the kernel's `extra_elems`).
pub(super) const fn slots(def: &MapDef, cpus: u32) -> usize {
    def.max_entries as usize + cpus as usize
}

/// A key of at most 8 bytes as a number.
#[inline(always)]
fn number(key: &[u8]) -> Option<Number> {
    // The most common key sizes: a single load each.
    if let Ok(bytes) = <[u8; 4]>::try_from(key) {
        return Some(Number(u32::from_le_bytes(bytes).into()));
    }
    if let Ok(bytes) = <[u8; 8]>::try_from(key) {
        return Some(Number(u64::from_le_bytes(bytes)));
    }
    let mut bytes = [0; 8];
    bytes.get_mut(..key.len())?.copy_from_slice(key);
    Some(Number(u64::from_le_bytes(bytes)))
}

impl Hash {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        let evicts = matches!(def.map_type, MapType::LruHash | MapType::LruPercpuHash);
        let per_cpu = def.map_type.info().per_cpu.then_some(cpus);
        let slots = slots(def, cpus);
        let lists = evicts && def.flags.contains(MapFlags::NO_COMMON_LRU);
        // Each list has the same share; rounding up can exceed `max_entries`.
        let max = match lists {
            true => def.max_entries.div_ceil(cpus.max(1)),
            false => def.max_entries,
        };
        let count = if lists { cpus as usize } else { 1 };
        Self {
            base: Base::new(def, cpus),
            values: Values::keyed(def.key_size, def.value_size, slots, per_cpu)
                .watching(&def.special),
            index: Index::new(slots, evicts.then_some(count)),
            max,
            evicts,
            lists,
        }
    }

    /// The slot of a key, without counting as a use.
    #[inline(always)]
    fn slot(&self, key: &[u8]) -> Option<usize> {
        self.base.check_key(key).ok()?;
        let slab = self.values.slab();
        let slot = match number(key) {
            Some(number) => self.index.find(slab, &number),
            None => self.index.find(slab, key),
        };
        slot.map(|slot| slot as usize)
    }

    /// Finds or allocates the slot for a key, under the lock, and writes it with
    /// `fill(slot, new)`. With `BPF_F_LOCK`, an existing element is updated in place, with its
    /// own lock held.
    fn store(
        &self,
        cpu: u32,
        key: &[u8],
        value: &[u8],
        flags: UpdateFlags,
        fill: impl FnOnce(usize, bool) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let mode = Mode::without_lock(flags)?;
        self.base.check_lock(flags)?;
        self.base.check_key(key)?;
        let slab = self.values.slab();
        let mut index = self.index.lock();
        let mut at = self.locate(&index, key);
        mode.check(at.slot.is_some())?;
        if let Some(slot) = at.slot
            && flags.contains(UpdateFlags::LOCK)
        {
            return self.values.write_locked(slot as usize, value);
        }
        if let Some(slot) = at.slot.filter(|_| self.values.per_cpu()) {
            index.touch(slot);
            return fill(slot as usize, false);
        }
        let list = match self.lists {
            true => cpu.min(self.base.cpus().saturating_sub(1)),
            false => 0,
        };
        if self.make_room(&mut index, at, list)? {
            // The evicted slot may have been the key's neighbour in the chain.
            at = self.locate(&index, key);
        }
        let slot = index.take().ok_or(Errno::E2BIG)?;
        let element = slot as usize;
        let revived = slab.revive(element, key).ok_or(Errno::EINVAL);
        if let Err(errno) = revived.and_then(|()| fill(element, at.slot.is_none())) {
            slab.kill(element);
            index.give_back(slot);
            return Err(errno);
        }
        match at.slot {
            Some(old) => {
                index.replace(at, slot, list);
                self.kill(old);
            }
            None => index.insert(at, slot, list),
        }
        Ok(())
    }

    /// The position of a key, or of its insertion.
    fn locate(&self, index: &Locked<'_>, key: &[u8]) -> Position {
        let slab = self.values.slab();
        match number(key) {
            Some(number) => index.find(slab, &number),
            None => index.find(slab, key),
        }
    }

    /// Makes room for a key in a list by evicting, or fails with `E2BIG`. A key that moves to
    /// another CPU's list needs room there. Returns whether a key was evicted.
    fn make_room(&self, index: &mut Locked<'_>, at: Position, list: u32) -> Result<bool, Errno> {
        let Some(lru) = index.lru_lists().filter(|_| self.evicts) else {
            let is_full = at.slot.is_none() && index.len() >= self.max;
            return if is_full {
                Err(Errno::E2BIG)
            } else {
                Ok(false)
            };
        };
        let stays = at.slot.is_some_and(|slot| lru.list_of(slot) == list);
        if stays || lru.len(list) < self.max {
            return Ok(false);
        }
        let oldest = lru.oldest(list).ok_or(Errno::E2BIG)?;
        let key = self.values.slab().key(oldest as usize);
        self.remove(index, &key.ok_or(Errno::E2BIG)?)?;
        Ok(true)
    }

    /// A value as user space reads it.
    fn copy(&self, slot: u32, lock: bool) -> Result<Vec<u8>, Errno> {
        match lock {
            true => self.values.read_locked(slot as usize),
            false => self.values.read(slot as usize),
        }
    }

    /// Removes a key, under the lock; `ENOENT` if there is no such key.
    fn remove(&self, index: &mut Locked<'_>, key: &[u8]) -> Result<(), Errno> {
        let at = self.locate(index, key);
        self.kill(index.remove(at).ok_or(Errno::ENOENT)?);
        Ok(())
    }

    /// Deletes an element: frees its special fields; the rest of the value stays readable.
    fn kill(&self, slot: u32) {
        self.values.free_fields(slot as usize);
        self.values.slab().kill(slot as usize);
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
        if !self.evicts {
            return self.find(cpu, key);
        }
        self.base.check_key(key)?;
        let mut index = self.index.lock();
        let Some(slot) = self.locate(&index, key).slot else {
            return Ok(None);
        };
        index.touch(slot);
        Ok(self.values.element(cpu, slot as usize))
    }

    fn find(&self, cpu: u32, key: &[u8]) -> Result<Option<usize>, Errno> {
        let slot = self.slot(key);
        Ok(slot.and_then(|slot| self.values.element(cpu, slot)))
    }

    fn update(&self, cpu: u32, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        self.base.check_value(value)?;
        self.store(cpu, key, value, flags, |slot, new| {
            if new {
                self.values.init(cpu, slot, value)
            } else {
                self.values.free_fields_of(cpu, slot);
                self.values.set(cpu, slot, value)
            }
        })
    }

    fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        self.base.check_key(key).map_err(|_| Errno::ENOENT)?;
        self.remove(&mut self.index.lock(), key)
    }

    /// Holds the lock, so that the slot is not reused while its value is copied.
    fn sys_lookup(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        let index = self.index.lock();
        let slot = self.locate(&index, key).slot.ok_or(Errno::ENOENT)?;
        self.values.read(slot as usize)
    }

    fn sys_lookup_and_delete(&self, key: &[u8], lock: bool) -> Result<Vec<u8>, Errno> {
        let mut index = self.index.lock();
        let slot = self.locate(&index, key).slot.ok_or(Errno::ENOENT)?;
        let value = self.copy(slot, lock)?;
        self.remove(&mut index, key)?;
        Ok(value)
    }

    fn sys_bucket(
        &self,
        bucket: u32,
        most: u32,
        reading: Reading,
    ) -> Result<Option<Bucket>, Errno> {
        let mut index = self.index.lock();
        let Some(slots) = index.bucket(bucket as usize) else {
            return Ok(None);
        };
        let count = u32::try_from(slots.len()).unwrap_or(u32::MAX);
        if count > most {
            return Err(Errno::ENOSPC);
        }
        let mut found = Bucket {
            count,
            ..Bucket::default()
        };
        for slot in slots {
            let key = self.values.slab().key(slot as usize);
            let key = key.ok_or(Errno::ENOENT)?;
            found.values.extend(self.copy(slot, reading.lock)?);
            if reading.delete {
                self.remove(&mut index, &key)?;
            }
            found.keys.extend(key);
        }
        Ok(Some(found))
    }

    fn sys_lookup_locked(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        let index = self.index.lock();
        let slot = self.locate(&index, key).slot.ok_or(Errno::ENOENT)?;
        self.copy(slot, true)
    }

    fn sys_update(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        self.store(0, key, value, flags, |slot, new| {
            if !new {
                self.values.free_fields(slot);
            }
            self.values.write(slot, value)
        })
    }

    fn sys_next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        let index = self.index.lock();
        let at = key.and_then(|key| self.locate(&index, key).slot);
        let next = index.after(at).ok_or(Errno::ENOENT)?;
        self.values.slab().key(next as usize).ok_or(Errno::ENOENT)
    }
}
