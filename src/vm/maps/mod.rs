//! Maps: one file per kind, behind one trait.
//!
//! A map has two sides, as in the kernel. A *program* looks up an element and gets its address
//! (an element's number in the map's [`Slab`]). *User space* reads and writes whole values by
//! key through the system call; for per-CPU maps it sees the values of all CPUs at once. The
//! trait's `lookup`, `update` and `delete` are the program's side. `read`, `write`, `remove` and
//! `next_key` of `dyn Map` are user space's, with its rights.
//!
//! Where user space passes a file descriptor of a task, cgroup, socket or program, a test passes
//! the object's address or the program's handle to a function of the kind:
//! [`LocalStorage::set`], [`Sockets::set`], [`Devices::set`]. The system call returns the
//! kernel's error for an invalid descriptor.

mod arena;
mod array;
mod base;
mod batch;
mod bloom;
mod cgroup_storage;
mod cgroups;
mod cpumap;
mod create;
mod devices;
mod free_ranges;
mod handle;
mod handles;
mod hash;
mod index;
mod keyed;
mod list;
mod lock;
mod lock_wait;
mod lpm;
mod lru_lists;
mod objects;
mod of_maps;
mod perf_events;
mod programs;
mod queue;
mod redirect_value;
mod ringbuf;
mod sockets;
mod stack_traces;
mod storage;
mod struct_ops;
#[cfg(test)]
mod tests;
mod user_ringbuf;
mod values;

use std::fmt;
use std::sync::Arc;

use super::memory::Slab;
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::Errno;

pub use arena::Arena;
pub use base::Base;
pub use batch::{Batch, Bucket, Reading};
pub use bloom::Bloom;
pub use cgroup_storage::CgroupStorage;
pub use cgroups::CgroupArray;
pub use cpumap::CpuMap;
pub use create::{MapError, create};
pub use devices::Devices;
pub use handle::{MapHandle, ProgramHandle};
pub(super) use lock_wait::LockWait;
pub use of_maps::MapOfMaps;
pub use perf_events::{Counter, PerfEventArray};
pub use programs::ProgArray;
pub use queue::Queue;
pub use redirect_value::RedirectValue;
pub use ringbuf::{Record, RingBuf};
pub use sockets::Sockets;
pub use stack_traces::StackTraces;
pub use storage::LocalStorage;
pub use struct_ops::{Function, StructOps};
pub use user_ringbuf::{Draining, Next, UserRingBuf};

/// A map in a machine. Shared by all programs and threads that use it.
pub trait Map: Send + Sync + fmt::Debug {
    /// The part that all kinds share.
    fn base(&self) -> &Base;

