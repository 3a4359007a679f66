//! Maps declared in `.maps`: a variable of a struct type whose members encode the map's
//! attributes in their types (libbpf, `parse_btf_map_def`).

use super::error::{ObjectError, Problem};
use super::types::{Sections, resolve};
use crate::btf::{Btf, Kind, Linkage, Member, Type, Variable};
use crate::program::{MapDef, Pinning};
use crate::spec::{MapFlags, MapType, limits};
use crate::util::TypeId;

/// The section of map declarations.
pub(super) const SECTION: &str = ".maps";
/// Maximum number of members of a declaration.
const MAX_ATTRIBUTES: usize = 64;
/// Bytes of a file descriptor: the value of a map of maps or programs.
const FD_SIZE: u32 = 4;

type Result<T> = std::result::Result<T, ObjectError>;

/// A declared map, and the offsets of it and its values in the section.
#[derive(Debug)]
pub(super) struct Declared {
    pub map: MapDef,
    /// First byte in the section.
    pub offset: u32,
    /// Bytes in the section.
    pub size: u32,
    /// Offset of the `values` array in the section, if there is one.
    pub values: Option<u32>,
}

/// The maps of the section, in order of offset.
///
/// # Errors
/// A declaration that libbpf refuses, with the map's name.
pub(super) fn collect(sections: &Sections<'_>, section_size: u64) -> Result<Vec<Declared>> {
    let Some(section) = sections.get(SECTION) else {
        let text = "BTF has no section of this name".to_owned();
        return Err(ObjectError::section(SECTION, 0, Problem::Btf(text)));
    };
    let mut places: Vec<Variable> = section.variables().collect();
    places.sort_by_key(|place| place.offset);
    places
        .into_iter()
        .map(|place| declared(section.btf(), place, section_size))
        .collect()
}

fn declared(btf: &Btf, place: Variable, section_size: u64) -> Result<Declared> {
    let variable = btf.ty(place.ty);
    let name = variable.name();
    if name.is_empty() {
        let text = "map without a name".to_owned();
        let offset = u64::from(place.offset);
        return Err(ObjectError::section(
            SECTION,
            offset,
            Problem::MapDefinition(text),
        ));
    }
    let fault = |text: String| ObjectError::map(name, Problem::MapDefinition(text));
    if u64::from(place.offset) + u64::from(place.size) > section_size {
        return Err(fault(format!(
            "its {} bytes at {:#x} end past the section '{SECTION}'",
            place.size, place.offset
        )));
    }
    match (variable.kind(), variable.linkage()) {
        (Kind::Var, Some(Linkage::Global)) => {}
        (Kind::Var, Some(Linkage::Extern)) => {
            return Err(fault(
                "only declared: link the object that defines it".to_owned(),
            ));
        }
        (Kind::Var, _) => {
            return Err(fault("static: libbpf accepts only global maps".to_owned()));
        }
        (kind, _) => return Err(fault(format!("expected a variable, found {kind}"))),
    }
    let shape = resolve(btf, variable.target_id().unwrap_or_default());
    if shape.kind() != Kind::Struct {
        return Err(fault(format!(
            "declared as {}; expected a struct",
            shape.kind()
        )));
    }
    if shape.size() > Some(place.size) {
        return Err(fault("its struct is larger than the variable".to_owned()));
    }
    let definition = Definition::read(btf, name, shape, Depth::Outer)?;
    let values = definition
        .values
        .and_then(|byte| place.offset.checked_add(byte));
    Ok(Declared {
        map: definition.map,
        offset: place.offset,
        size: place.size,
        values,
    })
}

/// The map that a variable declares, if its type is a struct with a member `type`. The
/// linker compares declarations by it.
pub(super) fn definition(btf: &Btf, variable: TypeId) -> Option<Result<MapDef>> {
    let variable = btf.get(variable)?;
    let shape = resolve(btf, variable.target_id()?);
    let has_type = shape.members().any(|member| member.name == "type");
    if variable.kind() != Kind::Var || shape.kind() != Kind::Struct || !has_type {
        return None;
    }
    let definition = Definition::read(btf, variable.name(), shape, Depth::Outer);
    Some(definition.map(|definition| definition.map))
}

