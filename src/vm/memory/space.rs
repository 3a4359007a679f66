//! The virtual address space: every access is judged whole, first to last byte,
//! against the one region it lies in.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::address::Address;
use super::fault::{AccessFault, AccessKind, Pointer, Problem};
use super::region::{Body, Region, Rights};
use super::shared::SharedBytes;

/// All live regions of a machine.
///
/// Slots are handed out in order and reused last in, first out, so that the same
/// program sees the same numbers each time.
#[derive(Debug)]
pub struct Space {
    id: u64,
    slots: Vec<Slot>,
    free: Vec<u16>,
    stale: Mutex<Vec<Pointer>>,
    deltas: Deltas,
}

/// A number for each slot.
#[derive(Debug)]
struct Deltas(SharedBytes);

impl Deltas {
    fn new() -> Self {
        Self(SharedBytes::zeroed(8 * Address::MAX_REGIONS))
    }

    fn set(&self, address: Address, region: Option<&Region>) {
        let host = region.and_then(Region::host_address);
        let delta = host.map_or(0, |host| host.wrapping_sub(address.register()));
        // Each slot has its entry.
        let _ = self.0.store(8 * usize::from(address.region()), 8, delta);
    }
}

impl Deltas {
    /// The region at an address goes by another one of the same slot.
    fn follow(&self, from: Address, to: Address) {
        let at = 8 * usize::from(from.region());
        let delta = self.0.load(at, 8).filter(|delta| *delta != 0);
        if let Some(delta) = delta {
            let host = delta.wrapping_add(from.register());
            let _ = self.0.store(at, 8, host.wrapping_sub(to.register()));
        }
    }
}

/// A live region, to be changed.
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
    /// The bytes may be others now.
    fn drop(&mut self) {
        self.deltas.set(self.address, Some(self.region));
    }
}

#[derive(Debug)]
struct Slot {
    generation: u8,
    /// The region that lives here, or the last one that did.
    region: Region,
    live: bool,
}

/// The address space has no slot left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {} objects alive at once", Address::MAX_REGIONS)]
pub struct SpaceFull;

/// Where an access lands: a place in a block of bytes.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The block.
    pub bytes: &'a SharedBytes,
    /// Offset in it; as many bytes as were asked for lie there.
    pub at: usize,
}

/// The most stale pointers that are kept for a report.
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
        }
    }
}

impl Space {
    /// An empty address space.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same address space for another CPU: values of maps and what has an address
    /// only are where they are, and what else there is belongs to the first CPU. From
    /// now on each hands out addresses of its own, beginning with the lowest.
    ///
    /// Programs that were bound to this space are bound to its forks, too: they have one
    /// [`id`](Self::id). Nothing that all CPUs share may be inserted while there are
    /// several.
    #[must_use]
    pub fn fork(&self) -> Self {
        let is_kept = |slot: &Slot| slot.live && slot.region.is_shared();
        let kept = self.slots.iter().rposition(is_kept);
        let deltas = Deltas::new();
        let (mut slots, mut free) = (Vec::new(), Vec::new());
        let upto = kept.map_or(0, |last| last + 1);
        for (index, slot) in (0..).zip(self.slots.iter().take(upto)) {
            let region = if is_kept(slot) {
                deltas.set(Address::new(index, slot.generation), Some(&slot.region));
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
        // The last one is handed out first.
        free.reverse();
        Self {
            id: self.id,
            slots,
            free,
            stale: Mutex::default(),
            deltas,
        }
    }

    /// A number that no other address space of this process has, its
    /// [forks](Self::fork) apart.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// For each of the [`Address::MAX_REGIONS`] slots, by its number, a `u64`: what
    /// added to an address in its live region gives the host address, wrapping; 0 where
    /// there is no region, or one in which each access is to be judged
    /// ([`load`](Self::load), [`store`](Self::store), [`update`](Self::update)). The
    /// table stays where it is as long as the space lives.
    #[must_use]
    pub const fn deltas(&self) -> &SharedBytes {
        &self.deltas.0
    }

    /// Gives a region an address: that of its offset 0.
    ///
    /// # Errors
    /// [`SpaceFull`] when 65,536 regions are alive.
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
        let address = Address::new(index, 0);
        self.deltas.set(address, Some(&region));
        self.slots.push(Slot {
            generation: 0,
            region,
            live: true,
        });
        Ok(address)
    }

    /// Ends a region's life; pointers to it are stale from now on. False where
    /// the address is not that of a live region.
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

    /// Ends a region's life and begins another's over the same bytes, as a stack
    /// frame does at each call: the same slot, the next generation.
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

    /// The live region at an address, to change its window, rights or fields.
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

    /// Finds the bytes for an access of `len` bytes at `value`.
    ///
    /// # Errors
    /// [`AccessFault`] unless all bytes lie in one live region that allows it.
    pub fn locate(
        &self,
        value: u64,
        len: usize,
        kind: AccessKind,
    ) -> Result<Place<'_>, AccessFault> {
        self.find(value, len, kind).map_err(|problem| AccessFault {
            kind,
            len: len as u64,
            pointer: self.pointer(value),
            problem,
        })
    }

