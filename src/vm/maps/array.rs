//! Arrays, one value an index or one for each CPU (`kernel/bpf/arraymap.c`).

use std::sync::Arc;

use super::per_cpu::{self, Cpus};
use super::{Demand, Map, index_of, next_index};
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::Errno;
use crate::vm::memory::Slab;

/// `BPF_MAP_TYPE_ARRAY` and `BPF_MAP_TYPE_PERCPU_ARRAY`.
#[derive(Debug)]
pub(super) struct Array {
    def: MapDef,
    slab: Arc<Slab>,
    cpus: Cpus,
}

impl Array {
    pub fn new(def: MapDef, cpus: u32) -> Self {
        let (size, count) = (def.value_size as usize, def.max_entries as usize);
        let cpus = def.map_type.info().per_cpu.then_some(cpus);
        let slab = match cpus {
            Some(cpus) => Slab::per_cpu_array(size, count, cpus as usize),
            None => Slab::array(size, count),
        };
        Self {
            def,
            slab: Arc::new(slab),
            cpus,
        }
    }

    /// Checks an update and gives the element on a CPU.
    fn target(&self, cpu: u32, key: &[u8], flags: UpdateFlags) -> Result<usize, Errno> {
        let demand = Demand::of(flags)?;
        let element = self.lookup(cpu, key)?.ok_or(Errno::E2BIG)?;
        // Every index is there already.
        demand.check(true)?;
        Ok(element)
    }
}

impl Map for Array {
    fn def(&self) -> &MapDef {
        &self.def
    }

    fn slab(&self) -> Option<&Arc<Slab>> {
        Some(&self.slab)
    }

    fn lookup(&self, cpu: u32, key: &[u8]) -> Result<Option<usize>, Errno> {
        let index = index_of(key)?;
        let cpu = per_cpu::clamp(self.cpus, cpu);
        let element = cpu * self.def.max_entries as usize + index as usize;
        Ok((index < self.def.max_entries).then_some(element))
    }

    fn update(&self, cpu: u32, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        let element = self.target(cpu, key, flags)?;
        self.slab.set_value(element, value).ok_or(Errno::EINVAL)
    }

    fn delete(&self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    fn next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        next_index(key, self.def.max_entries)
    }

    fn read(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        let first = self.lookup(0, key)?.ok_or(Errno::ENOENT)?;
        let count = self.def.max_entries as usize;
        per_cpu::gather(&self.slab, self.cpus, |cpu| cpu as usize * count + first)
    }

    fn write(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        for (cpu, value) in per_cpu::scatter(&self.slab, self.cpus, value) {
            self.update(cpu, key, value, flags)?;
        }
        Ok(())
    }

    fn user_value_size(&self) -> usize {
        per_cpu::size(&self.slab, self.cpus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::MapType;

    fn array(map_type: MapType) -> Array {
        Array::new(MapDef::new("a", map_type, 4, 5, 3), 2)
    }

    #[test]
    fn every_index_is_there_and_none_beyond() {
        let map = array(MapType::Array);
        let (two, three) = (2u32.to_le_bytes(), 3u32.to_le_bytes());
        assert_eq!(map.update(0, &two, &[1; 5], UpdateFlags::empty()), Ok(()));
        assert_eq!(map.read(&two), Ok(vec![1; 5]));
        assert_eq!(
            map.update(0, &two, &[1; 5], UpdateFlags::NOEXIST),
            Err(Errno::EEXIST)
        );
        assert_eq!(
            map.update(0, &three, &[1; 5], UpdateFlags::NOEXIST),
            Err(Errno::E2BIG)
        );
        assert_eq!(
            map.update(0, &two, &[1; 5], UpdateFlags::LOCK),
            Err(Errno::EINVAL)
        );
        assert_eq!(map.lookup(0, &three), Ok(None));
        assert_eq!(map.read(&three), Err(Errno::ENOENT));
        assert_eq!(map.delete(&two), Err(Errno::EINVAL));
    }

    #[test]
    fn keys_are_walked_in_order_and_a_wrong_one_starts_over() {
        let map = array(MapType::Array);
        let key = |n: u32| n.to_le_bytes().to_vec();
        assert_eq!(map.next_key(None), Ok(key(0)));
        assert_eq!(map.next_key(Some(&key(0))), Ok(key(1)));
        assert_eq!(map.next_key(Some(&key(2))), Err(Errno::ENOENT));
        assert_eq!(map.next_key(Some(&key(9))), Ok(key(0)));
    }

    #[test]
    fn user_space_sees_all_cpus_rounded_up() {
        let map = array(MapType::PercpuArray);
        let one = 1u32.to_le_bytes();
        map.update(1, &one, &[7; 5], UpdateFlags::empty()).unwrap();
        assert_eq!(map.user_value_size(), 16);
        let mut expected = vec![0; 16];
        expected[8..13].fill(7);
        assert_eq!(map.read(&one), Ok(expected.clone()));
        expected[..5].fill(9);
        assert_eq!(map.write(&one, &expected, UpdateFlags::empty()), Ok(()));
        assert_eq!(map.read(&one), Ok(expected));
    }
}