/// Nesting of a map's declaration.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Outer,
    /// In the `values` of another map: neither pinned nor a map of maps.
    Inner,
}

/// Parser of a struct as map attributes.
struct Definition<'a> {
    btf: &'a Btf,
    map: MapDef,
    has_type: bool,
    /// Offset of `values` in the struct.
    values: Option<u32>,
}

impl<'a> Definition<'a> {
    fn read(btf: &'a Btf, name: &str, shape: Type<'a>, depth: Depth) -> Result<Self> {
        let mut definition = Self {
            btf,
            map: MapDef::new(name, MapType::Array, 0, 0, 0),
            has_type: false,
            values: None,
        };
        let count = shape.members().len();
        if count > MAX_ATTRIBUTES {
            let text = format!("{count} attributes are too many");
            return Err(ObjectError::map(name, Problem::MapDefinition(text)));
        }
        for (index, member) in shape.members().enumerate() {
            let last = index + 1 == count;
            definition.attribute(member, depth, last).map_err(|text| {
                let text = format!("attribute '{}': {text}", member.name);
                ObjectError::map(name, Problem::MapDefinition(text))
            })?;
        }
        if !definition.has_type {
            let text = "no map type: add __uint(type, BPF_MAP_TYPE_…)".to_owned();
            return Err(ObjectError::map(name, Problem::MapDefinition(text)));
        }
        let map = &mut definition.map;
        map.max_entries = entries(map.map_type, map.max_entries);
        Ok(definition)
    }

    fn attribute(
        &mut self,
        member: Member<'a>,
        depth: Depth,
        last: bool,
    ) -> std::result::Result<(), String> {
        let btf = self.btf;
        match member.name {
            "type" => {
                let number = number(btf, member.ty)?;
                self.map.map_type = MapType::from_number(number)
                    .ok_or_else(|| format!("Linux 6.18 has no map type {number}"))?;
                self.has_type = true;
            }
            "max_entries" => self.map.max_entries = number(btf, member.ty)?,
            "map_flags" => {
                self.map.flags = MapFlags::from_bits_retain(number(btf, member.ty)?);
            }
            "numa_node" => self.map.numa_node = number(btf, member.ty)?,
            "map_extra" => self.map.extra = long(btf, member.ty)?,
            "key_size" => set_size(&mut self.map.key_size, number(btf, member.ty)?)?,
            "value_size" => set_size(&mut self.map.value_size, number(btf, member.ty)?)?,
            "key" => {
                let (ty, size) = pointee(btf, member.ty)?;
                set_size(&mut self.map.key_size, size)?;
                self.map.key_type = Some(ty);
            }
            "value" => {
                let (ty, size) = pointee(btf, member.ty)?;
                set_size(&mut self.map.value_size, size)?;
                self.map.value_type = Some(ty);
            }
            "pinning" if depth == Depth::Inner => {
                return Err("an inner map can't be pinned".to_owned());
            }
            "pinning" => {
                self.map.pinning = match number(btf, member.ty)? {
                    0 => Pinning::None,
                    1 => Pinning::ByName,
                    other => Pinning::Other(other),
                }
            }
            "values" if depth == Depth::Inner => return Err("maps nest only once".to_owned()),
            "values" if !last => return Err("must be the last attribute".to_owned()),
            "values" => self.values(member)?,
            _ => {
                return Err("unknown; the attributes are type, key, key_size, value, \
                            value_size, max_entries, map_flags, map_extra, numa_node, \
                            pinning, values"
                    .to_owned());
            }
        }
        Ok(())
    }

