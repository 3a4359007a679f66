//! A map in the kernel, operation by operation, with the errno that each gives.

use super::loaded_program::LoadedProgram;
use super::outputs::ring::KernelRing;
use super::sys::{KernelBatch, MapFd};
use std::os::fd::BorrowedFd;

use crate::spec::UpdateFlags;
use crate::util::Errno;

type Result<T> = std::result::Result<T, Errno>;

/// A map that [`LoadedMaps`](super::LoadedMaps) made. Keys and values are as long as the
/// map's, else the answer is `EINVAL`; values of per-CPU maps are those of all CPUs, each
/// padded to eight bytes.
#[derive(Debug, Clone, Copy)]
pub struct KernelMap<'a> {
    fd: &'a MapFd,
}

impl<'a> KernelMap<'a> {
    pub(super) const fn new(fd: &'a MapFd) -> Self {
        Self { fd }
    }

    /// Bytes of a value as user space sees it.
    #[must_use]
    pub const fn value_size(&self) -> usize {
        self.fd.value_size()
    }

    /// Bytes of a key.
    #[must_use]
    pub const fn key_size(&self) -> usize {
        self.fd.key_size()
    }

    pub(super) const fn fd(&self) -> &'a MapFd {
        self.fd
    }

    /// Puts what a descriptor stands for into a map of such things.
    pub(super) fn put_fd(&self, key: &[u8], fd: BorrowedFd<'_>, flags: UpdateFlags) -> Result<()> {
        self.fd.update_fd(key, fd, flags.bits())
    }

    /// `BPF_MAP_LOOKUP_ELEM`.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn lookup(&self, key: &[u8], flags: UpdateFlags) -> Result<Vec<u8>> {
        self.fd.lookup(key, flags.bits())
    }

    /// The same of a bloom filter: `Ok` where it may have the value.
    ///
    /// # Errors
    /// What the kernel says: `ENOENT` where it does not have it.
    pub fn contains(&self, value: &[u8]) -> Result<()> {
        self.fd.lookup_into(&[], &mut value.to_vec(), 0)
    }

    /// `BPF_MAP_UPDATE_ELEM`.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn update(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<()> {
        self.fd.update(key, value, flags.bits())
    }

    /// Puts a map into a map of maps.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn put_map(&self, key: &[u8], inner: &KernelMap<'_>, flags: UpdateFlags) -> Result<()> {
        self.fd.update_fd(key, inner.fd.as_fd(), flags.bits())
    }

    /// Puts a program into a prog array.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn put_program(&self, key: &[u8], program: &LoadedProgram) -> Result<()> {
        self.fd.update_fd(key, program.as_fd(), 0)
    }

    /// `BPF_MAP_DELETE_ELEM`.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        self.fd.delete(key)
    }

    /// `BPF_MAP_LOOKUP_AND_DELETE_ELEM`.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn lookup_and_delete(&self, key: &[u8], flags: UpdateFlags) -> Result<Vec<u8>> {
        self.fd.lookup_and_delete(key, flags.bits())
    }

    /// `BPF_MAP_GET_NEXT_KEY`.
    ///
    /// # Errors
    /// What the kernel says.
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

    /// `BPF_MAP_UPDATE_BATCH`: the result, and how many elements were written.
    pub fn update_batch(
        &self,
        keys: &[u8],
        values: &[u8],
        flags: UpdateFlags,
    ) -> (Result<()>, usize) {
        self.fd.write_batch(keys, Some(values), flags.bits())
    }

    /// `BPF_MAP_DELETE_BATCH`: the result, and how many elements were deleted.
    pub fn delete_batch(&self, keys: &[u8], flags: UpdateFlags) -> (Result<()>, usize) {
        self.fd.write_batch(keys, None, flags.bits())
    }

    /// The consumer of a ring buffer.
    ///
    /// # Errors
    /// `EBUSY` while there is another one; what the kernel says to mapping its memory.
    pub fn ring(&self) -> Result<KernelRing> {
        KernelRing::new(self.fd)
    }

    /// `BPF_MAP_FREEZE`.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn freeze(&self) -> Result<()> {
        self.fd.freeze()
    }
}