    fn find(&self, value: u64, len: usize, kind: AccessKind) -> Result<Place<'_>, Problem> {
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
                Ok(Place { bytes, at: offset })
            }
            Body::Elements(slab) => {
                let (element, inner) = element_at(slab.value_size(), address.offset());
                if element >= slab.count() || inner + len > slab.value_size() {
                    return Err(Problem::Bounds);
                }
                if !slab.is_live(element) {
                    self.note_stale(value);
                }
                Ok(Place {
                    bytes: slab.values(),
                    at: slab.offset(element) + inner,
                })
            }
            Body::Pages(pages) => {
                let at = pages.at(address.offset(), len).ok_or(Problem::Bounds)?;
                let bytes = pages.bytes();
                let place = Place { bytes, at };
                pages
                    .are_present(at, len)
                    .then_some(place)
                    .ok_or(Problem::NoPage)
            }
            Body::Opaque => Err(Problem::Opaque),
        }
    }

    /// An access to a deleted map element is allowed, as in the kernel, but a
    /// test wants to hear of it.
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

    /// Loads a number of 1, 2, 4 or 8 bytes, zero-extended; a context's pointer
    /// field yields its pointer.
    ///
    /// # Errors
    /// [`AccessFault`] as of [`locate`](Self::locate).
    pub fn load(&self, value: u64, size: usize) -> Result<u64, AccessFault> {
        let place = self.locate(value, size, AccessKind::Read)?;
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
        let loaded = place.bytes.load(place.at, size);
        loaded.ok_or_else(|| self.fault(value, size, AccessKind::Read, Problem::Bounds))
    }

    /// Stores the low `size` bytes of `number`.
    ///
    /// # Errors
    /// [`AccessFault`] as of [`locate`](Self::locate).
    pub fn store(&self, value: u64, size: usize, number: u64) -> Result<(), AccessFault> {
        let place = self.locate(value, size, AccessKind::Write)?;
        let stored = place.bytes.store(place.at, size, number);
        stored.ok_or_else(|| self.fault(value, size, AccessKind::Write, Problem::Bounds))
    }

    /// Replaces a 4- or 8-byte number by what `f` makes of it; returns the old one.
    ///
    /// # Errors
    /// [`AccessFault`] as of [`locate`](Self::locate), or where it is misaligned.
    pub fn update(
        &self,
        value: u64,
        size: usize,
        f: impl Fn(u64) -> u64,
    ) -> Result<u64, AccessFault> {
        let place = self.locate(value, size, AccessKind::Atomic)?;
        let old = place.bytes.update(place.at, size, f);
        old.ok_or_else(|| self.fault(value, size, AccessKind::Atomic, Problem::Misaligned))
    }

    /// Copies out `len` bytes.
    ///
    /// # Errors
    /// [`AccessFault`] as of [`locate`](Self::locate); nothing is allocated then.
    pub fn read(&self, value: u64, len: usize) -> Result<Vec<u8>, AccessFault> {
        if len == 0 {
            return Ok(Vec::new());
        }
        let place = self.locate(value, len, AccessKind::Read)?;
        let copy = place.bytes.copy(place.at, len);
        copy.ok_or_else(|| self.fault(value, len, AccessKind::Read, Problem::Bounds))
    }

    /// Copies out as many bytes as `into` has.
    ///
    /// # Errors
    /// [`AccessFault`] as of [`locate`](Self::locate).
    pub fn read_into(&self, value: u64, into: &mut [u8]) -> Result<(), AccessFault> {
        if into.is_empty() {
            return Ok(());
        }
        let place = self.locate(value, into.len(), AccessKind::Read)?;
        let read = place.bytes.read(place.at, into);
        read.ok_or_else(|| self.fault(value, into.len(), AccessKind::Read, Problem::Bounds))
    }

    /// Copies out as many bytes as `into` has, as the kernel itself may: whatever
    /// programs may do with them. `None` where one of them is not there.
    pub fn probe(&self, value: u64, into: &mut [u8]) -> Option<()> {
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
            Body::Opaque => None,
        }
    }

    /// Copies `from` to `value`; either all of it or nothing.
    ///
    /// # Errors
    /// [`AccessFault`] as of [`locate`](Self::locate).
    pub fn write(&self, value: u64, from: &[u8]) -> Result<(), AccessFault> {
        if from.is_empty() {
            return Ok(());
        }
        let place = self.locate(value, from.len(), AccessKind::Write)?;
        let written = place.bytes.write(place.at, from);
        written.ok_or_else(|| self.fault(value, from.len(), AccessKind::Write, Problem::Bounds))
    }

    fn fault(&self, value: u64, len: usize, kind: AccessKind, problem: Problem) -> AccessFault {
        AccessFault {
            kind,
            len: len as u64,
            pointer: self.pointer(value),
            problem,
        }
    }

    /// Says what a register's value points to.
    #[must_use]
    pub fn pointer(&self, value: u64) -> Pointer {
        if value < 4096 {
            return Pointer::Null(value);
        }
        let found = Address::from_register(value)
            .and_then(|address| Some((address, self.slots.get(usize::from(address.region()))?)));
        let Some((address, slot)) = found else {
            return Pointer::Wild(value);
        };
        let region = &slot.region;
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
            Body::Opaque => Pointer::Region {
                place: region.name.to_string(),
                offset: address.offset(),
                len: 0,
                live,
            },
        }
    }
}

