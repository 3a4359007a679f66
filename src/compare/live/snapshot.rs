//! The contents of maps, as they were before and after.

use std::io::Write;

use crate::compare::answer::MapContents;
use crate::compare::recording::{self, MapEntry, MapRead, When, WriteError, Writer};
use crate::kernel::outputs::Contents;
use crate::kernel::{KernelMap, LoadedMaps};
use crate::program::MapDef;
use crate::spec::{MapType, UpdateFlags};
use crate::util::{Errno, MapId};

/// What all maps of an object held at a moment, or why that of one can't be told.
#[derive(Debug, Default)]
pub(in crate::compare) struct Snapshot(Vec<Result<Held, String>>);

/// What a map held.
#[derive(Debug)]
enum Held {
    /// Its elements.
    Elements(Contents),
    /// Values without keys, the oldest first.
    Values(Vec<Vec<u8>>),
}

impl Held {
    fn len(&self) -> usize {
        match self {
            Self::Elements(contents) => contents.len(),
            Self::Values(values) => values.len(),
        }
    }

    /// Keys, which may be empty, and values.
    fn iter(&self) -> Box<dyn Iterator<Item = (&[u8], &[u8])> + '_> {
        match self {
            Self::Elements(contents) => Box::new(contents.iter()),
            Self::Values(values) => Box::new(values.iter().map(|value| (&[][..], &value[..]))),
        }
    }
}

impl Snapshot {
    /// Reads the maps of these definitions. Nobody should be writing to them meanwhile.
    pub fn read(maps: &LoadedMaps, defs: &[MapDef]) -> Self {
        let ids = (0..).map(MapId::from_index);
        Self(
            ids.zip(defs)
                .map(|(id, def)| read(maps.map(id), def))
                .collect(),
        )
    }

    /// Reads those of this name once more, since we have written to them ourselves.
    pub fn renew(&mut self, maps: &LoadedMaps, defs: &[MapDef], name: &str) {
        let ids = (0..).map(MapId::from_index);
        for (held, (id, def)) in self.0.iter_mut().zip(ids.zip(defs)) {
            if def.name == name {
                *held = read(maps.map(id), def);
            }
        }
    }

    /// Writes them to a recording.
    pub fn write<W: Write>(&self, writer: &mut Writer<W>, when: When) -> Result<(), WriteError> {
        for (map, held) in (0..).zip(&self.0) {
            for (key, value) in held.iter().flat_map(Held::iter) {
                writer.map_entry(&MapEntry {
                    when,
                    map,
                    key,
                    value,
                })?;
            }
            let (contents, entries, why) = match held {
                Ok(held) => (recording::Contents::Whole, held.len() as u64, ""),
                Err(why) => (recording::Contents::Unread, 0, why.as_str()),
            };
            writer.map_read(&MapRead {
                when,
                map,
                contents,
                entries,
                why: why.as_bytes(),
            })?;
        }
        Ok(())
    }
}

fn read(map: Option<KernelMap<'_>>, def: &MapDef) -> Result<Held, String> {
    let map = map.ok_or("it was not made")?;
    match def.map_type {
        MapType::Queue | MapType::Stack => {
            let values = values(&map, def);
            return values.map(Held::Values).map_err(|errno| errno.to_string());
        }
        // The numbers of its programs, which nobody but us should change.
        MapType::ProgArray => {}
        _ if MapContents::are_kept_by(def) => {}
        kind => return Err(format!("a {} has no entries to read", kind.name())),
    }
    let contents = Contents::read(&map).map_err(|errno| errno.to_string())?;
    Ok(Held::Elements(contents))
}

/// The values of a queue or stack, the oldest first: they are taken, and put back in the same
/// order.
fn values(map: &KernelMap<'_>, def: &MapDef) -> Result<Vec<Vec<u8>>, Errno> {
    let mut values = Vec::new();
    // Somebody else may be pushing.
    while values.len() < def.max_entries as usize {
        match map.lookup_and_delete(&[], UpdateFlags::empty()) {
            Ok(value) => values.push(value),
            Err(Errno::ENOENT) => break,
            Err(errno) => return Err(errno),
        }
    }
    if def.map_type == MapType::Stack {
        values.reverse();
    }
    for value in &values {
        map.update(&[], value, UpdateFlags::empty())?;
    }
    Ok(values)
}
