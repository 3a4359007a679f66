//! Hash maps: plain, per-CPU, and those that evict (`kernel/bpf/hashtab.c`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::lru::Recency;
use super::per_cpu::{self, Cpus};
use super::{Demand, Map};
use crate::program::MapDef;
use crate::spec::{MapType, UpdateFlags};
use crate::util::Errno;
use crate::vm::memory::Slab;

/// The four hash types. Keys lead through an index under a lock to elements of a
/// slab; the values themselves are used without a lock, as in the kernel.
#[derive(Debug)]
pub(super) struct Hash {
    def: MapDef,
    slab: Arc<Slab>,
    index: Mutex<Index>,
    cpus: Cpus,
    evicts: bool,
    /// Elements of one CPU: a replaced value stays readable for who holds its
    /// address, so there are some more than entries.
    capacity: u32,
}

#[derive(Debug, Default)]
struct Index {
    elements: FxHashMap<Box<[u8]>, u32>,
    /// Elements that were in use and are not any more, last freed first.
    free: Vec<u32>,
    /// The first element that never was in use.
    fresh: u32,
    recency: Recency,
}

impl Hash {
    pub fn new(def: MapDef, cpus: u32) -> Self {
        let info = def.map_type.info();
        let (key, value) = (def.key_size as usize, def.value_size as usize);
        // The kernel preallocates one more element for each CPU, to replace with.
        let capacity = def
            .max_entries
            .saturating_add(if info.per_cpu { 0 } else { cpus });
        let cpus = info.per_cpu.then_some(cpus);
        let slab = match cpus {
            Some(cpus) => Slab::per_cpu_keyed(key, value, capacity as usize, cpus as usize),
            None => Slab::keyed(key, value, capacity as usize),
        };
        Self {
            evicts: matches!(def.map_type, MapType::LruHash | MapType::LruPercpuHash),
            slab: Arc::new(slab),
            index: Mutex::default(),
            cpus,
            capacity,
            def,
        }
    }

    /// The index. A thread that panicked while it held the lock left it whole:
    /// nothing in between can fail.
    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The element of an entry on a CPU.
    fn element(&self, entry: u32, cpu: u32) -> usize {
        per_cpu::clamp(self.cpus, cpu) * self.capacity as usize + entry as usize
    }

    fn remove(&self, index: &mut Index, key: &[u8]) -> Option<u32> {
        let entry = index.elements.remove(key)?;
        self.slab.kill(entry as usize);
        index.recency.forget(entry);
        index.free.push(entry);
        Some(entry)
    }

    /// An element for a new value.
    fn allocate(&self, index: &mut Index) -> Option<u32> {
        let entry = index.free.pop().or_else(|| {
            let fresh = index.fresh;
            index.fresh += 1;
            (fresh < self.capacity).then_some(fresh)
        })?;
        for cpu in 0..self.cpus.unwrap_or(1) {
            let zero = vec![0; self.slab.value_size()];
            self.slab.set_value(self.element(entry, cpu), &zero)?;
        }
        Some(entry)
    }

    /// Stores `values`, pairs of a CPU and its value, under a key.
    fn store(&self, key: &[u8], values: &[(u32, &[u8])], flags: UpdateFlags) -> Result<(), Errno> {
        let demand = Demand::of(flags)?;
        let mut index = self.index();
        let old = index.elements.get(key).copied();
        demand.check(old.is_some())?;
        let entry = match old {
            // A per-CPU value is changed in place, any other replaced: who holds
            // the old one's address keeps the old value.
            Some(old) if self.cpus.is_some() => old,
            _ => {
                if old.is_none() && index.elements.len() >= self.def.max_entries as usize {
                    let victim = index.recency.oldest().filter(|_| self.evicts);
                    let key = victim.and_then(|victim| self.slab.key(victim as usize));
                    self.remove(&mut index, &key.ok_or(Errno::E2BIG)?);
                }
                self.allocate(&mut index).ok_or(Errno::ENOMEM)?
            }
        };
        for (cpu, value) in values {
            let element = self.element(entry, *cpu);
            self.slab.set_value(element, value).ok_or(Errno::EINVAL)?;
        }
        if old != Some(entry) {
            self.remove(&mut index, key);
            self.slab.revive(entry as usize, key).ok_or(Errno::EINVAL)?;
            index.elements.insert(key.into(), entry);
        }
        if self.evicts {
            index.recency.touch(entry);
        }
        Ok(())
    }
}

impl Map for Hash {
    fn def(&self) -> &MapDef {
        &self.def
    }

    fn slab(&self) -> Option<&Arc<Slab>> {
        Some(&self.slab)
    }

    fn lookup(&self, cpu: u32, key: &[u8]) -> Result<Option<usize>, Errno> {
        let mut index = self.index();
        let entry = index.elements.get(key).copied();
        if let Some(entry) = entry.filter(|_| self.evicts) {
            index.recency.touch(entry);
        }
        Ok(entry.map(|entry| self.element(entry, cpu)))
    }

    fn update(&self, cpu: u32, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        self.store(key, &[(cpu, value)], flags)
    }

    fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        let removed = self.remove(&mut self.index(), key);
        removed.map(|_| ()).ok_or(Errno::ENOENT)
    }

    fn next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        let index = self.index();
        // In the order of elements: any will do, but it must be complete.
        let after = key
            .and_then(|key| index.elements.get(key))
            .map_or(0, |entry| entry + 1);
        let next = (after..index.fresh.min(self.capacity)).find(|n| self.slab.is_live(*n as usize));
        next.and_then(|next| self.slab.key(next as usize))
            .ok_or(Errno::ENOENT)
    }

    fn read(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        // The syscall's look-up does not count as use.
        let entry = *self.index().elements.get(key).ok_or(Errno::ENOENT)?;
        per_cpu::gather(&self.slab, self.cpus, |cpu| self.element(entry, cpu))
    }

    fn write(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        self.store(key, &per_cpu::scatter(&self.slab, self.cpus, value), flags)
    }

    fn user_value_size(&self) -> usize {
        per_cpu::size(&self.slab, self.cpus)
    }

    fn len(&self) -> usize {
        self.index().elements.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const ANY: UpdateFlags = UpdateFlags::empty();

    fn hash(map_type: MapType, entries: u32) -> Hash {
        Hash::new(MapDef::new("h", map_type, 2, 3, entries), 2)
    }

    #[test]
    fn flags_and_errors_are_the_kernels() {
        let map = hash(MapType::Hash, 1);
        assert_eq!(
            map.update(0, b"aa", b"111", UpdateFlags::EXIST),
            Err(Errno::ENOENT)
        );
        assert_eq!(map.update(0, b"aa", b"111", UpdateFlags::NOEXIST), Ok(()));
        assert_eq!(
            map.update(0, b"aa", b"222", UpdateFlags::NOEXIST),
            Err(Errno::EEXIST)
        );
        assert_eq!(map.update(0, b"bb", b"222", ANY), Err(Errno::E2BIG));
        assert_eq!(
            map.update(0, b"aa", b"222", UpdateFlags::all()),
            Err(Errno::EINVAL)
        );
        assert_eq!(map.delete(b"bb"), Err(Errno::ENOENT));
        assert_eq!(map.read(b"aa"), Ok(b"111".to_vec()));
    }

    #[test]
    fn an_update_leaves_the_old_value_to_who_holds_it() {
        let map = hash(MapType::Hash, 1);
        map.update(0, b"aa", b"111", ANY).unwrap();
        let held = map.lookup(0, b"aa").unwrap().unwrap();
        map.update(0, b"aa", b"222", ANY).unwrap();
        assert_ne!(map.lookup(0, b"aa").unwrap(), Some(held));
        assert_eq!(map.slab.value(held), Some(b"111".to_vec()));
        assert!(!map.slab.is_live(held));
    }

    #[test]
    fn per_cpu_values_are_apart_and_updated_in_place() {
        let map = hash(MapType::PercpuHash, 2);
        map.update(1, b"aa", b"111", ANY).unwrap();
        let held = map.lookup(1, b"aa").unwrap().unwrap();
        map.update(0, b"aa", b"222", ANY).unwrap();
        assert_eq!(map.lookup(1, b"aa").unwrap(), Some(held));
        assert_eq!(
            map.read(b"aa"),
            Ok(b"222\0\0\0\0\x00111\0\0\0\0\0".to_vec())
        );
        map.delete(b"aa").unwrap();
        map.update(0, b"bb", b"333", ANY).unwrap();
        assert_eq!(
            map.slab.value(map.lookup(1, b"bb").unwrap().unwrap()),
            Some(vec![0; 3])
        );
    }

    #[test]
    fn a_full_lru_map_evicts_what_was_used_least_recently() {
        let map = hash(MapType::LruHash, 2);
        map.update(0, b"aa", b"111", ANY).unwrap();
        map.update(0, b"bb", b"222", ANY).unwrap();
        map.lookup(0, b"aa").unwrap();
        map.update(0, b"cc", b"333", ANY).unwrap();
        assert_eq!(map.read(b"bb"), Err(Errno::ENOENT));
        assert_eq!((map.read(b"aa").is_ok(), map.len()), (true, 2));
    }

    #[derive(Debug, Clone)]
    enum Op {
        Update(u8, u8, u64),
        Delete(u8),
        Lookup(u8),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (0..12u8, any::<u8>(), 0..3u64).prop_map(|(k, v, f)| Op::Update(k, v, f)),
            (0..12u8).prop_map(Op::Delete),
            (0..12u8).prop_map(Op::Lookup),
        ]
    }

    proptest! {
        /// Against std's map with the kernel's rules written down once more.
        #[test]
        fn a_hash_map_is_a_map(ops in proptest::collection::vec(op(), 0..200)) {
            let map = hash(MapType::Hash, 8);
            let mut model = BTreeMap::<u8, u8>::new();
            for op in ops {
                match op {
                    Op::Update(k, v, flags) => {
                        let there = model.contains_key(&k);
                        let expected = match (flags, there) {
                            (1, true) => Err(Errno::EEXIST),
                            (2, false) => Err(Errno::ENOENT),
                            (_, false) if model.len() == 8 => Err(Errno::E2BIG),
                            _ => Ok(()),
                        };
                        let flags = UpdateFlags::from_bits_retain(flags);
                        prop_assert_eq!(map.update(0, &[k, 0], &[v; 3], flags), expected);
                        if expected.is_ok() {
                            model.insert(k, v);
                        }
                    }
                    Op::Delete(k) => {
                        let expected = model.remove(&k).map(|_| ()).ok_or(Errno::ENOENT);
                        prop_assert_eq!(map.delete(&[k, 0]), expected);
                    }
                    Op::Lookup(k) => {
                        let value = map.lookup(0, &[k, 0]).unwrap().and_then(|e| map.slab.value(e));
                        prop_assert_eq!(value, model.get(&k).map(|v| vec![*v; 3]));
                    }
                }
                let mut walked = Vec::new();
                let mut last: Option<Vec<u8>> = None;
                while let Ok(key) = map.next_key(last.as_deref()) {
                    walked.push(key[0]);
                    last = Some(key);
                }
                walked.sort_unstable();
                prop_assert_eq!(walked, model.keys().copied().collect::<Vec<_>>());
                prop_assert_eq!(map.len(), model.len());
            }
        }
    }
}
