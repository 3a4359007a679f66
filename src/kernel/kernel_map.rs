//! Operations on a map in the kernel, each with the errno it returns.

use super::loaded_program::LoadedProgram;
use super::outputs::ring::KernelRing;
use super::sys::{KernelBatch, MapFd};
use std::os::fd::BorrowedFd;

use crate::spec::UpdateFlags;
use crate::util::Errno;

type Result<T> = std::result::Result<T, Errno>;

/// A map that [`LoadedMaps`](super::LoadedMaps) created. Keys and values must have the map's
/// sizes, else the error is `EINVAL`. Values of per-CPU maps hold all CPUs' values, each padded
/// to eight bytes.
#[derive(Debug, Clone, Copy)]
pub struct KernelMap<'a> {
    fd: &'a MapFd,
}

impl<'a> KernelMap<'a> {
    pub(super) const fn new(fd: &'a MapFd) -> Self {
        Self { fd }
    }

    /// Size in bytes of a value as user space sees it.
    #[must_use]
    pub const fn value_size(&self) -> usize {
        self.fd.value_size()
    }

    /// Size in bytes of a key.
    #[must_use]
    pub const fn key_size(&self) -> usize {
        self.fd.key_size()
    }

    pub(super) const fn fd(&self) -> &'a MapFd {
        self.fd
    }

    /// Stores a file descriptor in a map of maps or programs.
    pub(super) fn put_fd(&self, key: &[u8], fd: BorrowedFd<'_>, flags: UpdateFlags) -> Result<()> {
        self.fd.update_fd(key, fd, flags.bits())
    }

    /// `BPF_MAP_LOOKUP_ELEM`.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn lookup(&self, key: &[u8], flags: UpdateFlags) -> Result<Vec<u8>> {
        self.fd.lookup(key, flags.bits())
    }

    /// Looks up a value in a bloom filter: `Ok` if it may be in the set.
    ///
    /// # Errors
    /// The kernel's error: `ENOENT` if the value is not in the set.
    pub fn contains(&self, value: &[u8]) -> Result<()> {
        self.fd.lookup_into(&[], &mut value.to_vec(), 0)
    }

    /// `BPF_MAP_UPDATE_ELEM`.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn update(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<()> {
        self.fd.update(key, value, flags.bits())
    }

    /// Stores a map in a map of maps.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn put_map(&self, key: &[u8], inner: &KernelMap<'_>, flags: UpdateFlags) -> Result<()> {
        self.fd.update_fd(key, inner.fd.as_fd(), flags.bits())
    }

    /// Stores a program in a prog array.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn put_program(&self, key: &[u8], program: &LoadedProgram) -> Result<()> {
        self.fd.update_fd(key, program.as_fd(), 0)
    }

    /// `BPF_MAP_DELETE_ELEM`.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        self.fd.delete(key)
    }

    /// `BPF_MAP_LOOKUP_AND_DELETE_ELEM`.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn lookup_and_delete(&self, key: &[u8], flags: UpdateFlags) -> Result<Vec<u8>> {
        self.fd.lookup_and_delete(key, flags.bits())
    }

    /// `BPF_MAP_GET_NEXT_KEY`.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>> {
        self.fd.next_key(key)
    }

    /// `BPF_MAP_LOOKUP_BATCH`.
    #[must_use]
    pub fn lookup_batch(&self, from: Option<&[u8]>, count: u32, flags: UpdateFlags) -> KernelBatch {
        self.fd.read_batch(from, count, flags.bits(), false)
    }

    /// `BPF_MAP_LOOKUP_AND_DELETE_BATCH`.
    #[must_use]
    pub fn lookup_and_delete_batch(
        &self,
        from: Option<&[u8]>,
        count: u32,
        flags: UpdateFlags,
    ) -> KernelBatch {
        self.fd.read_batch(from, count, flags.bits(), true)
    }

    /// `BPF_MAP_UPDATE_BATCH`: the result, and the number of elements written.
    pub fn update_batch(
        &self,
        keys: &[u8],
        values: &[u8],
        flags: UpdateFlags,
    ) -> (Result<()>, usize) {
        self.fd.write_batch(keys, Some(values), flags.bits())
    }

    /// `BPF_MAP_DELETE_BATCH`: the result, and the number of elements deleted.
    pub fn delete_batch(&self, keys: &[u8], flags: UpdateFlags) -> (Result<()>, usize) {
        self.fd.write_batch(keys, None, flags.bits())
    }

    /// The consumer of a ring buffer.
    ///
    /// # Errors
    /// `EBUSY` while the ring has another consumer; the kernel's error of mapping its memory.
    pub fn ring(&self) -> Result<KernelRing> {
        KernelRing::new(self.fd)
    }

    /// `BPF_MAP_FREEZE`.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn freeze(&self) -> Result<()> {
        self.fd.freeze()
    }
}