/// Splits an offset in a region of elements into the element's number and the
/// offset in it.
fn element_at(value_size: usize, offset: i64) -> (usize, usize) {
    // A power of two: no division is needed.
    let span = Region::element_span(value_size);
    let offset = offset.cast_unsigned();
    let element = usize::try_from(offset >> span.trailing_zeros()).unwrap_or(usize::MAX);
    let inner = usize::try_from(offset & (span - 1)).unwrap_or(usize::MAX);
    (element, inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::slab::Slab;
    use super::*;

    fn block(len: usize) -> Arc<SharedBytes> {
        Arc::new(SharedBytes::zeroed(len))
    }

    #[test]
    fn accesses_are_judged_whole() {
        let mut space = Space::new();
        let at = space.insert(Region::bytes("context", block(16))).unwrap();
        assert_eq!(space.store(at.plus(8), 8, 0x0102), Ok(()));
        assert_eq!(space.load(at.plus(8), 2), Ok(0x0102));
        assert_eq!(
            space.load(at.plus(12), 8).unwrap_err().to_string(),
            "reads 8 bytes at context+12, 4 bytes past its end (16 bytes)"
        );
        assert_eq!(
            space
                .store(at.plus(u64::MAX), 1, 0)
                .unwrap_err()
                .to_string(),
            "writes 1 byte at context-1, 1 byte before its start"
        );
        assert_eq!(
            space.load(8, 4).unwrap_err().to_string(),
            "reads 4 bytes at a null pointer+8"
        );
        assert_eq!(
            space.load(0x1234_5678, 4).unwrap_err().to_string(),
            "reads 4 bytes at 0x12345678, where nothing is"
        );
    }

    #[test]
    fn map_elements_have_gaps_between_them() {
        let mut space = Space::new();
        let slab = Arc::new(Slab::array(8, 64));
        slab.set_value(12, &[9, 0, 0, 0, 0, 0, 0, 0]);
        let at = space
            .insert(Region::elements("map value hist", slab))
            .unwrap();
        let twelve = at.plus(Region::element_offset(8, 12));
        assert_eq!(space.load(twelve, 8), Ok(9));
        assert_eq!(
            space.load(twelve + 4, 8).unwrap_err().to_string(),
            "reads 8 bytes at map value hist[12]+4, 4 bytes past its end (8 bytes)"
        );
        assert!(space.load(twelve + 8, 1).is_err());
        assert!(
            space
                .load(at.plus(Region::element_offset(8, 64)), 1)
                .is_err()
        );
    }

    #[test]
    fn a_freed_region_is_seen_even_when_its_slot_lives_again() {
        let mut space = Space::new();
        let first = space.insert(Region::bytes("record", block(8))).unwrap();
        assert!(space.remove(first));
        assert!(!space.remove(first));
        let second = space.insert(Region::bytes("record", block(8))).unwrap();
        assert_eq!(second.region(), first.region());
        assert_eq!(
            space.load(first.register(), 8).unwrap_err().to_string(),
            "reads 8 bytes at record, which is gone"
        );
        assert_eq!(space.load(second.register(), 8), Ok(0));
        let third = space.renew(second);
        assert!(space.load(second.register(), 8).is_err());
        assert_eq!(space.load(third.register(), 8), Ok(0));
    }

    #[test]
    fn deleted_elements_stay_readable_and_are_noted() {
        let mut space = Space::new();
        let slab = Arc::new(Slab::keyed(4, 8, 4));
        slab.revive(0, &5u32.to_le_bytes());
        let at = space
            .insert(Region::elements("map value m", slab.clone()))
            .unwrap();
        assert_eq!(space.load(at.register(), 8), Ok(0));
        assert!(space.take_stale().is_empty());
        slab.kill(0);
        assert_eq!(space.load(at.register(), 8), Ok(0));
        let stale = space.take_stale();
        assert_eq!(stale.len(), 1);
        assert_eq!(stale[0].to_string(), "map value m[5]");
    }

    #[test]
    fn rights_hidden_bytes_windows_and_alignment() {
        let mut space = Space::new();
        let region = Region::bytes("context", block(64)).with_hidden(8);
        let context = space.insert(region).unwrap();
        assert_eq!(
            space.load(context.plus(4), 4).unwrap_err().to_string(),
            "reads 4 bytes at context+4, whose first 8 bytes are not for programs"
        );
        let region = Region::bytes("map value ro", block(8)).with_rights(Rights::Read);
        let frozen = space.insert(region).unwrap();
        assert!(space.load(frozen.register(), 8).is_ok());
        assert!(space.update(frozen.register(), 8, |v| v).is_err());
        assert_eq!(
            space.store(frozen.register(), 8, 1).unwrap_err().problem,
            Problem::ReadOnly
        );
        let packet = space
            .insert(Region::window("packet", block(300), 256..300))
            .unwrap();
        assert_eq!(
            space.load(packet.plus(296), 8).unwrap_err().to_string(),
            "reads 8 bytes at packet+40, 4 bytes past its end (44 bytes)"
        );
        assert_eq!(
            space
                .update(context.plus(12), 8, |v| v)
                .unwrap_err()
                .to_string(),
            "atomically changes 8 bytes at context+12, which is not a multiple of 8"
        );
    }

    #[test]
    fn the_kernel_reads_what_programs_may_not() {
        let mut space = Space::new();
        let region = Region::bytes("context", block(16)).with_hidden(8);
        let context = space.insert(region.with_rights(Rights::Write)).unwrap();
        let mut bytes = [1; 8];
        assert_eq!(space.probe(context.register(), &mut bytes), Some(()));
        assert_eq!(bytes, [0; 8]);
        assert_eq!(space.probe(context.plus(9), &mut bytes), None);
        let values = Region::elements("map value m", Arc::new(Slab::array(4, 2)));
        let values = space.insert(values).unwrap();
        assert_eq!(space.probe(values.register(), &mut bytes[..4]), Some(()));
        assert_eq!(space.probe(values.plus(2), &mut bytes[..4]), None);
        let second = values.plus(2 * Region::element_offset(4, 1));
        assert_eq!(space.probe(second, &mut bytes[..4]), None);
        assert_eq!(space.probe(12, &mut bytes), None);
    }

    #[test]
    fn a_fork_has_what_all_cpus_share_and_numbers_of_its_own() {
        let mut space = Space::new();
        let slab = Arc::new(Slab::array(8, 4));
        let gone = space.insert(Region::bytes("gone", block(8))).unwrap();
        let map = space.insert(Region::opaque("map m")).unwrap();
        let stack = space.insert(Region::bytes("stack", block(8))).unwrap();
        let values = Region::elements("map value m", slab.clone());
        let values = space.insert(values).unwrap();
        let context = space.insert(Region::bytes("context", block(8))).unwrap();
        space.remove(gone);

        let mut fork = space.fork();
        assert_eq!(fork.id(), space.id());
        assert!(fork.region(map).is_some());
        assert_eq!(fork.store(values.register(), 8, 7), Ok(()));
        assert_eq!(space.load(values.register(), 8), Ok(7));
        let table = |space: &Space, at: Address| {
            space
                .deltas()
                .load(8 * usize::from(at.region()), 8)
                .unwrap()
        };
        assert_eq!(table(&fork, values), table(&space, values));
        for own in [gone, stack, context] {
            assert_eq!((fork.region(own).is_none(), table(&fork, own)), (true, 0));
        }
        assert_eq!(
            fork.load(stack.register(), 8).unwrap_err().to_string(),
            "reads 8 bytes at stack, which is gone"
        );
        let mut next = || {
            fork.insert(Region::bytes("mine", block(8)))
                .unwrap()
                .region()
        };
        let wanted = [gone.region(), stack.region(), context.region()];
        assert_eq!([next(), next(), next()], wanted);
        assert_eq!(space.load(stack.register(), 8), Ok(0));
    }

    #[test]
    fn pointer_fields_load_as_pointers() {
        let mut space = Space::new();
        let mut region = Region::bytes("context", block(24));
        region.pointers.push(super::super::region::PointerField {
            offset: 4,
            size: 4,
            value: 0x8000_0001_0000_0000,
        });
        let at = space.insert(region).unwrap();
        assert_eq!(space.load(at.plus(4), 4), Ok(0x8000_0001_0000_0000));
        assert_eq!(space.load(at.plus(0), 4), Ok(0));
        assert_eq!(space.load(at.plus(4), 2), Ok(0));
    }
}
