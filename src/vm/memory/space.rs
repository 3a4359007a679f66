//! The virtual address space. Every access is checked as a whole, first to last byte, against
//! the one region it lies in.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::address::Address;
use super::deltas::Deltas;
use super::fault::{AccessFault, AccessKind, Pointer, Problem};
use super::kernel::KernelBlocks;
use super::recent::RecentBlocks;
use super::region::{Body, Region, Rights};
use super::shared::SharedBytes;
use crate::spec::ContextKind;
use crate::spec::context;

/// All live regions of a machine.
///
/// Slots are allocated in order and reused last in, first out, so that a program sees the same
/// addresses in each run.
#[derive(Debug)]
pub struct Space {
    id: u64,
    slots: Vec<Slot>,
    free: Vec<u16>,
    stale: Mutex<Vec<Pointer>>,
    deltas: Deltas,
    kernel: KernelBlocks,
    recent: RecentBlocks,
}

/// A mutable reference to a live region.
#[derive(Debug)]
pub struct RegionMut<'a> {
    region: &'a mut Region,
    address: Address,
    deltas: &'a Deltas,
}

impl Deref for RegionMut<'_> {
    type Target = Region;

    fn deref(&self) -> &Region {
        self.region
    }
}

impl DerefMut for RegionMut<'_> {
    fn deref_mut(&mut self) -> &mut Region {
        self.region
    }
}

impl Drop for RegionMut<'_> {
    /// Updates the entry in `deltas`: the region's bytes may have been replaced.
    fn drop(&mut self) {
        self.deltas.set(self.address, Some(self.region));
    }
}

#[derive(Debug)]
struct Slot {
    generation: u8,
    /// The region in this slot, or the last one if it is free.
    region: Region,
    live: bool,
}

/// The address space has no free slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {} objects alive at once", Address::MAX_REGIONS)]
pub struct SpaceFull;

/// Where an access to a region lands: an offset in a block of bytes.
#[derive(Debug, Clone, Copy)]
pub struct Location<'a> {
    /// The block.
    pub bytes: &'a SharedBytes,
    /// Offset of the access; the requested number of bytes is in bounds there.
    pub at: usize,
}

/// How many accesses to deleted elements are kept for a report.
const STALE_KEPT: usize = 16;

impl Default for Space {
    fn default() -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        Self {
            id: MADE.fetch_add(1, Ordering::Relaxed),
            slots: Vec::new(),
            free: Vec::new(),
            stale: Mutex::default(),
            deltas: Deltas::new(),
            kernel: KernelBlocks::default(),
            recent: RecentBlocks::default(),
        }
    }
}

impl Space {
    /// An empty address space.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty address space with this kernel memory.
    #[must_use]
    pub fn over(kernel: KernelBlocks) -> Self {
        Self {
            kernel,
            ..Self::default()
        }
    }

    /// The kernel memory.
    #[must_use]
    pub const fn kernel(&self) -> &KernelBlocks {
        &self.kernel
    }

    /// Replaces the kernel memory.
    pub fn set_kernel(&mut self, kernel: KernelBlocks) {
        self.kernel = kernel;
        self.recent.clear();
    }

    /// The kernel objects that this CPU read last.
    pub(crate) const fn recent(&self) -> &RecentBlocks {
        &self.recent
    }

    /// Makes engines see which kernel objects were freed.
    #[inline]
    pub(crate) fn forget_freed(&self) {
        self.recent.forget_freed(&self.kernel);
    }

    /// The same address space for another CPU. Map values, objects without bytes and kernel
    /// memory keep their addresses; all other regions belong to the first CPU. From now on each
    /// CPU allocates addresses of its own, beginning with the lowest.
    ///
    /// Forks have the same [`id`](Self::id): programs that are bound to this space are bound to
    /// its forks, too. No region that all CPUs share may be inserted while there are several.
    #[must_use]
    pub fn fork(&self) -> Self {
        let is_kept = |slot: &Slot| slot.live && slot.region.is_shared();
        let kept = self.slots.iter().rposition(is_kept);
        let mut deltas = Deltas::new();
        let (mut slots, mut free) = (Vec::new(), Vec::new());
        let upto = kept.map_or(0, |last| last + 1);
        for (index, slot) in (0..).zip(self.slots.iter().take(upto)) {
            let region = if is_kept(slot) {
                deltas.add(Address::new(index, slot.generation), &slot.region);
                slot.region.clone()
            } else {
                free.push(index);
                Region::opaque(slot.region.name.clone())
            };
            slots.push(Slot {
                generation: slot.generation,
                region,
                live: is_kept(slot),
            });
        }
        // The last element is allocated first.
        free.reverse();
        Self {
            id: self.id,
            slots,
            free,
            stale: Mutex::default(),
            deltas,
            kernel: self.kernel.clone(),
            recent: RecentBlocks::default(),
        }
    }

