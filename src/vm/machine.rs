//! The state of a machine: memory, maps, the world and what programs gave out.
//! Engines run programs on it; helpers act on it.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::events::Placed;
use super::handle::{MapHandle, ProgramHandle};
use super::helpers::Mock;
use super::maps::{Kind, Map};
use super::memory::{Address, Pointer, Region, Rights, Space, SpaceFull};
use super::outcome::Output;
use super::world::World;
use crate::spec::{MapFlags, ProgType};
use crate::util::HelperId;

/// Memory, maps and world: all that programs act on.
pub struct Machine {
    /// The address space.
    pub space: Space,
    /// The mocked outside.
    pub world: World,
    maps: Vec<LoadedMap>,
    by_address: FxHashMap<u64, MapHandle>,
    /// Helpers that a test replaced.
    pub(super) mocks: FxHashMap<HelperId, Mock>,
    /// Memory that helpers lent to a program, by address: ring-buffer records.
    pub(super) lent: FxHashMap<u64, Lent>,
    outputs: Vec<Output>,
    current: Option<Current>,
}

/// A map with its place in the address space.
#[derive(Debug, Clone)]
struct LoadedMap {
    map: Arc<dyn Map>,
    /// What a program holds for the map itself.
    handle: Address,
    /// Where element 0 of its values is.
    values: Option<Address>,
    /// Whether user space can't change it any more.
    frozen: bool,
}

/// A ring-buffer record that a program has reserved.
#[derive(Debug, Clone)]
pub(super) struct Lent {
    /// The ring buffer.
    pub map: MapHandle,
    /// What the ring buffer calls the record.
    pub record: u64,
    /// The record's region.
    pub base: Address,
}

/// The program that runs now, as helpers need to know it.
#[derive(Debug)]
pub struct Current {
    /// Its type.
    pub prog_type: ProgType,
    /// Its context, and the packet if it has one.
    pub placed: Placed,
}

impl Machine {
    /// A machine without maps in this world.
    #[must_use]
    pub fn new(world: World) -> Self {
        Self {
            space: Space::new(),
            world,
            maps: Vec::new(),
            by_address: FxHashMap::default(),
            mocks: FxHashMap::default(),
            lent: FxHashMap::default(),
            outputs: Vec::new(),
            current: None,
        }
    }

    /// Adds a map and gives it its addresses.
    ///
    /// # Errors
    /// [`SpaceFull`] when there are too many.
    pub fn add_map(&mut self, map: Arc<dyn Map>) -> Result<MapHandle, SpaceFull> {
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
                Some(self.space.insert(region.with_rights(rights))?)
            }
            None => None,
        };
        let id = MapHandle(u32::try_from(self.maps.len()).map_err(|_| SpaceFull)?);
        self.by_address.insert(handle.register(), id);
        self.maps.push(LoadedMap {
            map,
            handle,
            values,
            frozen: false,
        });
        Ok(id)
    }

    /// A map by its handle.
    #[must_use]
    pub fn map(&self, map: MapHandle) -> Option<&Arc<dyn Map>> {
        self.maps.get(map.index()).map(|loaded| &loaded.map)
    }

    /// All maps, in the order in which they were added.
    pub fn maps(&self) -> impl Iterator<Item = (MapHandle, &Arc<dyn Map>)> {
        (0..)
            .map(MapHandle)
            .zip(self.maps.iter().map(|loaded| &loaded.map))
    }

    /// Makes a map constant for user space, as `BPF_MAP_FREEZE` does.
    pub fn freeze(&mut self, map: MapHandle) {
        if let Some(loaded) = self.maps.get_mut(map.index()) {
            loaded.frozen = true;
        }
    }

    /// Whether user space can't change a map.
    #[must_use]
    pub fn is_frozen(&self, map: MapHandle) -> bool {
        self.maps
            .get(map.index())
            .is_some_and(|loaded| loaded.frozen)
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
        self.by_address.get(&register).copied()
    }

    /// The address of an element's value.
    #[must_use]
    pub fn value_address(&self, map: MapHandle, element: usize) -> Option<u64> {
        let loaded = self.maps.get(map.index())?;
        let size = loaded.map.slab()?.value_size();
        Some(loaded.values?.plus(Region::element_offset(size, element)))
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

    /// The program that runs now, if one does.
    #[must_use]
    pub const fn current(&self) -> Option<&Current> {
        self.current.as_ref()
    }

    /// A program of this type begins to run on an event.
    pub fn enter(&mut self, prog_type: ProgType, placed: Placed) {
        self.current = Some(Current { prog_type, placed });
    }

    /// The program has ended: gives the event back, to be read and removed.
    pub fn leave(&mut self) -> Option<Placed> {
        self.current.take().map(|current| current.placed)
    }

    /// Records something that a program gave out.
    pub fn output(&mut self, output: Output) {
        self.outputs.push(output);
    }

    /// Takes what programs have given out since the last call.
    pub fn take_outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// Puts a function of the test in place of a helper's body.
    pub fn mock_helper(&mut self, helper: HelperId, body: Mock) {
        self.mocks.insert(helper, body);
    }

    /// Says what a register points to, in words.
    #[must_use]
    pub fn pointer(&self, register: u64) -> Pointer {
        self.space.pointer(register)
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("maps", &self.maps)
            .field("world", &self.world)
            .finish_non_exhaustive()
    }
}