    /// The kind of map, for helpers that need more than values.
    fn kind(&self) -> Kind<'_> {
        Kind::Values
    }

    /// Storage of the values that programs can point to.
    fn slab(&self) -> Option<&Arc<Slab>> {
        None
    }

    /// The element that a program on `cpu` finds under `key` (`key_size` bytes).
    ///
    /// # Errors
    /// `EOPNOTSUPP` if programs can't look up in this kind of map.
    fn lookup(&self, _cpu: u32, _key: &[u8]) -> Result<Option<usize>, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Like [`lookup`](Self::lookup), but an LRU map does not count it as a use.
    ///
    /// # Errors
    /// As for [`lookup`](Self::lookup).
    fn find(&self, cpu: u32, key: &[u8]) -> Result<Option<usize>, Errno> {
        self.lookup(cpu, key)
    }

    /// Stores a value (`value_size` bytes) from a program on `cpu`.
    ///
    /// # Errors
    /// The kernel's: `EINVAL` for flags, `E2BIG` if full or past the end, `EEXIST` and `ENOENT`
    /// by flag; `EOPNOTSUPP` if programs can't update.
    fn update(
        &self,
        _cpu: u32,
        _key: &[u8],
        _value: &[u8],
        _flags: UpdateFlags,
    ) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Removes an element for a program.
    ///
    /// # Errors
    /// The kernel's: `ENOENT` if there is no such element, `EINVAL` for arrays; `EOPNOTSUPP` if
    /// programs can't delete.
    fn delete(&self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// `BPF_MAP_LOOKUP_ELEM` without checking rights: use `read` of `dyn Map`.
    ///
    /// # Errors
    /// `ENOENT` if there is no such element; the kernel's error if the kind can't be read.
    fn sys_lookup(&self, key: &[u8]) -> Result<Vec<u8>, Errno>;

    /// `BPF_MAP_LOOKUP_ELEM` with `BPF_F_LOCK`, without checking rights: use `read_with` of
    /// `dyn Map`, which only calls this if values have a lock.
    ///
    /// # Errors
    /// As for [`sys_lookup`](Self::sys_lookup), `EDEADLK` if the lock is not released.
    fn sys_lookup_locked(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        self.sys_lookup(key)
    }

    /// `BPF_MAP_LOOKUP_AND_DELETE_ELEM` without checking rights: use `take` of `dyn Map`, which
    /// only calls this for hashes and stack traces. `lock` holds the value's lock meanwhile.
    ///
    /// # Errors
    /// As for [`sys_lookup`](Self::sys_lookup).
    fn sys_lookup_and_delete(&self, _key: &[u8], _lock: bool) -> Result<Vec<u8>, Errno> {
        Err(Errno::ENOTSUPP)
    }

    /// The elements of a hash's bucket, read (and removed) atomically; `None` past the last
    /// bucket. For `read_batch` and `take_batch` of `dyn Map`.
    ///
    /// # Errors
    /// `ENOSPC` if there are more than `most`.
    fn sys_bucket(
        &self,
        _bucket: u32,
        _most: u32,
        _reading: Reading,
    ) -> Result<Option<Bucket>, Errno> {
        Ok(None)
    }

    /// `BPF_MAP_UPDATE_ELEM` without checking rights: use `write` of `dyn Map`.
    ///
    /// # Errors
    /// As for [`update`](Self::update).
    fn sys_update(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno>;

    /// `BPF_MAP_DELETE_ELEM` without checking rights: use `remove` of `dyn Map`.
    ///
    /// # Errors
    /// As for [`delete`](Self::delete).
    fn sys_delete(&self, key: &[u8]) -> Result<(), Errno> {
        self.delete(key)
    }

    /// `BPF_MAP_GET_NEXT_KEY` without checking rights: use `next_key` of `dyn Map`.
    ///
    /// # Errors
    /// `ENOENT` at the end; the kernel's error if the kind has no keys.
    fn sys_next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno>;
}

/// User space's operations on a map.
impl dyn Map + '_ {
    /// The map's definition.
    #[must_use]
    pub fn def(&self) -> &MapDef {
        self.base().def()
    }

    /// Size of a value for the system call: `value_size`; for per-CPU maps `value_size` rounded
    /// up to 8, times the number of CPUs.
    #[must_use]
    pub fn user_value_size(&self) -> usize {
        let (def, cpus) = (self.def(), self.base().cpus());
        let size = def.map_type.user_value_size(def.value_size, cpus);
        usize::try_from(size).unwrap_or(usize::MAX)
    }

    /// Makes the map read-only for user space; programs can still write (`BPF_MAP_FREEZE`).
    pub fn freeze(&self) {
        self.base().freeze();
    }

    /// Reads a value as the system call does. Per-CPU maps return the values of all CPUs, each
    /// rounded up to 8 bytes. Arrays of programs and maps of maps return the handle's number.
    /// Queues and stacks, which have no keys, return what `peek` does.
    ///
    /// # Errors
    /// `ENOENT` if there is no such element, `EPERM` for `BPF_F_WRONLY` maps; the kernel's
    /// error if the kind can't be read.
    pub fn read(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        self.read_with(key, UpdateFlags::empty())
    }

    /// Like `read` with flags. The only one is `BPF_F_LOCK`: holds the value's `bpf_spin_lock`
    /// meanwhile. Locks, timers and kernel pointers read as zero.
    ///
    /// # Errors
    /// As for `read`; `EINVAL` for other flags, and if values have no lock.
    pub fn read_with(&self, key: &[u8], flags: UpdateFlags) -> Result<Vec<u8>, Errno> {
        // Flags before rights, the value's lock after them, as in the kernel.
        self.base()
            .check_read(flags.difference(UpdateFlags::LOCK))?;
        self.base().user_reads()?;
        self.base().check_read(flags)?;
        self.base().check_key(key)?;
        if flags.contains(UpdateFlags::LOCK) {
            self.sys_lookup_locked(key)
        } else {
            self.sys_lookup(key)
        }
    }

    /// Writes a value as the system call does; the counterpart of `read`. For queues, stacks and
    /// bloom filters it pushes.
    ///
    /// # Errors
    /// As for [`Map::update`]; `EPERM` for frozen and `BPF_F_RDONLY` maps, `EINVAL` for keys and
    /// values of another size.
    pub fn write(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        self.base().user_writes()?;
        self.base().check_lock(flags)?;
        self.base().check_key(key)?;
        if value.len() != self.user_value_size() {
            return Err(Errno::EINVAL);
        }
        self.sys_update(key, value, flags)
    }

    /// Removes an element as the system call does.
    ///
    /// # Errors
    /// As for [`Map::delete`]; `EPERM` for frozen and `BPF_F_RDONLY` maps.
    pub fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        self.base().user_writes()?;
        self.base().check_key(key)?;
        self.sys_delete(key)
    }

    /// The key after `key` in the map's order; the first one for `None` or if there is no such
    /// key. Arrays are ordered by index, hashes by insertion, LPM tries from longer to shorter
    /// prefixes.
    ///
    /// # Errors
    /// `ENOENT` at the end; the kernel's error if the kind has no keys.
    pub fn next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        self.base().user_reads()?;
        key.map_or(Ok(()), |key| self.base().check_key(key))?;
        self.sys_next_key(key)
    }

    /// All keys, concatenated in the map's order.
    ///
    /// # Errors
    /// The kernel's error if the kind has no keys.
    pub fn keys(&self) -> Result<Vec<u8>, Errno> {
        let mut keys = Vec::new();
        let mut last: Option<Vec<u8>> = None;
        loop {
            match self.sys_next_key(last.as_deref()) {
                Ok(key) => {
                    keys.extend_from_slice(&key);
                    last = Some(key);
                }
                Err(Errno::ENOENT) => return Ok(keys),
                Err(errno) => return Err(errno),
            }
        }
    }
}