    /// An id that is unique in this process, but the same for all [forks](Self::fork).
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// A table of `u64`, indexed by the region number of an address ([`Address::NUMBERS`]
    /// entries). Adding the entry to an address in the live region gives the host address
    /// (wrapping). 0 if there is no region, or its accesses must be checked
    /// ([`load`](Self::load), [`store`](Self::store), [`update`](Self::update)), as in all
    /// kernel memory. The table does not move while the space lives.
    #[must_use]
    pub(crate) const fn deltas(&self) -> &SharedBytes {
        self.deltas.table()
    }

    /// Inserts a region and returns the address of its offset 0.
    ///
    /// # Errors
    /// [`SpaceFull`] if [`Address::MAX_REGIONS`] regions are live.
    pub fn insert(&mut self, region: Region) -> Result<Address, SpaceFull> {
        if let Some(index) = self.free.pop()
            && let Some(slot) = self.slots.get_mut(usize::from(index))
        {
            slot.generation = (slot.generation + 1) % Address::GENERATIONS;
            slot.region = region;
            slot.live = true;
            let address = Address::new(index, slot.generation);
            self.deltas.set(address, Some(&slot.region));
            return Ok(address);
        }
        let index = u16::try_from(self.slots.len()).map_err(|_| SpaceFull)?;
        if usize::from(index) >= Address::MAX_REGIONS {
            return Err(SpaceFull);
        }
        let address = Address::new(index, 0);
        self.deltas.add(address, &region);
        self.slots.push(Slot {
            generation: 0,
            region,
            live: true,
        });
        Ok(address)
    }

    /// Removes a region; pointers to it become stale. False if the address is not that of a
    /// live region.
    pub fn remove(&mut self, address: Address) -> bool {
        match self.slot_mut(address) {
            Some(slot) => {
                slot.live = false;
                self.deltas.set(address, None);
                self.free.push(address.region());
                true
            }
            None => false,
        }
    }

    /// Replaces a region by one over the same bytes, as for a stack frame at each call: the same
    /// slot with the next generation.
    pub fn renew(&mut self, address: Address) -> Address {
        match self.slots.get_mut(usize::from(address.region())) {
            Some(slot) => {
                slot.generation = (slot.generation + 1) % Address::GENERATIONS;
                let renewed = Address::new(address.region(), slot.generation);
                self.deltas.follow(address, renewed);
                renewed
            }
            None => address,
        }
    }

    /// The live region at an address, by its slot and generation.
    #[must_use]
    pub fn region(&self, address: Address) -> Option<&Region> {
        let slot = self.slots.get(usize::from(address.region()))?;
        (slot.live && slot.generation == address.generation()).then_some(&slot.region)
    }

