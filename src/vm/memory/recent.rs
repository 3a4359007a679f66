//! The objects of kernel memory that a CPU read last: it reads them again without a search, and
//! machine code without a call.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::fault::{AccessKind, Problem};
use super::kernel::{Block, KernelBlocks};
use super::shared::SharedBytes;
use crate::isa::Size;

/// The number of entries.
const ENTRIES: usize = 64;
/// Bytes of an entry: a cache line, like the addresses that share an entry.
const ENTRY: usize = 64;
const _: () = assert!((ENTRIES - 1) * ENTRY == RecentBlocks::INDEX as usize);

/// A table of recently read kernel objects. The entry of an address is selected by its cache
/// line; it holds an object that was read at such an address:
///
/// | offset | 8 bytes |
/// |--:|---|
/// | 0 | the object's first address |
/// | 8 | the host address of its first byte |
/// | 16, 24, 32, 40 | how many offsets a load of 1, 2, 4 or 8 bytes can have; 0 in an empty entry |
///
/// Invariant: the object of an entry is in `kept`, so that its bytes stay where they are while
/// the entry is there. A freed object stays until [`forget_freed`](Self::forget_freed): a run
/// calls it at its start and after each call of a helper, so it may load from an object that
/// another CPU frees meanwhile, but not from one that its own program freed. While a run uses the
/// table, nothing else does: it has the machine exclusively.
pub struct RecentBlocks {
    table: SharedBytes,
    kept: Mutex<[Option<Arc<Block>>; ENTRIES]>,
    /// [`KernelBlocks::frees`] when freed objects were forgotten last.
    frees: AtomicU64,
}

impl Default for RecentBlocks {
    fn default() -> Self {
        Self {
            table: SharedBytes::zeroed(ENTRIES * ENTRY),
            kept: Mutex::new([const { None }; ENTRIES]),
            frees: AtomicU64::new(0),
        }
    }
}

impl RecentBlocks {
    /// The bits of an address that are the offset of its entry.
    pub(crate) const INDEX: u16 = 0xfc0;
    /// Offset in an entry: the object's first address.
    pub(crate) const START: u8 = 0;
    /// Offset in an entry: the host address of its first byte.
    pub(crate) const HOST: u8 = 8;

    /// Offset in an entry: how many offsets a load of this size can have.
    pub(crate) const fn limit(size: Size) -> u8 {
        match size {
            Size::B => 16,
            Size::H => 24,
            Size::W => 32,
            Size::Dw => 40,
        }
    }

    /// The host address of the table, which does not move.
    #[must_use]
    pub fn host_address(&self) -> u64 {
        self.table.host_address()
    }

    /// Reads `len` bytes at an address in kernel memory with `access`, which gets the bytes of
    /// their object and the offset in them.
    pub(super) fn read<T>(
        &self,
        kernel: &KernelBlocks,
        value: u64,
        len: usize,
        access: impl FnOnce(&SharedBytes, usize) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        self.forget_freed(kernel);
        let mut kept = self.kept();
        let index = (value & u64::from(Self::INDEX)) / ENTRY as u64;
        let index = usize::try_from(index).unwrap_or_default();
        if let Some(Some(block)) = kept.get(index)
            && let Some(offset) = value.checked_sub(block.address())
            && let Ok(offset) = usize::try_from(offset)
            && offset
                .checked_add(len)
                .is_some_and(|end| end <= block.len())
        {
            return Ok(access(block.bytes(), offset));
        }
        let (block, offset) = kernel.find(value, len, AccessKind::Read)?;
        let read = access(block.bytes(), offset);
        if let Some(entry) = kept.get_mut(index) {
            self.set(index, Some(&block));
            *entry = Some(block);
        }
        Ok(read)
    }

    /// Forgets the objects that were freed or replaced meanwhile.
    #[inline]
    pub(super) fn forget_freed(&self, kernel: &KernelBlocks) {
        let frees = kernel.frees();
        if self.frees.load(Ordering::Relaxed) != frees {
            self.frees.store(frees, Ordering::Relaxed);
            self.retain(Block::is_live);
        }
    }

    /// Forgets all objects.
    pub(super) fn clear(&self) {
        self.retain(|_| false);
    }

