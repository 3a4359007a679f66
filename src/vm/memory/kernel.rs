//! Kernel memory: the part of the address space with the mocked kernel's own objects, at
//! addresses that look like Linux's on x86-64
//! (`Documentation/arch/x86/x86_64/mm.rst`).
//!
//! All CPUs of a machine share it, and objects may be added while programs run. Nothing is proved
//! about it: each access is checked.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::address::Address;
use super::fault::{AccessKind, Pointer, Problem};
use super::shared::SharedBytes;
use crate::btf::Btf;
use crate::util::TypeId;

/// A part of kernel memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    /// Allocated objects: the direct map of physical memory.
    Heap,
    /// The kernel's variables.
    Data,
    /// The kernel's functions.
    Text,
}

impl Area {
    const ALL: [Self; 3] = [Self::Heap, Self::Data, Self::Text];

    /// The first address of the area and the first one after it.
    const fn bounds(self) -> (u64, u64) {
        match self {
            Self::Heap => (0xffff_8881_0000_0000, 0xffff_c880_0000_0000),
            Self::Data => (0xffff_ffff_8200_0000, 0xffff_ffff_a000_0000),
            Self::Text => (0xffff_ffff_8100_0000, 0xffff_ffff_8200_0000),
        }
    }

    /// Alignment of objects: a cache line. Variables get more room, since the type of a symbol,
    /// and so its size, may only become known later.
    const fn align(self) -> u64 {
        match self {
            Self::Heap | Self::Text => 64,
            Self::Data => 1 << 16,
        }
    }
}

/// Unused bytes after each object.
const GAP: u64 = 64;
/// The maximum size of an object in bytes: larger types are hostile.
const MAX_LEN: usize = 1 << 28;
/// How many freed objects are remembered by name.
const FREED_KEPT: usize = 4096;

/// The type of an object.
#[derive(Debug, Clone)]
pub struct BlockType {
    /// The BTF that defines the type.
    pub btf: Btf,
    /// The type.
    pub id: TypeId,
}

/// An object in kernel memory: a range of addresses, with or without bytes.
#[derive(Debug)]
pub struct Block {
    address: u64,
    len: usize,
    name: Arc<str>,
    ty: Option<BlockType>,
    bytes: SharedBytes,
    live: AtomicBool,
    writable: AtomicBool,
}

impl Block {
    /// The address of the first byte.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// The number of addresses. An object with 0 still occupies one.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether it has addresses only, and no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The object's name in messages.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The object's type, if it has one.
    #[must_use]
    pub const fn ty(&self) -> Option<&BlockType> {
        self.ty.as_ref()
    }

    /// Its bytes.
    #[must_use]
    pub const fn bytes(&self) -> &SharedBytes {
        &self.bytes
    }

    /// Whether it has not been freed.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live.load(Ordering::Relaxed)
    }

    /// Sets whether programs may write to the object. Most kernel objects are read-only for
    /// programs.
    pub fn set_writable(&self, writable: bool) {
        self.writable.store(writable, Ordering::Relaxed);
    }
}

/// Description of an object to create.
#[derive(Debug, Clone)]
pub struct NewBlock {
    name: Arc<str>,
    len: usize,
    ty: Option<BlockType>,
    has_bytes: bool,
}

impl NewBlock {
    /// An object of `len` zero bytes with this name in messages.
    #[must_use]
    pub fn bytes(name: impl Into<Arc<str>>, len: usize, ty: Option<BlockType>) -> Self {
        Self {
            name: name.into(),
            len,
            ty,
            has_bytes: true,
        }
    }

    /// `len` addresses without bytes: a symbol, or a per-CPU variable.
    #[must_use]
    pub fn addresses(name: impl Into<Arc<str>>, len: usize, ty: Option<BlockType>) -> Self {
        Self {
            has_bytes: false,
            ..Self::bytes(name, len, ty)
        }
    }
}

/// Kernel memory has no room for an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no room in kernel memory for {name} ({len} bytes)")]
#[non_exhaustive]
pub struct KernelMemoryFull {
    /// The object.
    pub name: Arc<str>,
    /// Its size in bytes.
    pub len: usize,
}

/// All objects in kernel memory. Clones share them.
#[derive(Clone, Default)]
pub struct KernelBlocks(Arc<Shared>);

#[derive(Default)]
struct Shared {
    blocks: RwLock<Blocks>,
    /// How many objects were freed or replaced.
    frees: AtomicU64,
}

struct Blocks {
    /// Objects by address; they don't overlap. Freed objects remain without their bytes.
    by_address: BTreeMap<u64, Arc<Block>>,
    /// The next free address of each area. Addresses are not reused.
    next: [u64; Area::ALL.len()],
    /// Addresses of freed objects, oldest first.
    freed: VecDeque<u64>,
}