    /// The live region at an address, mutable: to change its window, rights or fields.
    pub fn region_mut(&mut self, address: Address) -> Option<RegionMut<'_>> {
        let slot = self.slots.get_mut(usize::from(address.region()))?;
        (slot.live && slot.generation == address.generation()).then_some(RegionMut {
            region: &mut slot.region,
            address,
            deltas: &self.deltas,
        })
    }

    fn slot_mut(&mut self, address: Address) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(usize::from(address.region()))?;
        (slot.live && slot.generation == address.generation()).then_some(slot)
    }

    /// Checks an access of `len` bytes at `value`.
    ///
    /// # Errors
    /// [`AccessFault`] unless all bytes lie in one live region or kernel object that allows
    /// the access.
    pub fn check(&self, value: u64, len: usize, kind: AccessKind) -> Result<(), AccessFault> {
        self.reach(value, len, kind, Problem::Bounds, |_, _| Some(()))
    }

    /// Whether the object at this address was freed. Works for any address.
    #[must_use]
    pub fn is_freed(&self, value: u64) -> bool {
        let read = self.check(value, 1, AccessKind::Read);
        read.is_err_and(|fault| fault.problem == Problem::Freed)
    }

    /// Checks an access and performs it with `access`; `otherwise` is the problem to report if
    /// `access` returns `None`.
    #[inline]
    fn reach<T>(
        &self,
        value: u64,
        len: usize,
        kind: AccessKind,
        otherwise: Problem,
        access: impl FnOnce(&SharedBytes, usize) -> Option<T>,
    ) -> Result<T, AccessFault> {
        let problem = match self.find(value, len, kind) {
            Ok(location) => match access(location.bytes, location.at) {
                Some(done) => return Ok(done),
                None => otherwise,
            },
            Err(Problem::Nothing) => match self.reach_kernel(value, len, kind, access) {
                Ok(Some(done)) => return Ok(done),
                Ok(None) => otherwise,
                Err(problem) => problem,
            },
            Err(problem) => problem,
        };
        Err(self.fault(value, len, kind, problem))
    }

    /// Performs an access to kernel memory. Cold, so that other accesses stay fast.
    #[cold]
    #[inline(never)]
    fn reach_kernel<T>(
        &self,
        value: u64,
        len: usize,
        kind: AccessKind,
        access: impl FnOnce(&SharedBytes, usize) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        if matches!(kind, AccessKind::Read) {
            return self.recent.read(&self.kernel, value, len, access);
        }
        let (block, at) = self.kernel.find(value, len, kind)?;
        Ok(access(block.bytes(), at))
    }

    /// Finds the bytes of a region for an access of `len` bytes at `value`. Does not find kernel
    /// objects, whose bytes must not be kept: use [`read`](Self::read), [`write`](Self::write)
    /// and the like for both.
    ///
    /// # Errors
    /// [`AccessFault`] unless all bytes lie in one live region that allows the access.
    pub fn locate(
        &self,
        value: u64,
        len: usize,
        kind: AccessKind,
    ) -> Result<Location<'_>, AccessFault> {
        let found = self.find(value, len, kind);
        found.map_err(|problem| self.fault(value, len, kind, problem))
    }

    fn find(&self, value: u64, len: usize, kind: AccessKind) -> Result<Location<'_>, Problem> {
        let address = Address::from_register(value).ok_or(Problem::Nothing)?;
        let slot = self
            .slots
            .get(usize::from(address.region()))
            .ok_or(Problem::Nothing)?;
        if !slot.live || slot.generation != address.generation() {
            return Err(Problem::Freed);
        }
        let region = &slot.region;
        match (region.rights, kind) {
            (Rights::ReadWrite, _)
            | (Rights::Read, AccessKind::Read)
            | (Rights::Write, AccessKind::Write) => {}
            (Rights::Read, _) => return Err(Problem::ReadOnly),
            (Rights::Write, _) => return Err(Problem::WriteOnly),
        }
        let offset = usize::try_from(address.offset()).map_err(|_| Problem::Bounds)?;
        let end = offset.checked_add(len).ok_or(Problem::Bounds)?;
        match &region.body {
            Body::Bytes { bytes, window } => {
                if offset < window.start || end > window.end {
                    return Err(Problem::Bounds);
                }
                if offset < region.hidden as usize {
                    return Err(Problem::Hidden(region.hidden));
                }
                Ok(Location { bytes, at: offset })
            }
            Body::Elements(slab) => {
                let (element, inner) = element_at(slab.value_size(), address.offset());
                if element >= slab.count() || inner + len > slab.value_size() {
                    return Err(Problem::Bounds);
                }
                if !slab.is_live(element) {
                    self.note_stale(value);
                }
                Ok(Location {
                    bytes: slab.values(),
                    at: slab.offset(element) + inner,
                })
            }
            Body::Pages(pages) => {
                let at = pages.at(address.offset(), len).ok_or(Problem::Bounds)?;
                let bytes = pages.bytes();
                let location = Location { bytes, at };
                pages
                    .are_present(at, len)
                    .then_some(location)
                    .ok_or(Problem::NoPage)
            }
            Body::Object(bytes) if end <= bytes.len() => Ok(Location { bytes, at: offset }),
            Body::Object(_) => Err(Problem::Bounds),
            Body::Opaque => Err(Problem::Opaque),
        }
    }

    /// Records an access to a deleted map element. The kernel allows it, but it may be a bug.
    fn note_stale(&self, value: u64) {
        let mut stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
        if stale.len() < STALE_KEPT {
            stale.push(self.pointer(value));
        }
    }

    /// The accesses to deleted map elements since the last call, at most 16.
    pub fn take_stale(&mut self) -> Vec<Pointer> {
        let stale = self.stale.get_mut();
        std::mem::take(stale.unwrap_or_else(PoisonError::into_inner))
    }

    /// Loads a number of 1, 2, 4 or 8 bytes, zero-extended. A pointer field of a context
    /// loads as its pointer.
    ///
    /// # Errors
    /// [`AccessFault`] as for [`check`](Self::check).
    pub fn load(&self, value: u64, size: usize) -> Result<u64, AccessFault> {
        let (value, size) = self.loaded_as(value, size);
        let load = |bytes: &SharedBytes, at| bytes.load(at, size);
        let loaded = self.reach(value, size, AccessKind::Read, Problem::Bounds, load)?;
        if let Some(address) = Address::from_register(value)
            && let Some(region) = self.region(address)
        {
            let field = region.pointers.iter().find(|field| {
                i64::from(field.offset) == address.offset() && field.size as usize == size
            });
            if let Some(field) = field {
                return Ok(field.value);
            }
        }
        Ok(loaded)
    }

    /// The kind of the context that an address lies in and the offset in it, if the kernel
    /// rewrites accesses to this kind.
    fn context_at(&self, value: u64) -> Option<(ContextKind, u32)> {
        let address = Address::from_register(value)?;
        let kind = self.region(address)?.context?;
        Some((kind, u32::try_from(address.offset()).ok()?))
    }

    /// The address and size of the load that replaces a load of a part of a context field.
    fn loaded_as(&self, value: u64, size: usize) -> (u64, usize) {
        let (Some((kind, offset)), Ok(bytes)) = (self.context_at(value), u32::try_from(size))
        else {
            return (value, size);
        };
        let (from, bytes) = context::loaded_as(kind, offset, bytes);
        let back = u64::from(offset).saturating_sub(from.into());
        (value.wrapping_sub(back), bytes as usize)
    }

    /// The number to store in place of `number`, after the kernel's rewrite of context accesses;
    /// `None` to store nothing.
    fn stored_as(&self, value: u64, number: u64) -> Option<u64> {
        match self.context_at(value) {
            Some((kind, offset)) => context::stored_as(kind, offset, number),
            None => Some(number),
        }
    }

    /// Stores the low `size` bytes of `number`.
    ///
    /// # Errors
    /// [`AccessFault`] as for [`check`](Self::check).
    pub fn store(&self, value: u64, size: usize, number: u64) -> Result<(), AccessFault> {
        let Some(number) = self.stored_as(value, number) else {
            return Ok(());
        };
        let store = |bytes: &SharedBytes, at| bytes.store(at, size, number);
        self.reach(value, size, AccessKind::Write, Problem::Bounds, store)
    }

    /// Replaces a 4- or 8-byte number `n` with `f(n)` and returns `n`.
    ///
    /// # Errors
    /// [`AccessFault`] as for [`check`](Self::check), or if it is misaligned.
    pub fn update(
        &self,
        value: u64,
        size: usize,
        f: impl Fn(u64) -> u64,
    ) -> Result<u64, AccessFault> {
        let update = |bytes: &SharedBytes, at| bytes.update(at, size, f);
        self.reach(value, size, AccessKind::Atomic, Problem::Misaligned, update)
    }

    /// Copies out `len` bytes.
    ///
    /// # Errors
    /// [`AccessFault`] as for [`check`](Self::check), before anything is allocated.
    pub fn read(&self, value: u64, len: usize) -> Result<Vec<u8>, AccessFault> {
        if len == 0 {
            return Ok(Vec::new());
        }
        let copy = |bytes: &SharedBytes, at| bytes.copy(at, len);
        self.reach(value, len, AccessKind::Read, Problem::Bounds, copy)
    }

    /// Appends `len` bytes to `to`.
    ///
    /// # Errors
    /// [`AccessFault`] as for [`check`](Self::check), before anything is allocated.
    pub fn append(&self, value: u64, len: usize, to: &mut Vec<u8>) -> Result<(), AccessFault> {
        if len == 0 {
            return Ok(());
        }
        let append = |bytes: &SharedBytes, at| bytes.append(at, len, to);
        self.reach(value, len, AccessKind::Read, Problem::Bounds, append)
    }

    /// Copies out `into.len()` bytes.
    ///
    /// # Errors
    /// [`AccessFault`] as for [`check`](Self::check).
    pub fn read_into(&self, value: u64, into: &mut [u8]) -> Result<(), AccessFault> {
        if into.is_empty() {
            return Ok(());
        }
        let len = into.len();
        let read = |bytes: &SharedBytes, at| bytes.read(at, into);
        self.reach(value, len, AccessKind::Read, Problem::Bounds, read)
    }

    /// Copies out `into.len()` bytes with the kernel's rights: programs' rights are ignored.
    /// `None` if any byte is unmapped.
    pub fn probe(&self, value: u64, into: &mut [u8]) -> Option<()> {
        if Address::is_kernel_memory(value) {
            let (block, at) = self.kernel.whole(value, into.len()).ok()?;
            return block.bytes().read(at, into);
        }
        let address = Address::from_register(value)?;
        let offset = usize::try_from(address.offset()).ok()?;
        match &self.region(address)?.body {
            Body::Bytes { bytes, window } => {
                let end = offset.checked_add(into.len())?;
                let inside = offset >= window.start && end <= window.end;
                bytes.read(offset, into).filter(|()| inside)
            }
            Body::Elements(slab) => {
                let (element, inner) = element_at(slab.value_size(), address.offset());
                let fits = inner.checked_add(into.len())? <= slab.value_size();
                let at = slab.offset(element).checked_add(inner)?;
                slab.values().read(at, into).filter(|()| fits)
            }
            Body::Pages(pages) => {
                let at = pages.at(address.offset(), into.len())?;
                let present = pages.are_present(at, into.len());
                pages.bytes().read(at, into).filter(|()| present)
            }
            Body::Object(bytes) => bytes.read(offset, into),
            Body::Opaque => None,
        }
    }

    /// Copies `from` to `value`; either all bytes or none.
    ///
    /// # Errors
    /// [`AccessFault`] as for [`check`](Self::check).
    pub fn write(&self, value: u64, from: &[u8]) -> Result<(), AccessFault> {
        if from.is_empty() {
            return Ok(());
        }
        let write = |bytes: &SharedBytes, at| bytes.write(at, from);
        self.reach(value, from.len(), AccessKind::Write, Problem::Bounds, write)
    }

    #[cold]
    fn fault(&self, value: u64, len: usize, kind: AccessKind, problem: Problem) -> AccessFault {
        AccessFault {
            kind,
            len: len as u64,
            pointer: self.pointer(value),
            problem,
        }
    }

    /// Describes what a register's value points to.
    #[must_use]
    pub fn pointer(&self, value: u64) -> Pointer {
        if value < 4096 {
            return Pointer::Null(value);
        }
        if Address::is_kernel_memory(value) {
            return self.kernel.pointer(value);
        }
        let found = Address::from_register(value)
            .and_then(|address| Some((address, self.slots.get(usize::from(address.region()))?)));
        let Some((address, slot)) = found else {
            return Pointer::Wild(value);
        };
        let region = &slot.region;
        // A number that was never an address of the region.
        if address.offset() > region.end().saturating_add(Address::STRAY) {
            return Pointer::Wild(value);
        }
        let live = slot.live && slot.generation == address.generation();
        match &region.body {
            Body::Bytes { window, .. } => Pointer::Region {
                place: region.name.to_string(),
                offset: address.offset() - i64::try_from(window.start).unwrap_or(0),
                len: window.len() as u64,
                live,
            },
            Body::Elements(slab) => {
                let (element, inner) = element_at(slab.value_size(), address.offset().max(0));
                Pointer::Region {
                    place: format!("{}{}", region.name, slab.label(element)),
                    offset: i64::try_from(inner).unwrap_or(i64::MAX) + address.offset().min(0),
                    len: slab.value_size() as u64,
                    live: live && slab.is_live(element),
                }
            }
            Body::Pages(pages) => Pointer::Region {
                place: region.name.to_string(),
                offset: address.offset() - i64::from(pages.start()),
                len: pages.bytes().len() as u64,
                live,
            },
            Body::Object(bytes) => Pointer::Region {
                place: region.name.to_string(),
                offset: address.offset(),
                len: bytes.len() as u64,
                live,
            },
            Body::Opaque => Pointer::Region {
                place: region.name.to_string(),
                offset: address.offset(),
                len: 0,
                live,
            },
        }
    }
}

/// Splits an offset in a region of elements into the element's index and the offset in the
/// element.
fn element_at(value_size: usize, offset: i64) -> (usize, usize) {
    // A power of two: no division is needed.
    let span = Region::element_span(value_size);
    let offset = offset.cast_unsigned();
    let element = usize::try_from(offset >> span.trailing_zeros()).unwrap_or(usize::MAX);
    let inner = usize::try_from(offset & (span - 1)).unwrap_or(usize::MAX);
    (element, inner)
}

#[cfg(test)]
mod tests;
