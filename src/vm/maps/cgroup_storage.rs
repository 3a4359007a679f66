//! Storage of a cgroup for the programs attached to it (`kernel/bpf/local_storage.c`).

use std::sync::Arc;

use super::super::memory::Slab;
use super::base::Base;
use super::hash::Hash;
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::{MapFlags, MapType, UpdateFlags};
use crate::util::Errno;

/// `BPF_MAP_TYPE_CGROUP_STORAGE` and `PERCPU_CGROUP_STORAGE`.
///
/// A key is a cgroup id, with or without an attach type. The kernel creates the storage when a
/// program is attached to the cgroup. Here it is created when a program first accesses it, or
/// by [`create`](Self::create). User space can only change existing values.
#[derive(Debug)]
pub struct CgroupStorage {
    base: Base,
    values: Hash,
}

/// Maximum number of cgroups with storage, for small values.
const CGROUPS: u32 = 1 << 12;
/// Maximum number of bytes of address space for the values.
const BYTES: u32 = 1 << 26;

/// Definition of the hash map that stores the values.
pub(super) fn by_cgroup(def: &MapDef) -> MapDef {
    let map_type = match def.map_type {
        MapType::PercpuCgroupStorage => MapType::PercpuHash,
        _ => MapType::Hash,
    };
    let most = BYTES / def.value_size.next_power_of_two().max(1);
    MapDef {
        map_type,
        max_entries: CGROUPS.min(most),
        flags: MapFlags::empty(),
        ..def.clone()
    }
}

impl CgroupStorage {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        Self {
            base: Base::new(def, cpus),
            values: Hash::new(&by_cgroup(def), cpus),
        }
    }

    /// The key for a cgroup and an attach type: `struct bpf_cgroup_storage_key`, or only the id if
    /// all attach types share a value.
    #[must_use]
    pub fn key(&self, cgroup: u64, attach_type: u32) -> Vec<u8> {
        let mut key = cgroup.to_le_bytes().to_vec();
        key.extend(attach_type.to_le_bytes());
        key.resize(self.base.def().key_size as usize, 0);
        key
    }

    /// The element for a program on `cpu` (`bpf_get_local_storage`); created with zeros if there
    /// is none.
    ///
    /// # Errors
    /// `ENOMEM` if there are too many cgroups.
    pub fn element(&self, cpu: u32, cgroup: u64, attach_type: u32) -> Result<usize, Errno> {
        let key = self.key(cgroup, attach_type);
        self.create(&key)?;
        self.values.find(cpu, &key)?.ok_or(Errno::ENOMEM)
    }

    /// Creates the storage for a key if there is none, as attaching a program to the cgroup
    /// does.
    ///
    /// # Errors
    /// `EINVAL` for a key of another size, `ENOMEM` if there are too many cgroups.
    pub fn create(&self, key: &[u8]) -> Result<(), Errno> {
        let zeros = vec![0; self.base.def().value_size as usize];
        match self.values.update(0, key, &zeros, UpdateFlags::NOEXIST) {
            Ok(()) | Err(Errno::EEXIST) => Ok(()),
            Err(Errno::E2BIG) => Err(Errno::ENOMEM),
            Err(errno) => Err(errno),
        }
    }
}

impl Map for CgroupStorage {
    fn base(&self) -> &Base {
        &self.base
    }

    fn kind(&self) -> Kind<'_> {
        Kind::CgroupStorage(self)
    }

    fn slab(&self) -> Option<&Arc<Slab>> {
        self.values.slab()
    }

    fn sys_lookup(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        self.values.sys_lookup(key)
    }

    /// `cgroup_storage_update_elem`: only updates existing values, in place.
    fn sys_update(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        if !flags.difference(UpdateFlags::EXIST).is_empty() {
            return Err(Errno::EINVAL);
        }
        self.values.sys_update(key, value, UpdateFlags::EXIST)
    }

    fn sys_delete(&self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    fn sys_next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        self.values.sys_next_key(key)
    }
}
