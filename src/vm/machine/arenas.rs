//! Address conversion for arena pointers (`addr_space_cast`).

use std::sync::Arc;

use super::state::Machine;
use crate::vm::maps::{Kind, MapHandle};
use crate::vm::memory::Pages;

impl Machine {
    /// The address in an arena for the low half of a pointer.
    #[must_use]
    pub fn arena_address(&self, arena: MapHandle, pointer: u64) -> Option<u64> {
        let region = self.arena_region(arena)?;
        Some(region.plus(pointer & u64::from(u32::MAX)))
    }

    /// An arena's pages with the addresses that its pointers are converted to where the low 32 bits are
    /// 0: the one that programs load from, and the one of user space (0 if pointers are not
    /// converted). `None` if the map is not an arena.
    #[must_use]
    pub(crate) fn bound_arena(&self, arena: MapHandle) -> Option<(Arc<Pages>, u64, u64)> {
        let region = self.arena_region(arena)?.plus(0);
        let Kind::Arena(arena) = self.map(arena)?.kind() else {
            return None;
        };
        Some((Arc::clone(arena.pages()), region, arena.user_half()))
    }

    /// Converts an arena pointer: from the user-space address to the one that the program loads
    /// from, or back with `to_user` (`addr_space_cast`). `None` if the map is not an arena.
    #[must_use]
    pub fn cast(&self, arena: MapHandle, pointer: u64, to_user: bool) -> Option<u64> {
        let region = self.arena_region(arena)?;
        let Kind::Arena(arena) = self.map(arena)?.kind() else {
            return None;
        };
        Some(match pointer {
            _ if to_user => arena.to_user(pointer),
            0 => 0,
            _ => region.plus(pointer & u64::from(u32::MAX)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::MapDef;
    use crate::spec::{MapFlags, MapType};
    use crate::vm::maps::create;
    use crate::vm::world::World;

    #[test]
    fn both_sides_of_a_cast_are_the_same_place() {
        let mut def = MapDef::new("arena", MapType::Arena, 0, 0, 4);
        def.flags = MapFlags::MMAPABLE;
        let map = create(&def, 1).unwrap();
        let array = create(&MapDef::new("array", MapType::Array, 4, 4, 1), 1).unwrap();
        let mut machine = Machine::new(World::default());
        let handle = machine.add_map(map.clone()).unwrap();
        let other = machine.add_map(array).unwrap();
        let Kind::Arena(arena) = map.kind() else {
            panic!("no arena");
        };
        assert_eq!(machine.value_address(handle, 0), Some(arena.user_start()));
        let user = arena.allocate(0, 1) + 24;
        let ours = machine.cast(handle, user, false).unwrap();
        assert_eq!(machine.cast(handle, ours, true), Some(user));
        assert_eq!(machine.cast(handle, 0, false), Some(0));
        assert_eq!(machine.cast(other, user, false), None);
        assert_eq!(machine.space.store(ours, 8, 7), Ok(()));
        assert_eq!(arena.read_memory(user, 8), Ok(vec![7, 0, 0, 0, 0, 0, 0, 0]));
        let problem = machine.space.load(ours + 4096, 8).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "reads 8 bytes at arena arena+4120, on a page that is not allocated"
        );
        let problem = machine.space.load(ours + 4 * 4096, 8).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "reads 8 bytes at arena arena+16408, 32 bytes past its end (16384 bytes)"
        );
    }
}