/// The kinds of maps that helpers treat differently.
#[derive(Debug)]
#[non_exhaustive]
pub enum Kind<'a> {
    /// Keys and values.
    Values,
    /// `BPF_MAP_TYPE_RINGBUF`.
    RingBuf(&'a RingBuf),
    /// `BPF_MAP_TYPE_PERF_EVENT_ARRAY`.
    PerfEventArray(&'a PerfEventArray),
    /// `BPF_MAP_TYPE_PROG_ARRAY`.
    ProgArray(&'a ProgArray),
    /// A map of maps.
    MapOfMaps(&'a MapOfMaps),
    /// A queue or a stack: values without keys.
    Queue(&'a Queue),
    /// `BPF_MAP_TYPE_BLOOM_FILTER`.
    Bloom(&'a Bloom),
    /// `BPF_MAP_TYPE_STACK_TRACE`.
    StackTraces(&'a StackTraces),
    /// Storage of a task, an inode, a socket or a cgroup.
    Storage(&'a LocalStorage),
    /// Storage of a cgroup's programs, shared or per CPU.
    CgroupStorage(&'a CgroupStorage),
    /// `BPF_MAP_TYPE_CGROUP_ARRAY`.
    Cgroups(&'a CgroupArray),
    /// Sockets by index or key.
    Sockets(&'a Sockets),
    /// Network devices by index or key.
    Devices(&'a Devices),
    /// `BPF_MAP_TYPE_CPUMAP`.
    Cpus(&'a CpuMap),
    /// `BPF_MAP_TYPE_USER_RINGBUF`.
    UserRingBuf(&'a UserRingBuf),
    /// `BPF_MAP_TYPE_ARENA`.
    Arena(&'a Arena),
    /// `BPF_MAP_TYPE_STRUCT_OPS`.
    StructOps(&'a StructOps),
}
