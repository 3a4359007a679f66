//! Maps: one file per kind, behind one trait.
//!
//! A map has two sides, as in the kernel. A *program* looks up an element and gets
//! its address (an element's number in the map's [`Slab`]); *user space* reads and
//! writes whole values by key through the system call, and for per-CPU maps sees
//! the values of all CPUs at once. The trait's `lookup`, `update` and `delete` are
//! the program's side; `read`, `write`, `remove` and `next_key`
//! of `dyn Map` are user space's, with the rights that it has.
//!
//! Where user space names a task, a cgroup, a socket or a program by a file descriptor, a
//! test does by the object's address or the program's handle, with a function of the
//! kind's own: [`LocalStorage::set`], [`Sockets::set`], [`Devices::set`]. The system call
//! answers there what the kernel answers to a descriptor that nobody has.

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
mod handles;
mod hash;
mod index;
mod keyed;
mod list;
mod lock;
mod lpm;
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
mod uses;
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
pub use of_maps::MapOfMaps;
pub use perf_events::PerfEventArray;
pub use programs::ProgArray;
pub use queue::Queue;
pub use redirect_value::RedirectValue;
pub use ringbuf::{Record, RingBuf};
pub use sockets::Sockets;
pub use stack_traces::StackTraces;
pub use storage::LocalStorage;
pub use struct_ops::{Function, StructOps};
pub use user_ringbuf::{Draining, Next, UserRingBuf};

/// A map in the machine. Shared by all programs and threads that use it.
pub trait Map: Send + Sync + fmt::Debug {
    /// What it has in common with all others.
    fn base(&self) -> &Base;

    /// What kind of thing it is, for helpers that need more than values.
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
    /// `EOPNOTSUPP` where programs can't look up in this kind.
    fn lookup(&self, _cpu: u32, _key: &[u8]) -> Result<Option<usize>, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// The same, seen by nobody: an LRU map does not take it for a use.
    ///
    /// # Errors
    /// As of [`lookup`](Self::lookup).
    fn find(&self, cpu: u32, key: &[u8]) -> Result<Option<usize>, Errno> {
        self.lookup(cpu, key)
    }