impl Default for Blocks {
    fn default() -> Self {
        Self {
            by_address: BTreeMap::new(),
            next: Area::ALL.map(|area| area.bounds().0),
            freed: VecDeque::new(),
        }
    }
}

impl Blocks {
    /// The object at an address, or the last one before it.
    fn before(&self, address: u64) -> Option<&Arc<Block>> {
        Some(self.by_address.range(..=address).next_back()?.1)
    }

    /// Whether no object is or was in `start..end`.
    fn is_free(&self, start: u64, end: u64) -> bool {
        let last = end.checked_sub(1).and_then(|last| self.before(last));
        last.is_none_or(|block| block.address + block.len.max(1) as u64 <= start)
    }

    fn put_at(&mut self, address: u64, new: NewBlock) -> Result<Arc<Block>, KernelMemoryFull> {
        let end = address.checked_add(new.len.max(1) as u64);
        let fits = Address::is_kernel_memory(address)
            && new.len <= MAX_LEN
            && end.is_some_and(|end| Address::is_kernel_memory(end) && self.is_free(address, end));
        match fits {
            true => Ok(self.put(address, new)),
            false => Err(KernelMemoryFull {
                name: new.name,
                len: new.len,
            }),
        }
    }

    fn put(&mut self, address: u64, new: NewBlock) -> Arc<Block> {
        let block = Arc::new(Block {
            address,
            len: new.len,
            name: new.name,
            ty: new.ty,
            bytes: SharedBytes::zeroed(if new.has_bytes { new.len } else { 0 }),
            live: AtomicBool::new(true),
            writable: AtomicBool::new(false),
        });
        self.by_address.insert(address, block.clone());
        block
    }
}

impl KernelBlocks {
    fn read(&self) -> RwLockReadGuard<'_, Blocks> {
        self.0.blocks.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Blocks> {
        self.0
            .blocks
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes whenever an object is freed or replaced, which [`Block::is_live`] shows then.
    #[inline]
    pub(super) fn frees(&self) -> u64 {
        self.0.frees.load(Ordering::Acquire)
    }

    /// Makes handles of an object stale; false if they were already.
    fn end(&self, block: &Block) -> bool {
        let was_live = block.live.swap(false, Ordering::Relaxed);
        let frees = u64::from(was_live);
        self.0.frees.fetch_add(frees, Ordering::Release);
        was_live
    }

    /// Whether both are the same memory.
    #[must_use]
    #[inline]
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Creates an object at the next free address of an area. Addresses are deterministic.
    ///
    /// # Errors
    /// [`KernelMemoryFull`].
    pub fn insert(&self, area: Area, new: NewBlock) -> Result<Arc<Block>, KernelMemoryFull> {
        let full = |new: NewBlock| KernelMemoryFull {
            name: new.name,
            len: new.len,
        };
        if new.len > MAX_LEN {
            return Err(full(new));
        }
        let mut blocks = self.write();
        let (_, end) = area.bounds();
        let Some(mut at) = blocks.next.get(area as usize).copied() else {
            return Err(full(new));
        };
        let room = (new.len as u64 + GAP).next_multiple_of(area.align());
        // A test may have put an object at an address of its own choice.
        while !blocks.is_free(at, at + room) {
            at += area.align();
        }
        if at + room > end {
            return Err(full(new));
        }
        if let Some(next) = blocks.next.get_mut(area as usize) {
            *next = at + room;
        }
        Ok(blocks.put(at, new))
    }

    /// Creates an object at this address in kernel memory.
    ///
    /// # Errors
    /// [`KernelMemoryFull`] if the address is occupied or not in kernel memory.
    pub fn insert_at(&self, address: u64, new: NewBlock) -> Result<Arc<Block>, KernelMemoryFull> {
        self.write().put_at(address, new)
    }

    /// Replaces the object at exactly this address, which had no bytes or fewer. Handles of the
    /// old object behave as if it was freed.
    ///
    /// # Errors
    /// [`KernelMemoryFull`] if there is no room; the old object stays.
    pub fn replace(&self, address: u64, new: NewBlock) -> Result<Arc<Block>, KernelMemoryFull> {
        let mut blocks = self.write();
        let Some(old) = blocks.by_address.remove(&address) else {
            return blocks.put_at(address, new);
        };
        let put = blocks.put_at(address, new);
        if put.is_ok() {
            self.end(&old);
        } else {
            blocks.by_address.insert(address, old);
        }
        put
    }

    /// The live object that contains an address.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<Arc<Block>> {
        let blocks = self.read();
        let block = blocks.before(address)?;
        let inside = address - block.address < block.len.max(1) as u64;
        (inside && block.is_live()).then(|| block.clone())
    }

