//! Maps declared in a `maps` section, one C struct each: libbpf's before 1.0, aya's without
//! BTF, and iproute2's (`struct bpf_elf_map`). The structs agree in their first five words
//! and then differ.

use super::error::{ObjectError, Problem};
use super::image::{DefinedIn, Image, SymbolKind};
use super::maps_btf::entries;
use crate::program::{MapDef, Pinning};
use crate::spec::{MapFlags, MapType};
use crate::util::Reader;

/// Bytes of the smallest struct: type, key size, value size, entries.
const LEAST: u64 = 16;
/// Size at and above which it is iproute2's struct: the number of the inner map is its
/// eighth word; aya's struct has seven.
const ELF_MAP: usize = 32;

/// A declared map, and its offset in the section.
#[derive(Debug)]
pub(super) struct Declared {
    pub map: MapDef,
    /// First byte in the section.
    pub offset: u64,
    /// iproute2's number for it; 0 for none.
    id: u32,
    /// The number of the map that defines its inner maps.
    inner: u32,
}

/// Whether a section of this name contains such maps.
pub(super) fn is_section(name: &str) -> bool {
    name == "maps" || name.starts_with("maps/")
}

/// The maps of the section of this number.
///
/// # Errors
/// A struct that is too short, or a map type that doesn't exist.
pub(super) fn collect(image: &Image<'_>, index: usize) -> Result<Vec<Declared>, ObjectError> {
    let Some(section) = image.section(index) else {
        return Ok(Vec::new());
    };
    let mut symbols: Vec<(u64, &str)> = image
        .symbols
        .iter()
        .filter(|symbol| {
            symbol.defined_in == DefinedIn::Section(index)
                && matches!(symbol.kind, SymbolKind::Object | SymbolKind::Untyped)
                && !symbol.name.is_empty()
        })
        .map(|symbol| (symbol.value, &*symbol.name))
        .collect();
    symbols.sort_unstable();
    symbols.dedup_by_key(|(offset, _)| *offset);

    let mut maps = Vec::with_capacity(symbols.len());
    for (at, &(offset, name)) in symbols.iter().enumerate() {
        let end = symbols.get(at + 1).map_or(section.size, |next| next.0);
        let size = end.saturating_sub(offset);
        let range = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
        let bytes = range.and_then(|(from, to)| section.data.get(from..to));
        let Some(bytes) = bytes.filter(|_| size >= LEAST) else {
            let text = format!("map '{name}' has {size} bytes; a definition has at least {LEAST}");
            return Err(ObjectError::section(
                &section.name,
                offset,
                Problem::MapDefinition(text),
            ));
        };
        maps.push(declared(name, bytes, offset)?);
    }
    inner_maps(&mut maps);
    Ok(maps)
}

fn declared(name: &str, bytes: &[u8], offset: u64) -> Result<Declared, ObjectError> {
    let mut reader = Reader::new(bytes);
    // Words missing from a shorter struct are 0.
    let mut word = || reader.u32().unwrap_or(0);
    let number = word();
    let map_type = MapType::from_number(number).ok_or_else(|| {
        let text = format!("Linux 6.18 has no map type {number}");
        ObjectError::map(name, Problem::MapDefinition(text))
    })?;
    let (key_size, value_size, wanted) = (word(), word(), word());
    let mut map = MapDef::new(
        name,
        map_type,
        key_size,
        value_size,
        entries(map_type, wanted),
    );
    map.flags = MapFlags::from_bits_retain(word());
    let (id, pinning, inner) = (word(), word(), word());
    map.pinning = match (pinning, bytes.len() >= ELF_MAP) {
        (0, _) => Pinning::None,
        // aya's `PinningType::ByName`, iproute2's `PIN_GLOBAL_NS`.
        (1, false) | (2, _) => Pinning::ByName,
        (1, true) => Pinning::ByObject,
        (other, _) => Pinning::Other(other),
    };
    Ok(Declared {
        map,
        offset,
        id,
        inner,
    })
}

/// Sets the inner map definition of maps of maps, by number.
fn inner_maps(maps: &mut [Declared]) {
    let by_id: rustc_hash::FxHashMap<u32, usize> = maps
        .iter()
        .enumerate()
        .filter(|(_, map)| map.id != 0)
        .map(|(index, map)| (map.id, index))
        .collect();
    for index in 0..maps.len() {
        let Some(outer) = maps.get(index) else {
            continue;
        };
        let holds_maps = matches!(
            outer.map.map_type,
            MapType::ArrayOfMaps | MapType::HashOfMaps
        );
        let shape = by_id
            .get(&outer.inner)
            .filter(|inner| holds_maps && **inner != index)
            .and_then(|inner| maps.get(*inner))
            .map(|inner| MapDef {
                inner: None,
                ..inner.map.clone()
            });
        if let (Some(shape), Some(outer)) = (shape, maps.get_mut(index)) {
            outer.map.inner = Some(Box::new(shape));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of these words.
    fn pinning(words: &[u32]) -> Pinning {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        declared("m", &bytes, 0).unwrap().map.pinning
    }

    #[test]
    fn pinning_means_what_the_struct_of_its_length_says() {
        for (words, wanted) in [
            (&[1, 4, 8, 16, 0][..], Pinning::None),
            (&[1, 4, 8, 16, 0, 0, 1], Pinning::ByName),
            (&[1, 4, 8, 16, 0, 0, 2], Pinning::ByName),
            (&[1, 4, 8, 16, 0, 0, 1, 0, 0], Pinning::ByObject),
            (&[1, 4, 8, 16, 0, 0, 2, 0, 0], Pinning::ByName),
            (&[1, 4, 8, 16, 0, 0, 7, 0, 0], Pinning::Other(7)),
        ] {
            assert_eq!(pinning(words), wanted, "{words:?}");
        }
    }
}
