//! `struct_ops` sections: each variable is a table of functions and values, which is loaded
//! as a map of one element (libbpf, `init_struct_ops_maps`,
//! `bpf_object__collect_st_ops_relos`).

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::error::{ObjectError, Problem};
use super::image::Section;
use super::maps_data;
use super::types::{Sections, resolve};
use crate::btf::{Btf, Kind};
use crate::program::{MapDef, MapOrigin};
use crate::spec::{MapFlags, MapType};
use crate::util::TypeId;

/// The sections; with a `?` in front, their maps are not created.
const SECTIONS: [&str; 2] = [".struct_ops", ".struct_ops.link"];

/// Whether a section of this name contains such tables.
pub(super) fn is_section(name: &str) -> bool {
    SECTIONS.contains(&name.strip_prefix('?').unwrap_or(name))
}

/// A table, and its offset in the section.
#[derive(Debug)]
pub(super) struct Declared {
    pub map: MapDef,
    /// First byte in the section.
    pub offset: u32,
}

/// The tables of a section.
///
/// # Errors
/// No BTF for the section, or a variable that is not a struct of its size.
pub(super) fn collect(
    section: &Section<'_>,
    sections: &Sections<'_>,
) -> Result<Vec<Declared>, ObjectError> {
    let fault =
        |offset: u32, problem| ObjectError::section(&section.name, u64::from(offset), problem);
    let Some(ty) = sections.get(&section.name) else {
        let text = "BTF has no section of this name".to_owned();
        return Err(fault(0, Problem::Btf(text)));
    };
    let (bare, autocreate) = match section.name.strip_prefix('?') {
        Some(bare) => (bare, false),
        None => (&*section.name, true),
    };
    let mut tables = Vec::new();
    for place in ty.variables() {
        let btf = ty.btf();
        let variable = btf.ty(place.ty);
        let shape = resolve(btf, variable.target_id().unwrap_or_default());
        let (Kind::Struct, Some(size)) = (shape.kind(), shape.size()) else {
            let text = format!("'{}' is not a struct", variable.name());
            return Err(fault(place.offset, Problem::MapDefinition(text)));
        };
        let start = place.offset as usize;
        let bytes = start
            .checked_add(size as usize)
            .and_then(|end| section.data.get(start..end));
        let Some(bytes) = bytes else {
            let text = format!("'{}' ends past the section", variable.name());
            return Err(fault(place.offset, Problem::MapDefinition(text)));
        };
        let mut map = MapDef::new(variable.name(), MapType::StructOps, 4, size, 1);
        map.value_type = Some(shape.id());
        map.origin = MapOrigin::StructOps(section.name.clone().into_owned());
        map.autocreate = autocreate;
        if bare.ends_with(".link") {
            map.flags |= MapFlags::LINK;
        }
        map.initial = vec![maps_data::initial(Arc::from(bytes))];
        tables.push(Declared {
            map,
            offset: place.offset,
        });
    }
    Ok(tables)
}

/// The members of tables by their first byte, cached by type.
#[derive(Debug)]
pub(super) struct Members<'a> {
    btf: &'a Btf,
    by_type: FxHashMap<TypeId, FxHashMap<u32, (usize, &'a str)>>,
}

impl<'a> Members<'a> {
    pub fn new(btf: &'a Btf) -> Self {
        Self {
            btf,
            by_type: FxHashMap::default(),
        }
    }

    /// The type's name, and index and name of its member that begins at a byte.
    pub fn at(&mut self, ty: TypeId, byte: u32) -> Option<(&'a str, usize, &'a str)> {
        let shape = self.btf.get(ty)?;
        let members = self.by_type.entry(ty).or_insert_with(|| {
            let members = shape.members().enumerate();
            members
                .map(|(index, member)| (member.bit_offset / 8, (index, member.name)))
                .collect()
        });
        let (index, name) = *members.get(&byte)?;
        Some((shape.name(), index, name))
    }
}