    /// The live objects, by address: those of an area in the order in which they were created.
    #[must_use]
    pub fn live(&self) -> Vec<Arc<Block>> {
        let blocks = self.read();
        let live = blocks.by_address.values().filter(|block| block.is_live());
        live.cloned().collect()
    }

    /// Frees an object. Its addresses are not reused. False if it was freed already.
    pub fn free(&self, block: &Block) -> bool {
        let mut blocks = self.write();
        if !self.end(block) {
            return false;
        }
        let Some(there) = blocks.by_address.get_mut(&block.address) else {
            return false;
        };
        // The bytes are dropped with the last handle.
        *there = Arc::new(Block {
            address: block.address,
            len: block.len,
            name: block.name.clone(),
            ty: None,
            bytes: SharedBytes::zeroed(0),
            live: AtomicBool::new(false),
            writable: AtomicBool::new(false),
        });
        blocks.freed.push_back(block.address);
        if blocks.freed.len() > FREED_KEPT
            && let Some(first) = blocks.freed.pop_front()
        {
            blocks.by_address.remove(&first);
        }
        true
    }

    /// Finds the object that `len` bytes at an address lie in, and the offset of the first
    /// byte. Checks that a program may make this access.
    pub(super) fn find(
        &self,
        value: u64,
        len: usize,
        kind: AccessKind,
    ) -> Result<(Arc<Block>, usize), Problem> {
        let (block, offset) = self.whole(value, len)?;
        let reads = matches!(kind, AccessKind::Read);
        if !reads && !block.writable.load(Ordering::Relaxed) {
            return Err(Problem::ReadOnly);
        }
        Ok((block, offset))
    }

    /// Like [`find`](Self::find) for the kernel itself, which may read and write everything.
    pub(super) fn whole(&self, value: u64, len: usize) -> Result<(Arc<Block>, usize), Problem> {
        if !Address::is_kernel_memory(value) {
            return Err(Problem::Nothing);
        }
        let blocks = self.read();
        let block = near(&blocks, value).ok_or(Problem::Nothing)?;
        if !block.is_live() {
            return Err(Problem::Freed);
        }
        if block.is_empty() {
            return Err(Problem::Opaque);
        }
        let offset = usize::try_from(value - block.address).map_err(|_| Problem::Bounds)?;
        let end = offset.checked_add(len).ok_or(Problem::Bounds)?;
        if end > block.len {
            return Err(Problem::Bounds);
        }
        Ok((block.clone(), offset))
    }

    /// Describes what an address in kernel memory points to.
    pub(super) fn pointer(&self, value: u64) -> Pointer {
        let blocks = self.read();
        let Some(block) = near(&blocks, value) else {
            return Pointer::Wild(value);
        };
        Pointer::Region {
            place: block.name.to_string(),
            offset: (value - block.address).cast_signed(),
            len: block.len as u64,
            live: block.is_live(),
        }
    }
}

/// The object, live or freed, that an address lies in or closely after.
fn near(blocks: &Blocks, value: u64) -> Option<&Arc<Block>> {
    let block = blocks.before(value)?;
    (value - block.address < block.len as u64 + GAP).then_some(block)
}

