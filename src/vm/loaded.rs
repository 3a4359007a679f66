//! A map in the address space of a machine.

use std::sync::Arc;

use super::maps::Map;
use super::memory::Address;

/// A map with its place in the address space.
#[derive(Debug, Clone)]
pub(super) struct LoadedMap {
    pub map: Arc<dyn Map>,
    /// What a program holds for the map itself.
    pub handle: Address,
    /// Where element 0 of its values is, and how many bytes of address space
    /// further the next is.
    pub values: Option<(Address, u64)>,
    /// Where offset 0 of an arena's region is.
    pub arena: Option<Address>,
    /// What messages call a record that a program has reserved in it.
    pub record_name: Arc<str>,
    /// What outputs call it.
    pub name: Arc<str>,
}
