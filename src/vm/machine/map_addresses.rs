//! The maps of a machine and their addresses: of the map itself, of its values, and back from
//! an address to the map.

use std::sync::Arc;

use thiserror::Error;

use super::cpu_claim::CpuError;
use super::loaded::LoadedMap;
use super::state::Machine;
use crate::spec::{MapFlags, UpdateFlags};
use crate::util::Errno;
use crate::vm::maps::{Kind, Map, MapHandle, ProgramHandle};
use crate::vm::memory::{Address, Region, Rights, SpaceFull};

/// Why a map can't be added to a machine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddMapError {
    /// The address space is full.
    #[error(transparent)]
    Space(#[from] SpaceFull),
    /// Other CPUs are in use, which would not have the map.
    #[error(transparent)]
    Cpu(#[from] CpuError),
}

impl Machine {
    /// Adds a map and gives it its addresses.
    ///
    /// # Errors
    /// [`SpaceFull`] if the address space is full, [`CpuError::Shared`] while other CPUs are
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
        let id = u32::try_from(self.shared.maps.len()).map_err(|_| SpaceFull)?;
        let id = MapHandle(id);
        let region = usize::from(handle.region());
        if self.shared.by_region.len() <= region {
            self.shared.by_region.resize(region + 1, None);
        }
        if let Some(slot) = self.shared.by_region.get_mut(region) {
            *slot = Some(id);
        }
        self.shared.maps.push(LoadedMap {
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
        self.shared.map(map)
    }

    /// A map's name, shared.
    pub(in crate::vm) fn map_name(&self, map: MapHandle) -> Arc<str> {
        let loaded = self.shared.maps.get(map.index());
        loaded.map_or_else(|| "?".into(), |loaded| loaded.name.clone())
    }

    /// All maps, in the order in which they were added.
    pub fn maps(&self) -> impl Iterator<Item = (MapHandle, &Arc<dyn Map>)> {
        (0..)
            .map(MapHandle)
            .zip(self.shared.maps.iter().map(|loaded| &loaded.map))
    }

    /// The map's own address, as registers hold it.
    #[must_use]
    pub fn map_address(&self, map: MapHandle) -> Option<u64> {
        self.shared
            .maps
            .get(map.index())
            .map(|loaded| loaded.handle.register())
    }

    /// The map that a register points to.
    #[must_use]
    pub fn map_at(&self, register: u64) -> Option<MapHandle> {
        let address = Address::from_register(register)?;
        let id = (*self.shared.by_region.get(usize::from(address.region()))?)?;
        let loaded = self.shared.maps.get(id.index())?;
        (loaded.handle == address).then_some(id)
    }

    /// The address of an element's value; for an arena, its user-space address.
    #[must_use]
    pub fn value_address(&self, map: MapHandle, element: usize) -> Option<u64> {
        let loaded = self.shared.maps.get(map.index())?;
        // Values first: this is the path of map look-ups.
        if let Some((first, span)) = loaded.values {
            return Some(first.plus(element as u64 * span));
        }
        match loaded.map.kind() {
            Kind::Arena(arena) => (element == 0).then(|| arena.user_start()),
            _ => None,
        }
    }

    /// The element whose value an address lies in, and the offset in the value.
    pub(in crate::vm) fn element_at(&self, map: MapHandle, address: u64) -> Option<(usize, usize)> {
        let loaded = self.shared.maps.get(map.index())?;
        let (first, span) = loaded.values?;
        let slab = loaded.map.slab()?;
        let distance = address.checked_sub(first.register())?;
        let element = usize::try_from(distance / span).ok()?;
        let at = usize::try_from(distance % span).ok()?;
        (element < slab.count() && at < slab.value_size()).then_some((element, at))
    }

    /// Address of offset 0 of an arena's region.
    pub(in crate::vm) fn arena_region(&self, map: MapHandle) -> Option<Address> {
        self.shared.maps.get(map.index())?.arena
    }

    /// The program in a slot of the prog array that a register points to; `None` if it is not
    /// a prog array or the slot is empty. Engines use it for `bpf_tail_call`.
    #[must_use]
    pub fn tail_call_target(&self, map: u64, index: u64) -> Option<ProgramHandle> {
        let map = self.map(self.map_at(map)?)?;
        match map.kind() {
            // The kernel takes the low 32 bits of the index.
            Kind::ProgArray(array) => array.get(u32::try_from(index & 0xffff_ffff).ok()?),
            _ => None,
        }
    }

    /// Inserts a map into a map of maps, as user space does.
    ///
    /// # Errors
    /// `EBADF` if one of the two maps does not exist, `EINVAL` if `outer` is not a map of
    /// maps; otherwise as for [`MapOfMaps::set`](crate::vm::maps::MapOfMaps::set).
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
