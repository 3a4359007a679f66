//! A map in the address space of a machine.

use std::sync::Arc;

use crate::vm::maps::Map;
use crate::vm::memory::Address;

/// A map with its addresses.
#[derive(Debug, Clone)]
pub(super) struct LoadedMap {
    pub map: Arc<dyn Map>,
    /// The map's own address, which programs pass to helpers.
    pub handle: Address,
    /// Address of the value of element 0, and the address distance between elements.
    pub values: Option<(Address, u64)>,
    /// Address of offset 0 of an arena's region.
    pub arena: Option<Address>,
    /// How messages name a reserved record of the map.
    pub record_name: Arc<str>,
    /// The map's name in outputs.
    pub name: Arc<str>,
}
