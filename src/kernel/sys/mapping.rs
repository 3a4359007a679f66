//! Memory that is shared with the kernel.

use std::os::fd::{AsRawFd, OwnedFd};

use super::bpf::{Result, last_errno};
use crate::spec::limits::PAGE_SIZE;
use crate::util::Errno;

/// Memory shared with the kernel, which is unmapped when this is dropped. Who reads it
/// where it lies ([`start`](Self::start)) keeps this value as long as what is borrowed.
#[derive(Debug)]
pub struct Mapping {
    address: *mut libc::c_void,
    size: usize,
}

// SAFETY: the memory belongs to the process: any thread may use and unmap it.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference gives an address and a size, which take `unsafe` to be used;
// writing takes a mutable one.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps an arena of so many pages where its definition wants it, or anywhere. The
    /// verifier takes a program with an arena only when it has an address in user space.
    pub fn of_arena(fd: &OwnedFd, pages: u32, wanted: u64) -> Result<Self> {
        let wanted = usize::try_from(wanted).map_err(|_| Errno::EINVAL)?;
        // The kernel counts in its own pages, and wants the whole of it mapped.
        let size = (pages as usize).checked_mul(page_size());
        let both = libc::PROT_READ | libc::PROT_WRITE;
        Self::new(fd, wanted, size.ok_or(Errno::EINVAL)?, both, 0)
    }

    /// Maps `size` bytes of what a descriptor stands for, from `offset` on.
    pub fn new(
        fd: &OwnedFd,
        wanted: usize,
        size: usize,
        rights: libc::c_int,
        offset: libc::off_t,
    ) -> Result<Self> {
        // SAFETY: without MAP_FIXED the kernel chooses memory that nothing uses.
        let address = unsafe {
            libc::mmap(
                std::ptr::without_provenance_mut(wanted),
                size,
                rights,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                offset,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(last_errno());
        }
        Ok(Self { address, size })
    }

    /// The memory's first byte, which is there as long as this value.
    pub const fn start(&self) -> *mut u8 {
        self.address.cast()
    }

    /// Bytes of the memory.
    pub const fn size(&self) -> usize {
        self.size
    }
}

impl Mapping {
    /// Writes to the memory's beginning.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() > self.size {
            return Err(Errno::E2BIG);
        }
        // SAFETY: the memory is as long as that, writable (an arena's, the only one that
        // is written to like this) and ours, so `bytes` is elsewhere; nobody else refers to
        // it, and a program that changes it meanwhile would change bytes only.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.address.cast(), bytes.len()) };
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped for this value, and whoever refers to it keeps
        // this value.
        unsafe { libc::munmap(self.address, self.size) };
    }
}

/// Bytes of a page of this machine.
pub fn page_size() -> usize {
    // SAFETY: a question without arguments in memory.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(PAGE_SIZE as usize)
}
