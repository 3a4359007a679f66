//! Storage that belongs to an object of the kernel: a task, an inode, a socket, a
//! cgroup (`kernel/bpf/bpf_local_storage.c` and the `bpf_*_storage.c` beside it).

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
/// A value belongs to an object, which is known by its address. The system call names
/// the object by a file descriptor, of which there are none here: it answers `EBADF`, and
/// a test uses [`get`](Self::get), [`set`](Self::set) and [`remove`](Self::remove). When
/// the object is freed, its storage goes with it.
#[derive(Debug)]
pub struct LocalStorage {
    base: Base,
    /// By the owner's address.
    values: Hash,
}

/// Owners that have storage at the same time, where their values are small. The kernel
/// knows no limit but memory.
const OWNERS: u32 = 1 << 16;
/// Bytes of address space that the values may take.
const BYTES: u32 = 1 << 26;

/// The map of addresses that the values are kept in.
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

    /// What a program finds for an object (`bpf_task_storage_get` and its like): the
    /// element that is there, or, if the flags say so, a new one that begins with
    /// `initial`, or with zeros.
    ///
    /// # Errors
    /// `EINVAL` for unknown flags, `ENOENT` where there is no storage and none is to be
    /// made, `ENOMEM` where there are too many owners. A program is told none of them: it
    /// gets a null pointer.
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
            // Another CPU was faster.
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
    /// `ENOMEM` where there are too many owners, `EPERM` where the map is frozen.
    pub fn set(&self, owner: u64, value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        self.base.user_writes()?;
        self.base.check_value(value)?;
        let stored = self.values.sys_update(&owner.to_le_bytes(), value, flags);
        stored.map_err(|errno| match errno {
            Errno::E2BIG => Errno::ENOMEM,
            errno => errno,
        })
    }

    /// Removes an object's storage: asked for, or because the object is freed.
    ///
    /// # Errors
    /// `ENOENT` where it has none.
    pub fn remove(&self, owner: u64) -> Result<(), Errno> {
        self.values.delete(&owner.to_le_bytes())
    }

    /// The objects that have storage, in the order in which they got it.
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

    /// No number is an object's file descriptor here.
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