    fn kept(&self) -> MutexGuard<'_, [Option<Arc<Block>>; ENTRIES]> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn retain(&self, keeps: impl Fn(&Block) -> bool) {
        for (index, entry) in self.kept().iter_mut().enumerate() {
            if entry.as_ref().is_some_and(|block| !keeps(block)) {
                self.set(index, None);
                *entry = None;
            }
        }
    }

    /// Writes an entry of the table.
    fn set(&self, index: usize, block: Option<&Block>) {
        let put = |offset: u8, value: u64| {
            // Each entry is in the table.
            let _ = self
                .table
                .store(index * ENTRY + usize::from(offset), 8, value);
        };
        put(Self::START, block.map_or(0, Block::address));
        put(Self::HOST, block.map_or(0, |b| b.bytes().host_address()));
        for size in Size::ALL {
            let offsets = |block: &Block| (block.len() + 1).saturating_sub(size.bytes().into());
            put(Self::limit(*size), block.map_or(0, offsets) as u64);
        }
    }
}

impl fmt::Debug for RecentBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecentBlocks({})", self.kept().iter().flatten().count())
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel::{Area, NewBlock};
    use super::*;

    fn read(recent: &RecentBlocks, kernel: &KernelBlocks, at: u64, len: usize) -> Option<u64> {
        let load = |bytes: &SharedBytes, offset| bytes.load(offset, len);
        recent.read(kernel, at, len, load).unwrap_or_default()
    }

    /// What machine code does.
    fn in_table(recent: &RecentBlocks, at: u64, size: Size) -> bool {
        let entry = usize::try_from(at & u64::from(RecentBlocks::INDEX)).unwrap();
        let word = |offset: u8| recent.table.load(entry + usize::from(offset), 8).unwrap();
        at.wrapping_sub(word(RecentBlocks::START)) < word(RecentBlocks::limit(size))
    }

    #[test]
    fn an_object_is_in_the_table_from_its_first_read_until_it_is_freed() {
        let (kernel, recent) = (KernelBlocks::default(), RecentBlocks::default());
        let object = |len| {
            let new = NewBlock::bytes("x", len, None);
            kernel.insert(Area::Heap, new).unwrap()
        };
        let (first, second) = (object(100), object(100));
        first.bytes().store(96, 4, 7);
        let at = first.address() + 96;
        for size in Size::ALL {
            assert!(!in_table(&recent, at, *size), "{size:?}");
            assert!(!in_table(&recent, 0, *size), "{size:?}");
        }
        assert_eq!(read(&recent, &kernel, at, 4), Some(7));
        assert!(in_table(&recent, at, Size::W) && in_table(&recent, at + 3, Size::B));
        assert!(!in_table(&recent, at + 1, Size::W) && !in_table(&recent, at, Size::Dw));
        assert!(!in_table(&recent, first.address().wrapping_sub(1), Size::B));
        assert_eq!(read(&recent, &kernel, at + 1, 4), None);
        assert_eq!(read(&recent, &kernel, second.address(), 8), Some(0));

        kernel.free(&first);
        assert!(in_table(&recent, at, Size::W), "its bytes are kept");
        recent.forget_freed(&kernel);
        assert!(!in_table(&recent, at, Size::W));
        assert!(in_table(&recent, second.address(), Size::Dw));
        assert_eq!(read(&recent, &kernel, at, 4), None);
        recent.clear();
        assert!(!in_table(&recent, second.address(), Size::Dw));
    }

    #[test]
    fn objects_that_share_an_entry_replace_each_other() {
        let (kernel, recent) = (KernelBlocks::default(), RecentBlocks::default());
        let object = |at| {
            let new = NewBlock::bytes("x", 8, None);
            kernel.insert_at(at, new).unwrap()
        };
        let (first, second) = (0xffff_8881_0000_0040, 0xffff_8881_0000_1040);
        object(first).bytes().store(0, 8, 1);
        object(second).bytes().store(0, 8, 2);
        for _ in 0..2 {
            assert_eq!(read(&recent, &kernel, first, 8), Some(1));
            assert!(!in_table(&recent, second, Size::Dw));
            assert_eq!(read(&recent, &kernel, second, 8), Some(2));
            assert!(!in_table(&recent, first, Size::Dw));
        }
    }
}
