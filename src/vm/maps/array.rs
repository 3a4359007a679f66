//! Arrays, shared or per CPU (`kernel/bpf/arraymap.c`).

use std::sync::Arc;

use super::super::memory::Slab;
use super::Map;
use super::base::{Base, Mode};
use super::values::Values;
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::Errno;

/// `BPF_MAP_TYPE_ARRAY` and `BPF_MAP_TYPE_PERCPU_ARRAY`: all elements always exist.
#[derive(Debug)]
pub(super) struct Array {
    base: Base,
    values: Values,
}

impl Array {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        let per_cpu = def.map_type.info().per_cpu.then_some(cpus);
        Self {
            base: Base::new(def, cpus),
            values: Values::array(def.value_size, def.max_entries as usize, per_cpu)
                .watching(&def.special),
        }
    }

    /// Checks an update in the kernel's order, and returns the index.
    fn writable(&self, key: &[u8], flags: UpdateFlags) -> Result<usize, Errno> {
        let mode = Mode::without_lock(flags)?;
        let index = self.base.index_within(key)?.ok_or(Errno::E2BIG)?;
        mode.check(true)?;
        self.base.check_lock(flags)?;
        Ok(index as usize)
    }
}

impl Map for Array {
    fn base(&self) -> &Base {
        &self.base
    }

    fn slab(&self) -> Option<&Arc<Slab>> {
        Some(self.values.slab())
    }

    fn lookup(&self, cpu: u32, key: &[u8]) -> Result<Option<usize>, Errno> {
        let index = self.base.index_within(key)?;
        Ok(index.and_then(|index| self.values.element(cpu, index as usize)))
    }

    fn update(&self, cpu: u32, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        let index = self.writable(key, flags)?;
        self.base.check_value(value)?;
        if flags.contains(UpdateFlags::LOCK) {
            self.values.write_locked(index, value)?;
        } else {
            self.values.set(cpu, index, value)?;
        }
        self.values.free_fields_of(cpu, index);
        Ok(())
    }

    fn delete(&self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    fn sys_lookup(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        let index = self.base.index_within(key)?.ok_or(Errno::ENOENT)?;
        self.values.read(index as usize)
    }

    fn sys_lookup_locked(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        let index = self.base.index_within(key)?.ok_or(Errno::ENOENT)?;
        self.values.read_locked(index as usize)
    }

    fn sys_update(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        let index = self.writable(key, flags)?;
        if flags.contains(UpdateFlags::LOCK) {
            self.values.write_locked(index, value)?;
        } else {
            self.values.write(index, value)?;
        }
        self.values.free_fields(index);
        Ok(())
    }

    fn sys_next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        self.base.next_index(key)
    }
}
