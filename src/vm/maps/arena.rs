//! Arenas: memory that programs and user space share, by pages (`kernel/bpf/arena.c`).
//!
//! A pointer into an arena has two forms. Both have the low 32 bits of the user's address;
//! above them a program has the kernel's upper half when it loads and stores, and the
//! user's when it keeps the pointer for others (`addr_space_cast`). Here the kernel's half
//! is that of a region of the machine, whose offsets are those 32 bits.

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
/// Where user space has an arena that says nothing: an address that `mmap` could choose,
/// whose low 32 bits are not zero, so that no byte of it looks like a null pointer.
const USER: u64 = 0x7f00_0001_0000;
/// The same for arenas that fill the 4 GiB that they can.
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

    /// Its memory, to be put into the address space.
    #[must_use]
    pub const fn pages(&self) -> &Arc<Pages> {
        &self.pages
    }

    /// The address of its first byte in user space.
    #[must_use]
    pub const fn user_start(&self) -> u64 {
        self.user_start
    }

    /// The address behind its last byte in user space.
    #[must_use]
    pub fn user_end(&self) -> u64 {
        self.user_start + u64::from(self.base.def().max_entries) * PAGE
    }

    /// What a program's pointer is for user space (`addr_space_cast(…, 1, 0)`).
    #[must_use]
    pub const fn to_user(&self, pointer: u64) -> u64 {
        let low = lower(pointer);
        if low == 0 || self.base.def().flags.contains(MapFlags::NO_USER_CONV) {
            return low;
        }
        upper(self.user_start) | low
    }

    /// The number of the page that an address is on, by its lower half.
    const fn page(&self, address: u64) -> u64 {
        lower(address.wrapping_sub(lower(self.user_start))) / PAGE
    }

    /// Makes pages, at an address or, for 0, where there is room: the user's address of
    /// the first one, or 0 (`bpf_arena_alloc_pages`).
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

    /// Takes pages away (`bpf_arena_free_pages`): of an address only the lower half
    /// counts, and pages past the end don't.
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

    /// Keeps pages from being allocated without making them (`bpf_arena_reserve_pages`).
    ///
    /// # Errors
    /// `EINVAL` for an address that is none of a page here, or pages past the end; `EBUSY`
    /// where some of them are taken.
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

    /// Where bytes at an address are in the block; a test's access makes their pages, as
    /// a page fault does.
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

    /// What user space reads at an address, or at one of which only the lower half is
    /// given.
    ///
    /// # Errors
    /// `EFAULT` outside of the arena, and for pages that are not there where the map has
    /// `BPF_F_SEGV_ON_FAULT`.
    pub fn read_memory(&self, address: u64, len: usize) -> Result<Vec<u8>, Errno> {
        let at = self.fault_in(address, len)?;
        self.pages.bytes().copy(at, len).ok_or(Errno::EFAULT)
    }

    /// What user space writes at an address.
    ///
    /// # Errors
    /// As of [`read_memory`](Self::read_memory).
    pub fn write_memory(&self, address: u64, bytes: &[u8]) -> Result<(), Errno> {
        let at = self.fault_in(address, bytes.len())?;
        self.pages.bytes().write(at, bytes).ok_or(Errno::EFAULT)
    }

    /// How many pages are there.
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