    /// Stores a value (`value_size` bytes) from a program on `cpu`.
    ///
    /// # Errors
    /// The kernel's: `EINVAL` for flags, `E2BIG` when full or past the end,
    /// `EEXIST` and `ENOENT` by flag; `EOPNOTSUPP` where programs can't.
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
    /// The kernel's: `ENOENT` where there is none, `EINVAL` for arrays;
    /// `EOPNOTSUPP` where programs can't.
    fn delete(&self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// `BPF_MAP_LOOKUP_ELEM`, rights aside: use `read` of `dyn Map`.
    ///
    /// # Errors
    /// `ENOENT` where there is none; the kernel's where the kind can't be read.
    fn sys_lookup(&self, key: &[u8]) -> Result<Vec<u8>, Errno>;

    /// `BPF_MAP_LOOKUP_ELEM` with `BPF_F_LOCK`, rights aside: use `read_with` of
    /// `dyn Map`, which asks only where a value has a lock.
    ///
    /// # Errors
    /// As of [`sys_lookup`](Self::sys_lookup), `EDEADLK` where the lock stays held.
    fn sys_lookup_locked(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        self.sys_lookup(key)
    }

    /// `BPF_MAP_LOOKUP_AND_DELETE_ELEM`, rights aside: use `take` of `dyn Map`, which
    /// asks only hashes and stack traces. With `lock` the value's lock is held meanwhile.
    ///
    /// # Errors
    /// As of [`sys_lookup`](Self::sys_lookup).
    fn sys_lookup_and_delete(&self, _key: &[u8], _lock: bool) -> Result<Vec<u8>, Errno> {
        Err(Errno::ENOTSUPP)
    }

    /// The elements of a hash's bucket, read (and removed) at one moment; `None` past
    /// the last bucket. For `read_batch` and `take_batch` of `dyn Map`.
    ///
    /// # Errors
    /// `ENOSPC` where there are more than `most`.
    fn sys_bucket(
        &self,
        _bucket: u32,
        _most: u32,
        _reading: Reading,
    ) -> Result<Option<Bucket>, Errno> {
        Ok(None)
    }

    /// `BPF_MAP_UPDATE_ELEM`, rights aside: use `write` of `dyn Map`.
    ///
    /// # Errors
    /// As of [`update`](Self::update).
    fn sys_update(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno>;

    /// `BPF_MAP_DELETE_ELEM`, rights aside: use `remove` of `dyn Map`.
    ///
    /// # Errors
    /// As of [`delete`](Self::delete).
    fn sys_delete(&self, key: &[u8]) -> Result<(), Errno> {
        self.delete(key)
    }

    /// `BPF_MAP_GET_NEXT_KEY`, rights aside: use `next_key` of `dyn Map`.
    ///
    /// # Errors
    /// `ENOENT` at the end; the kernel's where the kind has no keys.
    fn sys_next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno>;
}

/// What user space does with a map.
impl dyn Map + '_ {
    /// What it was made from.
    #[must_use]
    pub fn def(&self) -> &MapDef {
        self.base().def()
    }

    /// Bytes of a value on the system call's side: `value_size`, or for per-CPU
    /// maps `value_size` rounded up to 8, times the number of CPUs.
    #[must_use]
    pub fn user_value_size(&self) -> usize {
        let (def, cpus) = (self.def(), self.base().cpus());
        let size = def.map_type.user_value_size(def.value_size, cpus);
        usize::try_from(size).unwrap_or(usize::MAX)
    }

    /// From now on user space can't write, only programs can (`BPF_MAP_FREEZE`).
    pub fn freeze(&self) {
        self.base().freeze();
    }

    /// Reads a value as the system call does: for per-CPU maps the values of all
    /// CPUs, each rounded up to 8 bytes; for arrays of programs and maps of maps
    /// the number of what they hold; for queues and stacks, which have no keys,
    /// what `peek` sees.
    ///
    /// # Errors
    /// `ENOENT` where there is none, `EPERM` for `BPF_F_WRONLY` maps; the
    /// kernel's where the kind can't be read.
    pub fn read(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        self.read_with(key, UpdateFlags::empty())
    }

    /// The same with flags, of which there is one: with `BPF_F_LOCK` the value's
    /// `bpf_spin_lock` is held meanwhile. Locks, timers and kernel pointers read as zero.
    ///
    /// # Errors
    /// As of `read`; `EINVAL` for other flags, and where a value has no lock.
    pub fn read_with(&self, key: &[u8], flags: UpdateFlags) -> Result<Vec<u8>, Errno> {
        // Before rights, as in the kernel; the lock is looked for behind them.
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

    /// Writes a value as the system call does; the counterpart of `read`. Into
    /// queues, stacks and bloom filters it pushes.
    ///
    /// # Errors
    /// As of [`Map::update`]; `EPERM` for frozen and `BPF_F_RDONLY` maps,
    /// `EINVAL` for keys and values of another size.
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
    /// As of [`Map::delete`]; `EPERM` for frozen and `BPF_F_RDONLY` maps.
    pub fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        self.base().user_writes()?;
        self.base().check_key(key)?;
        self.sys_delete(key)
    }

    /// The key after `key` in the map's order; the first one for `None` or for a
    /// key that is not there. The order is that of the indices in arrays, that of
    /// insertion in hashes, and the more specific first in LPM tries.
    ///
    /// # Errors
    /// `ENOENT` at the end; the kernel's where the kind has no keys.
    pub fn next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        self.base().user_reads()?;
        key.map_or(Ok(()), |key| self.base().check_key(key))?;
        self.sys_next_key(key)
    }

    /// All keys that are there now, one behind the other in the map's order.
    ///
    /// # Errors
    /// The kernel's where the kind has no keys.
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

/// Kinds that helpers treat in a way of their own.
#[derive(Debug)]
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
    /// Storage of a cgroup's programs, one for all CPUs or one for each.
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