impl fmt::Debug for KernelBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KernelBlocks({} objects)", self.read().by_address.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn new(name: &str, len: usize) -> NewBlock {
        NewBlock::bytes(name, len, None)
    }

    #[test]
    fn objects_lie_apart_where_linux_has_them() {
        let blocks = KernelBlocks::default();
        let first = blocks.insert(Area::Heap, new("a", 100)).unwrap();
        let second = blocks.insert(Area::Heap, new("b", 1)).unwrap();
        assert_eq!(first.address(), 0xffff_8881_0000_0000);
        assert_eq!(second.address(), 0xffff_8881_0000_00c0);
        let variable = blocks.insert(Area::Data, new("v", 8)).unwrap();
        assert_eq!(variable.address(), 0xffff_ffff_8200_0000);
        assert_eq!(
            blocks.at(first.address() + 99).unwrap().name().as_ref(),
            "a"
        );
        assert!(blocks.at(first.address() + 100).is_none());
        assert!(blocks.at(first.address() - 1).is_none());
        assert!(blocks.insert(Area::Heap, new("huge", usize::MAX)).is_err());
    }

    #[test]
    fn an_address_of_choice_is_taken_once_and_passed_over() {
        let blocks = KernelBlocks::default();
        let at = 0xffff_ffff_8200_0040;
        assert!(blocks.insert_at(at, new("v", 8)).is_ok());
        assert!(blocks.insert_at(at + 7, new("w", 8)).is_err());
        assert!(blocks.insert_at(at - 7, new("w", 8)).is_err());
        assert!(blocks.insert_at(at + 8, new("w", 8)).is_ok());
        assert!(blocks.insert_at(0x1000, new("user", 8)).is_err());
        assert!(blocks.insert_at(u64::MAX - 4095, new("end", 8)).is_err());
        let next = blocks.insert(Area::Data, new("x", 8)).unwrap();
        assert_eq!(next.address(), 0xffff_ffff_8201_0000);
    }

    #[test]
    fn what_was_freed_is_gone_and_remembered() {
        let blocks = KernelBlocks::default();
        let block = blocks.insert(Area::Heap, new("task", 64)).unwrap();
        let at = block.address();
        assert!(blocks.free(&block));
        assert!(!blocks.free(&block));
        assert!(blocks.at(at).is_none());
        let read = AccessKind::Read;
        assert_eq!(blocks.find(at, 8, read).unwrap_err(), Problem::Freed);
        assert_eq!(blocks.pointer(at + 4).to_string(), "task+4");
        let other = blocks.insert(Area::Heap, new("other", 64)).unwrap();
        assert_ne!(other.address(), at);
        for _ in 0..=FREED_KEPT {
            blocks.free(&blocks.insert(Area::Heap, new("x", 8)).unwrap());
        }
        assert_eq!(blocks.find(at, 8, read).unwrap_err(), Problem::Nothing);
    }

    #[test]
    fn a_symbol_gets_its_bytes_where_it_is() {
        let blocks = KernelBlocks::default();
        let symbol = NewBlock::addresses("jiffies", 0, None);
        let symbol = blocks.insert(Area::Data, symbol).unwrap();
        let at = symbol.address();
        let variable = blocks.replace(at, new("jiffies", 8)).unwrap();
        assert_eq!((variable.address(), symbol.is_live()), (at, false));
        let read = blocks.find(at, 8, AccessKind::Read);
        assert!(read.is_ok());
        blocks.insert_at(at + 16, new("other", 8)).unwrap();
        assert!(blocks.replace(at, new("jiffies", 32)).is_err());
        assert!(variable.is_live() && blocks.at(at).is_some());
    }

    #[test]
    fn accesses_are_judged() {
        let blocks = KernelBlocks::default();
        let block = blocks.insert(Area::Heap, new("task", 64)).unwrap();
        let find = |offset: u64, len, kind| blocks.find(block.address() + offset, len, kind);
        assert_eq!(find(60, 4, AccessKind::Read).unwrap().1, 60);
        assert_eq!(find(61, 4, AccessKind::Read).unwrap_err(), Problem::Bounds);
        assert_eq!(find(64, 4, AccessKind::Read).unwrap_err(), Problem::Bounds);
        assert_eq!(
            find(128, 4, AccessKind::Read).unwrap_err(),
            Problem::Nothing
        );
        assert_eq!(
            find(0, 4, AccessKind::Write).unwrap_err(),
            Problem::ReadOnly
        );
        block.set_writable(true);
        assert!(find(0, 4, AccessKind::Atomic).is_ok());
        let symbol = NewBlock::addresses("vfs_read", 0, None);
        let symbol = blocks.insert(Area::Text, symbol).unwrap();
        let read = blocks.find(symbol.address(), 1, AccessKind::Read);
        assert_eq!(read.unwrap_err(), Problem::Opaque);
    }

    proptest! {
        /// For any sequence of insertions and frees, an address leads to the one object that
        /// contains it, and objects never touch.
        #[test]
        fn an_address_leads_to_its_object(
            steps in prop::collection::vec((0usize..3, 1usize..300, any::<bool>()), 1..40),
            asked in prop::collection::vec((any::<prop::sample::Index>(), -80i64..400), 20),
        ) {
            let blocks = KernelBlocks::default();
            let mut model = Vec::new();
            for (area, len, freed) in steps {
                let block = blocks.insert(Area::ALL[area], new("x", len)).unwrap();
                if freed {
                    prop_assert!(blocks.free(&block));
                }
                model.push((block.address(), len as u64, !freed));
            }
            for (index, offset) in asked {
                let at = index.get(&model).0.wrapping_add_signed(offset);
                let inside = |(start, len, live): &&(u64, u64, bool)| {
                    *live && (*start..start + len).contains(&at)
                };
                let found = blocks.at(at).map(|block| block.address());
                prop_assert_eq!(found, model.iter().find(inside).map(|object| object.0));
                let read = blocks.find(at, 1, AccessKind::Read);
                prop_assert_eq!(read.is_ok(), found.is_some());
            }
            model.sort_unstable();
            for pair in model.windows(2) {
                prop_assert!(pair[0].0 + pair[0].1 + GAP <= pair[1].0);
            }
        }
    }
}
