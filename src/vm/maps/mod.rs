//! Maps: one file per kind, behind one trait.
//!
//! A map has two sides, as in the kernel. A *program* looks up an element and gets
//! its address (an element's number in the map's [`Slab`]); *user space* reads and
//! writes whole values by key through the syscall, and for per-CPU maps sees the
//! values of all CPUs at once.

use std::fmt;
use std::sync::Arc;

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
    MapOfMaps(&'a dyn MapOfMaps),
    /// A queue, stack or bloom filter: values without keys.
    Queue(&'a dyn Queue),
}
