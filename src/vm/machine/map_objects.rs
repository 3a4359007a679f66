//! The kernel's structure of a map, as programs read it through a map pointer
//! (`check_map_access_type` and `bpf_map_ptr` accesses, `kernel/bpf/verifier.c`).

use std::ops::Range;
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
        let Some(structure) = (!maps.is_empty()).then(|| Structure::of(kernel)).flatten() else {
            return;
        };
        for map in maps {
            let Some(loaded) = self.shared.maps.get(map.index()) else {
                continue;
            };
            let address = loaded.handle;
            let bytes = structure.object(loaded.map.def(), map.0 + 1, kernel);
            if let Some(mut region) = self.space.region_mut(address)
                && matches!(region.body, Body::Opaque)
            {
                region.body = Body::Object(Arc::new(SharedBytes::from_bytes(&bytes)));
                region.rights = Rights::Read;
            }
        }
    }
}

/// A member of `struct bpf_map` that is an attribute of the map.
enum Attribute {
    Number(fn(&MapDef, u32) -> u64),
    Name,
}

impl Attribute {
    /// The attribute that a member shows.
    fn of(member: &str) -> Option<Self> {
        Some(Self::Number(match member {
            "map_type" => |def, _| def.map_type.number().into(),
            "key_size" => |def, _| def.key_size.into(),
            "value_size" => |def, _| def.value_size.into(),
            "max_entries" => |def, _| def.max_entries.into(),
            "map_extra" => |def, _| def.extra,
            "map_flags" => |def, _| def.flags.bits().into(),
            "id" => |_, id| id.into(),
            "numa_node" => |def, _| def.numa_node.into(),
            "name" => return Some(Self::Name),
            _ => return None,
        }))
    }
}

/// `struct bpf_map` of a kernel.
struct Structure {
    size: u32,
    /// Attributes with their bytes in the structure.
    attributes: Vec<(Attribute, Range<usize>)>,
}

impl Structure {
    fn of(kernel: &Btf) -> Option<Self> {
        let ty = kernel.find(STRUCTURE, Kind::Struct)?;
        let attributes = ty.members().filter_map(|member| {
            let attribute = Attribute::of(member.name)?;
            let at = usize::try_from(member.bit_offset / 8).ok()?;
            let size = usize::try_from(kernel.size_of(member.ty).ok()?).ok()?;
            Some((attribute, at..at.checked_add(size)?))
        });
        Some(Self {
            size: ty.size()?,
            attributes: attributes.collect(),
        })
    }

    /// The structure of a map with this id. What is no attribute of the map reads 0.
    fn object(&self, def: &MapDef, id: u32, kernel: &Btf) -> Vec<u8> {
        // `struct bpf_map` is the first member of the structure of each type.
        let whole = kernel.find(map_structure(def.map_type), Kind::Struct);
        let size = whole
            .and_then(|ty| ty.size())
            .map_or(self.size, |whole| whole.max(self.size));
        let mut bytes = vec![0u8; usize::try_from(size).unwrap_or_default()];
        for (attribute, range) in &self.attributes {
            let Some(room) = bytes.get_mut(range.clone()) else {
                continue;
            };
            let number;
            let value = match attribute {
                Attribute::Number(of) => {
                    number = of(def, id).to_le_bytes();
                    number.as_slice()
                }
                Attribute::Name => def.name.as_bytes(),
            };
            for (to, from) in room.iter_mut().zip(value) {
                *to = *from;
            }
        }
        bytes
    }
}
