//! Sections of global data as maps of one element (libbpf,
//! `bpf_object__init_internal_map`).

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::error::{ObjectError, Problem};
use super::image::{Binding, DefinedIn, Image, Section, SectionKind, SymbolKind};
use super::model::{Global, prefix};
use super::types::Sections;
use crate::btf::{Linkage, Type};
use crate::program::{Initial, MapDef, MapOrigin};
use crate::spec::{MapFlags, MapType, limits};
use crate::util::{MapId, TypeId};

/// Bytes of the array's key.
const KEY_SIZE: u32 = 4;
/// The key of its only element.
pub(super) const KEY: [u8; KEY_SIZE as usize] = [0; 4];

/// Bytes that libbpf reserves for the section's name after the object's: `.rodata` fits.
const SUFFIX_LEN: usize = 7;

/// Access to a section of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DataKind {
    /// `.data*`, `.bss*`: read and written by programs and user space.
    Writable,
    /// `.rodata*`, `.kconfig`: read by programs; frozen when loaded.
    ReadOnly,
}

/// The kind of data section, if the section becomes a map.
pub(super) fn kind_of(section: &Section<'_>) -> Option<DataKind> {
    let is = |base: &str| {
        section
            .name
            .strip_prefix(base)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    match section.kind {
        SectionKind::Bits if section.executable => None,
        SectionKind::Bits if is(".data") => Some(DataKind::Writable),
        SectionKind::Bits if is(".rodata") => Some(DataKind::ReadOnly),
        SectionKind::Zeroed if is(".bss") => Some(DataKind::Writable),
        _ => None,
    }
}

/// The map of a section of data; `ty` is the section's type.
///
/// # Errors
/// A section of more than 4 GiB.
pub(super) fn map(
    object: &str,
    section: &Section<'_>,
    kind: DataKind,
    ty: Option<Type<'_>>,
) -> Result<MapDef, ObjectError> {
    let size = u32::try_from(section.size).map_err(|_| {
        let text = format!("{:#x} bytes; a map's value has at most 4 GiB", section.size);
        ObjectError::section(&section.name, 0, Problem::Malformed(text))
    })?;
    let origin = MapOrigin::Section(section.name.clone().into_owned());
    let mut map = define(object, &section.name, size, kind, ty, origin);
    if !section.data.is_empty() {
        map.initial = vec![initial(Arc::from(&*section.data))];
    }
    Ok(map)
}

/// The map of a section of `size` bytes, all zero.
pub(super) fn define(
    object: &str,
    section: &str,
    size: u32,
    kind: DataKind,
    ty: Option<Type<'_>>,
    origin: MapOrigin,
) -> MapDef {
    let mut map = MapDef::new(map_name(object, section), MapType::Array, KEY_SIZE, size, 1);
    map.value_type = ty.map(|ty| ty.id());
    map.origin = origin;
    if kind == DataKind::ReadOnly {
        map.flags |= MapFlags::RDONLY_PROG;
        map.frozen = true;
    }
    if ty.is_some_and(shows) {
        map.flags |= MapFlags::MMAPABLE;
    }
    map
}

/// The initial element of a map of data.
pub(super) fn initial(value: Arc<[u8]>) -> Initial {
    Initial::Bytes {
        key: KEY.to_vec(),
        value,
    }
}

/// Overwrites bytes of the initial value of a map of data.
pub(super) fn write(map: &mut MapDef, offset: usize, bytes: &[u8]) {
    let mut value = map.initial_value(&KEY).unwrap_or_default().to_vec();
    let end = offset.saturating_add(bytes.len());
    if value.len() < end {
        value.resize(end, 0);
    }
    if let Some(place) = value.get_mut(offset..end) {
        place.copy_from_slice(bytes);
    }
    let is_value = |entry: &Initial| matches!(entry, Initial::Bytes { key, .. } if key == &KEY);
    map.initial.retain(|entry| !is_value(entry));
    map.initial.push(initial(Arc::from(value)));
}

/// Whether a section has a variable that user space sees: one that isn't static.
fn shows(section: Type<'_>) -> bool {
    section.variables().any(|place| {
        let linkage = section.btf().ty(place.ty).linkage();
        linkage.is_some_and(|linkage| linkage != Linkage::Static)
    })
}

/// libbpf's name for the map of a section: the start of the object's name and the
/// section's, or only the section's if it has a second dot; truncated and with invalid
/// characters replaced, as in the kernel.
fn map_name(object: &str, section: &str) -> String {
    let room = limits::OBJECT_NAME_LEN - 1;
    let suffix_len = section.len().clamp(SUFFIX_LEN, room);
    let is_custom = section.get(1..).is_some_and(|rest| rest.contains('.'));
    let prefix_len = if is_custom { 0 } else { room - suffix_len };
    let taken = |byte: char| byte.is_ascii_alphanumeric() || matches!(byte, '_' | '.');
    let name = prefix(object, prefix_len)
        .chars()
        .chain(prefix(section, suffix_len).chars());
    name.map(|c| if taken(c) { c } else { '_' }).collect()
}

/// The variables of the sections that became maps; `map_of` returns a section's map.
pub(super) fn globals(
    image: &Image<'_>,
    sections: &Sections<'_>,
    map_of: impl Fn(usize) -> Option<MapId>,
) -> Vec<Global> {
    let types = variables(image, sections);
    let mut globals = Vec::new();
    for symbol in &image.symbols {
        let DefinedIn::Section(section) = symbol.defined_in else {
            continue;
        };
        let (Some(map), SymbolKind::Object) = (map_of(section), symbol.kind) else {
            continue;
        };
        let (Ok(offset), Ok(size)) = (u32::try_from(symbol.value), u32::try_from(symbol.size))
        else {
            continue;
        };
        let end = symbol.value.saturating_add(symbol.size);
        if image
            .section(section)
            .is_none_or(|section| end > section.size)
        {
            continue;
        }
        globals.push(Global {
            name: symbol.name.clone().into_owned(),
            map,
            offset,
            size,
            ty: types.get(&(section, offset, &*symbol.name)).copied(),
            global: symbol.binding != Binding::Local,
        });
    }
    globals
}

/// The types of variables by section, offset and name.
fn variables<'a>(
    image: &Image<'_>,
    sections: &Sections<'a>,
) -> FxHashMap<(usize, u32, &'a str), TypeId> {
    let mut types = FxHashMap::default();
    for (index, section) in image.sections.iter().enumerate() {
        if kind_of(section).is_none() {
            continue;
        }
        let Some(ty) = sections.get(&section.name) else {
            continue;
        };
        for place in ty.variables() {
            let variable = ty.btf().ty(place.ty);
            if let Some(of) = variable.target_id() {
                types.insert((index, place.offset, variable.name()), of);
            }
        }
    }
    types
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_called_what_libbpf_calls_them() {
        for (object, section, name) in [
            ("my_object_name", ".rodata", "my_objec.rodata"),
            ("my_object_name", ".bss", "my_objec.bss"),
            ("my_object_name", ".kconfig", "my_obje.kconfig"),
            ("my_object_name", ".rodata.abracadabra", ".rodata.abracad"),
            ("write_hist", ".rodata.str1.1", ".rodata.str1.1"),
            ("a", ".data", "a.data"),
            ("a-b", ".data", "a_b.data"),
        ] {
            assert_eq!(map_name(object, section), name);
        }
    }
}