    /// Parses `values`: an array of pointers to inner maps or to programs.
    fn values(&mut self, member: Member<'a>) -> std::result::Result<(), String> {
        let btf = self.btf;
        let array = resolve(btf, member.ty);
        let element = match array.array() {
            Some(array) if array.len == 0 => resolve(btf, array.element),
            _ => return Err("not an array of unknown length: use __array(values, …)".to_owned()),
        };
        let target = match (element.kind(), element.target_id()) {
            (Kind::Ptr, Some(target)) => resolve(btf, target),
            _ => return Err(format!("an array of {}, not of pointers", element.kind())),
        };
        match (self.map.map_type, target.kind()) {
            (MapType::ArrayOfMaps | MapType::HashOfMaps, Kind::Struct) => {
                let name = format!("{}.inner", self.map.name);
                let inner = Definition::read(btf, &name, target, Depth::Inner)
                    .map_err(|error| error.problem().to_string())?;
                self.map.inner = Some(Box::new(inner.map));
            }
            (MapType::ProgArray, Kind::FuncProto) => {}
            (MapType::ArrayOfMaps | MapType::HashOfMaps | MapType::ProgArray, kind) => {
                return Err(format!("points to {kind}"));
            }
            (other, _) => {
                return Err(format!(
                    "a map of type {other} contains neither maps nor programs"
                ));
            }
        }
        set_size(&mut self.map.value_size, FD_SIZE)?;
        self.values = Some(member.bit_offset / 8);
        Ok(())
    }
}

/// Decodes a number: `int (*name)[number]`.
fn number(btf: &Btf, ty: TypeId) -> std::result::Result<u32, String> {
    let pointer = resolve(btf, ty);
    let array = match (pointer.kind(), pointer.target_id()) {
        (Kind::Ptr, Some(target)) => resolve(btf, target).array(),
        _ => None,
    };
    array
        .map(|array| array.len)
        .ok_or_else(|| "not written as __uint(name, number)".to_owned())
}

/// Decodes a 64-bit number: `__uint`, or an enum of one value (`__ulong`).
fn long(btf: &Btf, ty: TypeId) -> std::result::Result<u64, String> {
    let resolved = resolve(btf, ty);
    if !resolved.kind().is_any_enum() {
        return number(btf, ty).map(u64::from);
    }
    let mut values = resolved.enumerators();
    match (values.next(), values.next()) {
        (Some(value), None) => Ok(value.bits),
        _ => Err("not written as __ulong(name, number)".to_owned()),
    }
}

/// Decodes a type: `type *name`. Returns the type and its size.
fn pointee(btf: &Btf, ty: TypeId) -> std::result::Result<(TypeId, u32), String> {
    let pointer = btf.ty(ty);
    match (pointer.kind(), pointer.target_id()) {
        (Kind::Ptr, Some(target)) => {
            let size = btf.size_of(target).map_err(|error| error.to_string())?;
            Ok((target, size))
        }
        (kind, _) => Err(format!("{kind}, not written as __type(name, type)")),
    }
}

fn set_size(size: &mut u32, new: u32) -> std::result::Result<(), String> {
    if *size != 0 && *size != new {
        return Err(format!("size {new} contradicts size {size} given before"));
    }
    *size = new;
    Ok(())
}

/// The number of entries that libbpf requests: a ring buffer's bytes are rounded up to a
/// power of two of whole pages.
pub(super) fn entries(map_type: MapType, wanted: u32) -> u32 {
    let is_ring = matches!(map_type, MapType::Ringbuf | MapType::UserRingbuf);
    if !is_ring || wanted == 0 {
        return wanted;
    }
    let pages = wanted.div_ceil(limits::PAGE_SIZE);
    // If it can't be rounded, the kernel refuses it.
    pages
        .checked_next_power_of_two()
        .and_then(|pages| pages.checked_mul(limits::PAGE_SIZE))
        .unwrap_or(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_buffer_is_a_power_of_two_of_pages() {
        for (wanted, given) in [
            (0, 0),
            (1, 4096),
            (4096, 4096),
            (4097, 8192),
            (5000, 8192),
            (12288, 16384),
            (1 << 31, 1 << 31),
            (u32::MAX, u32::MAX),
        ] {
            assert_eq!(entries(MapType::Ringbuf, wanted), given, "{wanted}");
            assert_eq!(entries(MapType::Array, wanted), wanted);
        }
    }
}
