//! Memory with pages that can be allocated and freed: an arena.

use std::sync::atomic::{AtomicBool, Ordering};

use super::shared::SharedBytes;
use super::zeroed::zeroed;

/// Bytes of a page.
const PAGE: usize = crate::spec::limits::PAGE_SIZE as usize;

/// A block of pages, none allocated at first. Address space is reserved for all of them;
/// untouched pages use no memory.
#[derive(Debug)]
pub struct Pages {
    bytes: SharedBytes,
    /// Whether each page is allocated.
    present: Box<[AtomicBool]>,
    /// Offset of the first page in its region: the low 32 bits of its user address, so that
    /// both sides of a cast have the same low 32 bits.
    start: u32,
}

impl Pages {
    /// `count` pages, the first of which is at offset `start` of its region.
    #[must_use]
    pub fn new(count: usize, start: u32) -> Self {
        Self {
            bytes: SharedBytes::zeroed(PAGE.saturating_mul(count)),
            present: zeroed(count),
            start,
        }
    }

    /// The bytes of all pages.
    #[must_use]
    pub const fn bytes(&self) -> &SharedBytes {
        &self.bytes
    }

    /// The host address of a byte for each page, which is 0 while the page is not allocated.
    #[must_use]
    pub fn present_address(&self) -> u64 {
        self.present.as_ptr().expose_provenance() as u64
    }

    /// Offset of the first page in the region.
    #[must_use]
    pub const fn start(&self) -> u32 {
        self.start
    }

    /// Whether a page is allocated.
    #[must_use]
    pub fn has(&self, page: usize) -> bool {
        let present = self.present.get(page);
        present.is_some_and(|present| present.load(Ordering::Relaxed))
    }

    /// Allocates a zeroed page, or frees it.
    pub fn set(&self, page: usize, present: bool) {
        if let Some(there) = self.present.get(page) {
            let words = PAGE / 8;
            self.bytes.clear_words(words * page..words * (page + 1));
            there.store(present, Ordering::Relaxed);
        }
    }

    /// Offset in the block of an access to `len` bytes at an offset in the region; `None` if it
    /// is outside of the block.
    #[must_use]
    pub fn at(&self, offset: i64, len: usize) -> Option<usize> {
        let at = usize::try_from(offset.checked_sub(i64::from(self.start))?).ok()?;
        (at.checked_add(len)? <= self.bytes.len()).then_some(at)
    }

    /// The host address of an access to `len` bytes at an offset in the region; `None` if it is
    /// outside of the block, or on a page that is not allocated.
    #[must_use]
    pub fn host(&self, offset: i64, len: usize) -> Option<u64> {
        let at = self
            .at(offset, len)
            .filter(|at| self.are_present(*at, len))?;
        Some(self.bytes.host_address() + at as u64)
    }

    /// Whether all pages that `len` bytes at offset `at` of the block lie on are allocated.
    #[must_use]
    pub fn are_present(&self, at: usize, len: usize) -> bool {
        let last = at.saturating_add(len.saturating_sub(1));
        (at / PAGE..=last / PAGE).all(|page| self.has(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_zeroed_and_go() {
        let pages = Pages::new(3, 0x1000);
        assert!(!pages.has(1));
        pages.set(1, true);
        let at = pages.at(0x2ff8, 8).unwrap();
        assert_eq!((at, pages.are_present(at, 8)), (0x1ff8, true));
        assert!(!pages.are_present(at, 9));
        pages.bytes().store(at, 8, 7);
        pages.set(1, false);
        pages.set(1, true);
        assert_eq!(pages.bytes().load(at, 8), Some(0));
        assert_eq!(pages.at(0xff8, 8), None);
        assert_eq!(pages.at(0x3ffc, 8), None);
        assert!(!pages.has(3));
    }
}
