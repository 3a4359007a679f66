//! Arenas: pages that programs and user space share (`kernel/bpf/arena.c`).
//!
//! A pointer into an arena has two forms with the same low 32 bits. The upper half is the
//! kernel's when the program loads or stores, and user space's when the program keeps the
//! pointer for others (`addr_space_cast`). Here, the kernel's upper half is that of a region
//! of the machine, and the low 32 bits are the offset in the region.

use std::sync::Arc;

use super::super::memory::Pages;
use super::base::Base;
use super::free_ranges::FreeRanges;
use super::lock::Lock;
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::{MapFlags, UpdateFlags, limits};
use crate::util::Errno;

/// `BPF_MAP_TYPE_ARENA`.
#[derive(Debug)]
pub struct Arena {
    base: Base,
    pages: Arc<Pages>,
    user_start: u64,
    free: Lock<FreeRanges>,
}

const PAGE: u64 = limits::PAGE_SIZE as u64;
/// Default user-space address: one that `mmap` could choose, with nonzero low 32 bits, so that
/// no address in the arena looks like a null pointer.
const USER: u64 = 0x7f00_0001_0000;
/// Default user-space address of arenas with the maximum size of 4 GiB.
const USER_WHOLE: u64 = 0x7f00_0000_0000;

/// The upper half of an address.
const fn upper(address: u64) -> u64 {
    address & !(u32::MAX as u64)
}

/// The lower half of an address.
const fn lower(address: u64) -> u64 {
    address & u32::MAX as u64
}

