//! Local storage of kernel objects: tasks, inodes, sockets, cgroups
//! (`kernel/bpf/bpf_local_storage.c` and `bpf_*_storage.c`).

use std::sync::Arc;

use super::super::memory::Slab;
use super::base::Base;
use super::hash::Hash;
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::{MapFlags, MapType, StorageFlags, UpdateFlags};
use crate::util::Errno;

/// `BPF_MAP_TYPE_TASK_STORAGE`, `INODE_STORAGE`, `SK_STORAGE` and `CGRP_STORAGE`.
///
/// A value belongs to an object, identified by its address. The system call identifies the
/// object by a file descriptor, which do not exist here, so it returns `EBADF`. A test uses
/// [`get`](Self::get), [`set`](Self::set) and [`remove`](Self::remove). Freeing the object
/// deletes its storage.
#[derive(Debug)]
pub struct LocalStorage {
    base: Base,
    /// By the owner's address.
    values: Hash,
}

/// Maximum number of owners, for small values. The kernel has no limit other than memory.
const OWNERS: u32 = 1 << 16;
/// Maximum number of bytes of address space for the values.
const BYTES: u32 = 1 << 26;

/// Definition of the hash map, with addresses as keys, that stores the values.
pub(super) fn by_owner(def: &MapDef) -> MapDef {
    let most = BYTES / def.value_size.next_power_of_two().max(1);
    MapDef {
        map_type: MapType::Hash,
        key_size: 8,
        max_entries: OWNERS.min(most),
        flags: MapFlags::empty(),
        ..def.clone()
    }
}

impl LocalStorage {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        Self {
            base: Base::new(def, cpus),
            values: Hash::new(&by_owner(def), cpus),
        }
    }

    /// The element of an object, for a program (`bpf_task_storage_get` and its siblings). If it is
    /// missing and the flags have `CREATE`, creates it with `initial`, or with zeros.
    ///
    /// # Errors
    /// `EINVAL` for unknown flags, `ENOENT` if it is missing and not created, `ENOMEM` if there
    /// are too many owners. The helper returns a null pointer for all of them.
    pub fn element(&self, owner: u64, flags: u64, initial: Option<&[u8]>) -> Result<usize, Errno> {
        let flags = StorageFlags::from_bits(flags).ok_or(Errno::EINVAL)?;
        let key = owner.to_le_bytes();
        if let Some(element) = self.values.find(0, &key)? {
            return Ok(element);
        }
        if !flags.contains(StorageFlags::CREATE) {
            return Err(Errno::ENOENT);
        }
        let zeros;
        let value = match initial {
            Some(value) => value,
            None => {
                zeros = vec![0; self.base.def().value_size as usize];
                &zeros
            }
        };
        match self.values.update(0, &key, value, UpdateFlags::NOEXIST) {
            // `EEXIST`: another CPU has created it.
            Ok(()) | Err(Errno::EEXIST) => self.values.find(0, &key)?.ok_or(Errno::ENOENT),
            Err(_) => Err(Errno::ENOMEM),
        }
    }

    /// An object's value.
    #[must_use]
    pub fn get(&self, owner: u64) -> Option<Vec<u8>> {
        self.values.sys_lookup(&owner.to_le_bytes()).ok()
    }

    /// Sets an object's value, as the system call does.
    ///
    /// # Errors
    /// `EINVAL` for flags and for a value of another size, `EEXIST` and `ENOENT` by flag,
    /// `ENOMEM` if there are too many owners, `EPERM` if the map is frozen.
    pub fn set(&self, owner: u64, value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        self.base.user_writes()?;
        self.base.check_value(value)?;
        let stored = self.values.sys_update(&owner.to_le_bytes(), value, flags);
        stored.map_err(|errno| match errno {
            Errno::E2BIG => Errno::ENOMEM,
            errno => errno,
        })
    }

    /// Removes an object's storage, on request or because the object is freed.
    ///
    /// # Errors
    /// `ENOENT` if it has none.
    pub fn remove(&self, owner: u64) -> Result<(), Errno> {
        self.values.delete(&owner.to_le_bytes())
    }

    /// The objects with storage, in the order of creation.
    #[must_use]
    pub fn owners(&self) -> Vec<u64> {
        let values: &dyn Map = &self.values;
        let keys = values.keys().unwrap_or_default();
        let (keys, _) = keys.as_chunks::<8>();
        keys.iter().map(|key| u64::from_le_bytes(*key)).collect()
    }
}

impl Map for LocalStorage {
    fn base(&self) -> &Base {
        &self.base
    }

    fn kind(&self) -> Kind<'_> {
        Kind::Storage(self)
    }

    fn slab(&self) -> Option<&Arc<Slab>> {
        self.values.slab()
    }

    /// Always fails: there are no file descriptors of objects.
    fn sys_lookup(&self, _key: &[u8]) -> Result<Vec<u8>, Errno> {
        Err(Errno::EBADF)
    }

    fn sys_update(&self, _key: &[u8], _value: &[u8], _flags: UpdateFlags) -> Result<(), Errno> {
        Err(Errno::EBADF)
    }

    fn sys_delete(&self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::EBADF)
    }

    fn sys_next_key(&self, _key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        Err(Errno::ENOTSUPP)
    }
}
