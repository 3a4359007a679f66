//! Memory shared with the kernel.

use std::os::fd::{AsRawFd, OwnedFd};

use super::bpf::{Result, last_errno};
use crate::spec::limits::PAGE_SIZE;
use crate::util::Errno;

/// Memory shared with the kernel, unmapped on drop. References to it ([`start`](Self::start))
/// must not outlive this value.
#[derive(Debug)]
pub struct Mapping {
    address: *mut libc::c_void,
    size: usize,
}

// SAFETY: the memory belongs to the process: any thread may use and unmap it.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference only gives an address and a size, whose use is `unsafe`; `write`
// takes a mutable reference.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps an arena of `pages` pages at its definition's address, or anywhere. The verifier
    /// accepts a program with an arena only if the arena is mapped in user space.
    pub fn of_arena(fd: &OwnedFd, pages: u32, wanted: u64) -> Result<Self> {
        let wanted = usize::try_from(wanted).map_err(|_| Errno::EINVAL)?;
        // `max_entries` counts the kernel's pages, and the kernel wants all of them mapped.
        let size = (pages as usize).checked_mul(page_size());
        let both = libc::PROT_READ | libc::PROT_WRITE;
        Self::new(fd, wanted, size.ok_or(Errno::EINVAL)?, both, 0)
    }

    /// Maps `size` bytes of a file descriptor from `offset`.
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

    /// The memory's first byte, valid as long as this value.
    pub const fn start(&self) -> *mut u8 {
        self.address.cast()
    }

    /// Size of the memory in bytes.
    pub const fn size(&self) -> usize {
        self.size
    }
}

impl Mapping {
    /// Writes to the start of the memory.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() > self.size {
            return Err(Errno::E2BIG);
        }
        // SAFETY: the memory is at least that long and writable (only an arena's is written
        // like this). It is ours, so it does not overlap `bytes`, and no reference to it
        // exists; a program that changes it at the same time changes plain bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.address.cast(), bytes.len()) };
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped for this value, and references to it don't outlive this
        // value.
        unsafe { libc::munmap(self.address, self.size) };
    }
}

/// The machine's page size in bytes.
pub fn page_size() -> usize {
    // SAFETY: no addresses.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(PAGE_SIZE as usize)
}
