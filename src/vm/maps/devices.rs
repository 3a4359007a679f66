//! Maps of network devices to redirect to (`kernel/bpf/devmap.c`).

use std::sync::Arc;

use super::super::memory::Slab;
use super::base::{Base, Mode};
use super::handle::ProgramHandle;
use super::hash::Hash;
use super::redirect_value::RedirectValue;
use super::values::Values;
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::{MapFlags, MapType, UpdateFlags};
use crate::util::Errno;

/// `BPF_MAP_TYPE_DEVMAP` and `DEVMAP_HASH`. A value (`struct bpf_devmap_val`) has a device's
/// number and, if it has 8 bytes, the id of a program that runs on the device's side. There are
/// no file descriptors: a test sets both with [`set`](Self::set). Every positive number is
/// accepted as a device.
#[derive(Debug)]
pub struct Devices {
    base: Base,
    entries: Entries,
}

#[derive(Debug)]
enum Entries {
    /// By index; a zero value is empty.
    Array(Values),
    /// By key.
    Hash(Box<Hash>),
}

/// Definition of the hash map that stores the values of a `DEVMAP_HASH`.
pub(super) fn by_key(def: &MapDef) -> MapDef {
    MapDef {
        map_type: MapType::Hash,
        flags: MapFlags::empty(),
        ..def.clone()
    }
}

impl Devices {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        let entries = match def.map_type {
            MapType::DevmapHash => Entries::Hash(Box::new(Hash::new(&by_key(def), cpus))),
            _ => Entries::Array(Values::array(
                def.value_size,
                def.max_entries as usize,
                None,
            )),
        };
        Self {
            base: Base::new(def, cpus),
            entries,
        }
    }

    /// The device and program of a key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<RedirectValue> {
        RedirectValue::read(&self.sys_lookup(key).ok()?)
    }

    /// All devices, in the map's order: the targets of `BPF_F_BROADCAST`.
    #[must_use]
    pub fn all(&self) -> Vec<RedirectValue> {
        let keys = (self as &dyn Map).keys().unwrap_or_default();
        let (keys, _) = keys.as_chunks::<4>();
        keys.iter().filter_map(|key| self.get(key)).collect()
    }

    /// Sets the device of a key, and the program to run there.
    ///
    /// # Errors
    /// `EINVAL` for flags, for device 0, and for a program if values have 4 bytes; `E2BIG` past
    /// the end or if full, `EEXIST` by flag, `EPERM` if user space may not write.
    pub fn set(
        &self,
        key: &[u8],
        device: u32,
        program: Option<ProgramHandle>,
        flags: UpdateFlags,
    ) -> Result<(), Errno> {
        self.base.user_writes()?;
        let value = RedirectValue::new(device, program);
        self.store(key, &value.write(self.base.def().value_size)?, flags)
    }

    /// Stores a value whose program, if any, is known.
    fn store(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        let mode = Mode::of(flags)?;
        let device = RedirectValue::read(value).map_or(0, |value| value.target);
        if i32::try_from(device).is_err() {
            return Err(Errno::EINVAL);
        }
        match &self.entries {
            Entries::Array(values) => {
                let index = self.base.index_within(key)?.ok_or(Errno::E2BIG)?;
                // Every slot counts as existing, even an empty one.
                mode.check(true)?;
                values.set(0, index as usize, value)
            }
            Entries::Hash(_) if device == 0 => Err(Errno::EINVAL),
            Entries::Hash(hash) => {
                // `BPF_EXIST` is accepted and ignored.
                let flags = flags.difference(UpdateFlags::EXIST);
                hash.update(0, key, value, flags)
            }
        }
    }
}

impl Map for Devices {
    fn base(&self) -> &Base {
        &self.base
    }

    fn kind(&self) -> Kind<'_> {
        Kind::Devices(self)
    }

    fn slab(&self) -> Option<&Arc<Slab>> {
        match &self.entries {
            Entries::Array(values) => Some(values.slab()),
            Entries::Hash(hash) => hash.slab(),
        }
    }

    fn lookup(&self, cpu: u32, key: &[u8]) -> Result<Option<usize>, Errno> {
        match &self.entries {
            Entries::Hash(hash) => hash.lookup(cpu, key),
            Entries::Array(_) => {
                let index = self.base.index_within(key)?;
                Ok(index
                    .map(|index| index as usize)
                    .filter(|_| self.get(key).is_some()))
            }
        }
    }

    fn sys_lookup(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        match &self.entries {
            Entries::Hash(hash) => hash.sys_lookup(key),
            Entries::Array(values) => {
                let index = self.base.index_within(key)?.ok_or(Errno::ENOENT)?;
                let value = values.read(index as usize)?;
                let there = RedirectValue::read(&value).is_some();
                there.then_some(value).ok_or(Errno::ENOENT)
            }
        }
    }

    /// There are no file descriptors of programs: values with one above 0 are rejected, as the
    /// kernel rejects an invalid descriptor.
    fn sys_update(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        let named = RedirectValue::descriptor(value).is_some();
        let mut bare = value.to_vec();
        RedirectValue::forget_program(&mut bare);
        if named && matches!(self.entries, Entries::Array(_)) {
            // The kernel checks flags and index first.
            let mode = Mode::of(flags)?;
            self.base.index_within(key)?.ok_or(Errno::E2BIG)?;
            mode.check(true)?;
        }
        if named {
            return Err(Errno::EINVAL);
        }
        self.store(key, &bare, flags)
    }

    fn sys_delete(&self, key: &[u8]) -> Result<(), Errno> {
        match &self.entries {
            Entries::Hash(hash) => hash.delete(key),
            Entries::Array(values) => {
                let index = self.base.index_within(key)?.ok_or(Errno::EINVAL)?;
                let zeros = vec![0; self.base.def().value_size as usize];
                values.set(0, index as usize, &zeros)
            }
        }
    }

    fn sys_next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        match &self.entries {
            Entries::Hash(hash) => hash.sys_next_key(key),
            Entries::Array(_) => self.base.next_index(key),
        }
    }
}
