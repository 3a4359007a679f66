//! Maps: one file per kind, behind one trait.
//!
//! A map has two sides, as in the kernel. A *program* looks up an element and gets
//! its address (an element's number in the map's [`Slab`]); *user space* reads and
//! writes whole values by key through the syscall, and for per-CPU maps sees the
//! values of all CPUs at once.

mod array;
mod create;
mod hash;
mod lpm;
mod lru;
mod map_of_maps;
mod per_cpu;
mod perf_event_array;
mod placeholder;
mod prog_array;
mod queue;
mod ringbuf;

use std::fmt;
use std::sync::Arc;

pub use create::{MapError, create};
pub use map_of_maps::MapOfMaps;
pub use perf_event_array::PerfEventArray;
pub use prog_array::ProgArray;
pub use queue::Queue;
pub use ringbuf::{Reserved, RingBuf};

use super::memory::Slab;
use crate::program::MapDef;
use crate::spec::UpdateFlags;
use crate::util::Errno;

/// A map in the machine. Shared by all programs and threads that use it.
pub trait Map: Send + Sync + fmt::Debug {
    /// What it was made from.
    fn def(&self) -> &MapDef;

    /// What kind of thing it is, for helpers that need more than values.
    fn kind(&self) -> Kind<'_> {
        Kind::Values
    }

    /// Whether this kind has no implementation: everything then fails.
    fn is_placeholder(&self) -> bool {
        false
    }

    /// Storage of the values that programs can point to.
    fn slab(&self) -> Option<&Arc<Slab>> {
        None
    }

    /// The element that a program on `cpu` finds under `key` (`key_size` bytes).
    ///
    /// # Errors
    /// `EOPNOTSUPP` where programs can't look up in this kind.
    fn lookup(&self, cpu: u32, key: &[u8]) -> Result<Option<usize>, Errno>;

    /// Stores a value (`value_size` bytes) from a program on `cpu`.
    ///
    /// # Errors
    /// The kernel's: `EINVAL` for flags, `E2BIG` when full or past the end,
    /// `EEXIST` and `ENOENT` by flag.
    fn update(&self, cpu: u32, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno>;

    /// Removes an element.
    ///
    /// # Errors
    /// The kernel's: `ENOENT` where there is none, `EINVAL` for arrays.
    fn delete(&self, key: &[u8]) -> Result<(), Errno>;

    /// The key after `key` in the map's order; the first one for `None` or for a
    /// key that is not there.
    ///
    /// # Errors
    /// `ENOENT` at the end; the kernel's where the kind has no order.
    fn next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno>;

    /// Reads a value as the syscall does: for per-CPU maps the values of all
    /// CPUs, each rounded up to 8 bytes.
    ///
    /// # Errors
    /// `ENOENT` where there is none; the kernel's where the kind can't be read.
    fn read(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        let element = self.lookup(0, key)?.ok_or(Errno::ENOENT)?;
        let slab = self.slab().ok_or(Errno::ENOTSUPP)?;
        slab.value(element).ok_or(Errno::ENOENT)
    }

    /// Writes a value as the syscall does; the counterpart of [`read`](Self::read).
    ///
    /// # Errors
    /// As of [`update`](Self::update).
    fn write(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        self.update(0, key, value, flags)
    }

    /// How many entries it has now; for arrays, all of them.
    fn len(&self) -> usize {
        self.def().max_entries as usize
    }

    /// Whether it has no entries.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of a value on the syscall's side: `value_size`, or for per-CPU maps
    /// `value_size` rounded up to 8, times the number of CPUs.
    fn user_value_size(&self) -> usize {
        self.def().value_size as usize
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
    /// A queue, stack or bloom filter: values without keys.
    Queue(&'a Queue),
}

/// What `BPF_NOEXIST` and `BPF_EXIST` ask of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Demand {
    Any,
    Absent,
    Present,
}

impl Demand {
    /// Reads the flags of an update. Both at once are an error, and so is
    /// `BPF_F_LOCK`: no map here has values with a lock in them.
    fn of(flags: UpdateFlags) -> Result<Self, Errno> {
        match flags.bits() {
            0 => Ok(Self::Any),
            1 => Ok(Self::Absent),
            2 => Ok(Self::Present),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Whether an element that is there, or is not, may be updated
    /// (`check_flags`, `kernel/bpf/hashtab.c`).
    fn check(self, there: bool) -> Result<(), Errno> {
        match (self, there) {
            (Self::Absent, true) => Err(Errno::EEXIST),
            (Self::Present, false) => Err(Errno::ENOENT),
            _ => Ok(()),
        }
    }
}

/// The little-endian index that a 4-byte key is.
fn index_of(key: &[u8]) -> Result<u32, Errno> {
    key.try_into()
        .map(u32::from_le_bytes)
        .map_err(|_| Errno::EINVAL)
}

/// The key after `key` in a map of `max` numbered entries
/// (`array_map_get_next_key`, `kernel/bpf/arraymap.c`).
fn next_index(key: Option<&[u8]>, max: u32) -> Result<Vec<u8>, Errno> {
    let next = match key.map(index_of).transpose()? {
        Some(index) if index < max => index + 1,
        _ => 0,
    };
    if next < max {
        Ok(next.to_le_bytes().to_vec())
    } else {
        Err(Errno::ENOENT)
    }
}