impl Arena {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        let size = u64::from(def.max_entries) * PAGE;
        let user_start = match def.extra {
            0 if lower(USER) + size <= 1 << 32 => USER,
            0 => USER_WHOLE,
            start => start,
        };
        let start = u32::try_from(lower(user_start)).unwrap_or_default();
        Self {
            base: Base::new(def, cpus),
            pages: Arc::new(Pages::new(def.max_entries as usize, start)),
            user_start,
            free: Lock::new(FreeRanges::new(def.max_entries)),
        }
    }

    /// The pages, to be inserted into the address space.
    #[must_use]
    pub const fn pages(&self) -> &Arc<Pages> {
        &self.pages
    }

    /// The user-space address of the first byte.
    #[must_use]
    pub const fn user_start(&self) -> u64 {
        self.user_start
    }

    /// The user-space address after the last byte.
    #[must_use]
    pub fn user_end(&self) -> u64 {
        self.user_start + u64::from(self.base.def().max_entries) * PAGE
    }

    /// Converts a program's pointer to a user-space one (`addr_space_cast(…, 1, 0)`).
    #[must_use]
    pub const fn to_user(&self, pointer: u64) -> u64 {
        match lower(pointer) {
            0 => 0,
            low => self.user_half() | low,
        }
    }

    /// The upper half of user-space addresses; 0 if the map's pointers are not converted
    /// (`BPF_F_NO_USER_CONV`).
    #[must_use]
    pub const fn user_half(&self) -> u64 {
        match self.base.def().flags.contains(MapFlags::NO_USER_CONV) {
            true => 0,
            false => upper(self.user_start),
        }
    }

    /// The number of the page that contains an address; only the low half of the address counts.
    const fn page(&self, address: u64) -> u64 {
        lower(address.wrapping_sub(lower(self.user_start))) / PAGE
    }

    /// Allocates pages at an address, or anywhere if it is 0. Returns the user-space address of
    /// the first page, or 0 on failure (`bpf_arena_alloc_pages`).
    #[must_use]
    pub fn allocate(&self, address: u64, count: u32) -> u64 {
        let most = self.base.def().max_entries;
        if count == 0 || count > most {
            return 0;
        }
        let mut free = self.free.lock();
        let first = if address == 0 {
            free.find(count)
        } else if address.is_multiple_of(PAGE) {
            let page = self.page(address);
            let first = u32::try_from(page)
                .ok()
                .filter(|page| *page <= most - count);
            first.filter(|first| free.contains(*first, count))
        } else {
            None
        };
        let Some(first) = first else { return 0 };
        free.take(first, count);
        for page in first..first + count {
            self.pages.set(page as usize, true);
        }
        upper(self.user_start) | lower(self.user_start + u64::from(first) * PAGE)
    }

    /// Frees pages (`bpf_arena_free_pages`). Only the low half of the address counts, and pages
    /// past the end are ignored.
    pub fn release(&self, address: u64, count: u32) {
        let address = lower(address) & !(PAGE - 1);
        let full = upper(self.user_start) | address;
        let end = self.user_end().min(full + u64::from(count) * PAGE);
        if address == 0 && self.user_start == 0 || full < self.user_start || full >= end {
            return;
        }
        let pages = u32::try_from(self.page(address)).and_then(|first| {
            let count = u32::try_from((end - full) / PAGE)?;
            Ok((first, count))
        });
        let Ok((first, count)) = pages else { return };
        self.free.lock().give(first, count);
        for page in first..first + count {
            self.pages.set(page as usize, false);
        }
    }

    /// Reserves pages without allocating them (`bpf_arena_reserve_pages`).
    ///
    /// # Errors
    /// `EINVAL` if the address is not page-aligned or the pages are out of range; `EBUSY` if
    /// some of them are allocated or reserved.
    pub fn reserve(&self, address: u64, count: u32) -> Result<(), Errno> {
        if count == 0 {
            return Ok(());
        }
        let most = self.base.def().max_entries;
        if !address.is_multiple_of(PAGE) || count > most {
            return Err(Errno::EINVAL);
        }
        let first = u32::try_from(self.page(address)).map_err(|_| Errno::EINVAL)?;
        if first > most - count {
            return Err(Errno::EINVAL);
        }
        let mut free = self.free.lock();
        if !free.contains(first, count) {
            return Err(Errno::EBUSY);
        }
        free.take(first, count);
        Ok(())
    }

    /// Offset of the bytes at an address in the block. Allocates their pages, like a page fault
    /// of user space.
    fn fault_in(&self, address: u64, len: usize) -> Result<usize, Errno> {
        let full = upper(self.user_start) | lower(address);
        if upper(address) != 0 && address != full {
            return Err(Errno::EFAULT);
        }
        let offset = i64::try_from(lower(address)).map_err(|_| Errno::EFAULT)?;
        let at = self.pages.at(offset, len).ok_or(Errno::EFAULT)?;
        let page_size = limits::PAGE_SIZE as usize;
        for page in at / page_size..(at + len).div_ceil(page_size) {
            if self.pages.has(page) {
                continue;
            }
            if self.base.def().flags.contains(MapFlags::SEGV_ON_FAULT) {
                return Err(Errno::EFAULT);
            }
            let number = u32::try_from(page).map_err(|_| Errno::EFAULT)?;
            self.free.lock().take(number, 1);
            self.pages.set(page, true);
        }
        Ok(at)
    }

    /// Reads memory as user space does, at a full address or only its lower half.
    ///
    /// # Errors
    /// `EFAULT` outside of the arena, and for unallocated pages if the map has
    /// `BPF_F_SEGV_ON_FAULT`.
    pub fn read_memory(&self, address: u64, len: usize) -> Result<Vec<u8>, Errno> {
        let at = self.fault_in(address, len)?;
        self.pages.bytes().copy(at, len).ok_or(Errno::EFAULT)
    }

    /// Writes memory as user space does.
    ///
    /// # Errors
    /// As for [`read_memory`](Self::read_memory).
    pub fn write_memory(&self, address: u64, bytes: &[u8]) -> Result<(), Errno> {
        let at = self.fault_in(address, bytes.len())?;
        self.pages.bytes().write(at, bytes).ok_or(Errno::EFAULT)
    }

    /// How many pages are allocated.
    #[must_use]
    pub fn page_count(&self) -> usize {
        let most = self.base.def().max_entries as usize;
        (0..most).filter(|page| self.pages.has(*page)).count()
    }
}

impl Map for Arena {
    fn base(&self) -> &Base {
        &self.base
    }

    fn kind(&self) -> Kind<'_> {
        Kind::Arena(self)
    }

    fn sys_lookup(&self, _key: &[u8]) -> Result<Vec<u8>, Errno> {
        Err(Errno::EINVAL)
    }

    fn sys_update(&self, _key: &[u8], _value: &[u8], _flags: UpdateFlags) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn sys_delete(&self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn sys_next_key(&self, _key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        Err(Errno::EOPNOTSUPP)
    }
}
