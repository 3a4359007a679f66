//! Reading stack trace maps.

use super::error::{Error, Result};
use super::vm::Vm;
use crate::spec::{MapFlags, MapType};

impl Vm {
    /// The stack of an id in a stack trace map: addresses, the innermost function's first;
    /// `None` if the map has no such id.
    ///
    /// # Errors
    /// [`Error::NoMap`]; [`Error::MapKind`] where the map is no stack trace map, or holds
    /// build ids.
    pub fn stack(&self, map: &str, id: u32) -> Result<Option<Vec<u64>>> {
        let view = self.map(map)?;
        let def = view.def();
        let has_addresses =
            def.map_type == MapType::StackTrace && !def.flags.contains(MapFlags::STACK_BUILD_ID);
        if !has_addresses {
            return Err(Error::MapKind {
                map: map.to_owned(),
                found: def.map_type.to_string(),
                wanted: "a stack trace map of addresses",
            });
        }
        let Some(value) = view.get_bytes(&id.to_le_bytes())? else {
            return Ok(None);
        };
        let (words, _) = value.as_chunks::<8>();
        let mut stack: Vec<_> = words.iter().map(|ip| u64::from_le_bytes(*ip)).collect();
        // The bytes after the last frame are zero.
        while stack.last() == Some(&0) {
            stack.pop();
        }
        Ok(Some(stack))
    }

    /// The same with the names of the [world's symbols](crate::vm::World::symbol):
    /// `vfs_read+0x1c/0x340`, or the address if there is no symbol.
    ///
    /// # Errors
    /// As of [`stack`](Self::stack).
    pub fn stack_names(&self, map: &str, id: u32) -> Result<Option<Vec<String>>> {
        let symbols = self.machine.world.symbols();
        let stack = self.stack(map, id)?;
        Ok(stack.map(|stack| stack.iter().map(|ip| symbols.describe(*ip)).collect()))
    }
}
