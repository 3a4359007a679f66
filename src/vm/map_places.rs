//! The maps of a machine: what programs hold for them, where their values are, and which
//! map it is that an address belongs to.

use std::sync::Arc;

use thiserror::Error;

use super::cpus::CpuError;
use super::handle::{MapHandle, ProgramHandle};
use super::loaded::LoadedMap;
use super::machine::Machine;
use super::maps::{Kind, Map};
use super::memory::{Address, Region, Rights, SpaceFull};
use crate::spec::{MapFlags, UpdateFlags};
use crate::util::Errno;

/// A map that a machine can't take.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AddMapError {
    /// There are too many.
    #[error(transparent)]
    Space(#[from] SpaceFull),
    /// Other CPUs would not have it.
    #[error(transparent)]
    Cpu(#[from] CpuError),
}

impl Machine {
    /// Adds a map and gives it its addresses.
    ///
    /// # Errors
    /// [`SpaceFull`] when there are too many, [`CpuError::Shared`] while other CPUs are
    /// in use.
    pub fn add_map(&mut self, map: Arc<dyn Map>) -> Result<MapHandle, AddMapError> {
        self.may_add("maps")?;
        let def = map.def();
        let name = &def.name;
        let handle = self.space.insert(Region::opaque(format!("map {name}")))?;
        let rights = if def.flags.contains(MapFlags::RDONLY_PROG) {
            Rights::Read
        } else if def.flags.contains(MapFlags::WRONLY_PROG) {
            Rights::Write
        } else {
            Rights::ReadWrite
        };
        let values = match map.slab() {
            Some(slab) => {
                let region = Region::elements(format!("map value {name}"), slab.clone());
                let first = self.space.insert(region.with_rights(rights))?;
                Some((first, Region::element_span(slab.value_size())))
            }
            None => None,
        };
        let arena = match map.kind() {
            Kind::Arena(arena) => {
                let region = Region::pages(format!("arena {name}"), arena.pages().clone());
                Some(self.space.insert(region)?)
            }
            _ => None,
        };
        let id = u32::try_from(self.maps.len()).map_err(|_| SpaceFull)?;
        let id = MapHandle(id);
        let region = usize::from(handle.region());
        if self.by_region.len() <= region {
            self.by_region.resize(region + 1, None);
        }
        if let Some(slot) = self.by_region.get_mut(region) {
            *slot = Some(id);
        }
        self.maps.push(LoadedMap {
            record_name: format!("ring buffer record of {name}").into(),
            name: name.as_str().into(),
            map,
            handle,
            values,
            arena,
        });
        Ok(id)
    }

    /// A map by its handle.
    #[must_use]
    pub fn map(&self, map: MapHandle) -> Option<&Arc<dyn Map>> {
        self.maps.get(map.index()).map(|loaded| &loaded.map)
    }

    /// A map's name, to be kept.
    pub(super) fn map_name(&self, map: MapHandle) -> Arc<str> {
        let loaded = self.maps.get(map.index());
        loaded.map_or_else(|| "?".into(), |loaded| loaded.name.clone())
    }

    /// All maps, in the order in which they were added.
    pub fn maps(&self) -> impl Iterator<Item = (MapHandle, &Arc<dyn Map>)> {
        (0..)
            .map(MapHandle)
            .zip(self.maps.iter().map(|loaded| &loaded.map))
    }

    /// What a register holds for the map itself.
    #[must_use]
    pub fn map_address(&self, map: MapHandle) -> Option<u64> {
        self.maps
            .get(map.index())
            .map(|loaded| loaded.handle.register())
    }

    /// The map that a register points to.
    #[must_use]
    pub fn map_at(&self, register: u64) -> Option<MapHandle> {
        let address = Address::from_register(register)?;
        let id = (*self.by_region.get(usize::from(address.region()))?)?;
        let loaded = self.maps.get(id.index())?;
        (loaded.handle == address).then_some(id)
    }

    /// The address of an element's value; of an arena, which has one, the user's address.
    #[must_use]
    pub fn value_address(&self, map: MapHandle, element: usize) -> Option<u64> {
        let loaded = self.maps.get(map.index())?;
        // First what nearly all maps have: look-ups of programs come by here.
        if let Some((first, span)) = loaded.values {
            return Some(first.plus(element as u64 * span));
        }
        match loaded.map.kind() {
            Kind::Arena(arena) => (element == 0).then(|| arena.user_start()),
            _ => None,
        }
    }

    /// The element of a map in whose value an address lies, and how far into it.
    pub(super) fn element_at(&self, map: MapHandle, address: u64) -> Option<(usize, usize)> {
        let loaded = self.maps.get(map.index())?;
        let (first, span) = loaded.values?;
        let slab = loaded.map.slab()?;
        let distance = address.checked_sub(first.register())?;
        let element = usize::try_from(distance / span).ok()?;
        let at = usize::try_from(distance % span).ok()?;
        (element < slab.count() && at < slab.value_size()).then_some((element, at))
    }

    /// Where offset 0 of an arena's region is.
    pub(super) fn arena_region(&self, map: MapHandle) -> Option<Address> {
        self.maps.get(map.index())?.arena
    }

    /// The program in a slot of the prog array that a register points to; `None`
    /// where it is no prog array or the slot is empty. Engines use it for
    /// `bpf_tail_call`.
    #[must_use]
    pub fn tail_call_target(&self, map: u64, index: u64) -> Option<ProgramHandle> {
        let map = self.map(self.map_at(map)?)?;
        match map.kind() {
            // The kernel takes the low 32 bits of the index.
            Kind::ProgArray(array) => array.get(u32::try_from(index & 0xffff_ffff).ok()?),
            _ => None,
        }
    }

    /// Puts a map into a map of maps, as user space does.
    ///
    /// # Errors
    /// `EBADF` where one of the two is not there, `EINVAL` where the first holds no
    /// maps; otherwise as of [`MapOfMaps::set`](super::maps::MapOfMaps::set).
    pub fn set_inner(
        &self,
        outer: MapHandle,
        key: &[u8],
        inner: MapHandle,
        flags: UpdateFlags,
    ) -> Result<(), Errno> {
        let outer = self.map(outer).ok_or(Errno::EBADF)?;
        let shape = self.map(inner).ok_or(Errno::EBADF)?.def();
        match outer.kind() {
            Kind::MapOfMaps(outer) => outer.set(key, inner, shape, flags),
            _ => Err(Errno::EINVAL),
        }
    }
}
