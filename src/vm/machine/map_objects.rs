//! The kernel's structure of a map, as programs read it through a map pointer
//! (`check_map_access_type` and `bpf_map_ptr` accesses, `kernel/bpf/verifier.c`).

use std::sync::Arc;

use super::state::Machine;
use crate::btf::{Btf, Kind};
use crate::program::MapDef;
use crate::spec::object::map_structure;
use crate::vm::maps::MapHandle;
use crate::vm::memory::{Body, Rights, SharedBytes};

/// The structure that all kernel structures of maps begin with.
const STRUCTURE: &str = "bpf_map";

impl Machine {
    /// Gives maps the bytes that programs read through map pointers, in the layout of a
    /// kernel's BTF. Without its `struct bpf_map` maps have none; those of a map that has some
    /// stay.
    pub(crate) fn show_maps(&mut self, maps: &[MapHandle], kernel: &Btf) {
        for map in maps {
            let Some(loaded) = self.shared.maps.get(map.index()) else {
                continue;
            };
            let address = loaded.handle;
            let Some(bytes) = object(loaded.map.def(), map.0 + 1, kernel) else {
                continue;
            };
            if let Some(mut region) = self.space.region_mut(address)
                && matches!(region.body, Body::Opaque)
            {
                region.body = Body::Object(Arc::new(SharedBytes::from_bytes(&bytes)));
                region.rights = Rights::Read;
            }
        }
    }
}

/// The structure of a map with this id. What is no attribute of the map reads 0.
fn object(def: &MapDef, id: u32, kernel: &Btf) -> Option<Vec<u8>> {
    let start = kernel.find(STRUCTURE, Kind::Struct)?;
    // `struct bpf_map` is their first member.
    let whole = kernel.find(map_structure(def.map_type), Kind::Struct);
    let sizes = [Some(start), whole].map(|ty| ty.and_then(|ty| ty.size()).unwrap_or(0));
    let mut bytes = vec![0u8; usize::try_from(sizes.into_iter().max()?).ok()?];
    for member in start.members() {
        let number = |value: u64| value.to_le_bytes().to_vec();
        let value = match member.name {
            "map_type" => number(def.map_type.number().into()),
            "key_size" => number(def.key_size.into()),
            "value_size" => number(def.value_size.into()),
            "max_entries" => number(def.max_entries.into()),
            "map_extra" => number(def.extra),
            "map_flags" => number(def.flags.bits().into()),
            "id" => number(id.into()),
            "numa_node" => number(def.numa_node.into()),
            "name" => def.name.as_bytes().to_vec(),
            _ => continue,
        };
        let at = usize::try_from(member.bit_offset / 8).ok()?;
        let size = kernel.size_of(member.ty).ok()?;
        let room = bytes.get_mut(at..)?;
        let room = room.get_mut(..usize::try_from(size).ok()?)?;
        for (to, from) in room.iter_mut().zip(value) {
            *to = from;
        }
    }
    Some(bytes)
}
