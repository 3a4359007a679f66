//! Contents of maps before and after a session.

use std::io::Write;

use crate::compare::answer::MapContents;
use crate::compare::recording::{self, MapEntry, MapRead, When, WriteError, Writer};
use crate::kernel::outputs::Contents;
use crate::kernel::{KernelMap, LoadedMaps};
use crate::program::MapDef;
use crate::spec::{MapType, UpdateFlags};
use crate::util::{Errno, MapId};

/// The contents of all maps of an object at one moment, or why one can't be read.
#[derive(Debug, Default)]
pub(in crate::compare) struct Snapshot(Vec<Result<MapSnapshot, String>>);

/// The contents of a map.
#[derive(Debug)]
enum MapSnapshot {
    /// Keys and values.
    Elements(Contents),
    /// Values of a map without keys, the oldest first.
    Values(Vec<Vec<u8>>),
}

impl MapSnapshot {
    fn len(&self) -> usize {
        match self {
            Self::Elements(contents) => contents.len(),
            Self::Values(values) => values.len(),
        }
    }

    /// Keys and values; keys are empty for a map without keys.
    fn iter(&self) -> Box<dyn Iterator<Item = (&[u8], &[u8])> + '_> {
        match self {
            Self::Elements(contents) => Box::new(contents.iter()),
            Self::Values(values) => Box::new(values.iter().map(|value| (&[][..], &value[..]))),
        }
    }
}

impl Snapshot {
    /// Reads the maps of these definitions. Programs should not be writing to them meanwhile.
    pub fn read(maps: &LoadedMaps, defs: &[MapDef]) -> Self {
        let ids = (0..).map(MapId::from_index);
        Self(
            ids.zip(defs)
                .map(|(id, def)| read(maps.map(id), def))
                .collect(),
        )
    }

    /// Reads the maps of this name again, after bpflab has written to them.
    pub fn renew(&mut self, maps: &LoadedMaps, defs: &[MapDef], name: &str) {
        let ids = (0..).map(MapId::from_index);
        for (snapshot, (id, def)) in self.0.iter_mut().zip(ids.zip(defs)) {
            if def.name == name {
                *snapshot = read(maps.map(id), def);
            }
        }
    }

    /// Writes them to a recording.
    pub fn write<W: Write>(&self, writer: &mut Writer<W>, when: When) -> Result<(), WriteError> {
        for (map, snapshot) in (0..).zip(&self.0) {
            for (key, value) in snapshot.iter().flat_map(MapSnapshot::iter) {
                writer.map_entry(&MapEntry {
                    when,
                    map,
                    key,
                    value,
                })?;
            }
            let (contents, entries, why) = match snapshot {
                Ok(snapshot) => (recording::Contents::Whole, snapshot.len() as u64, ""),
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

fn read(map: Option<KernelMap<'_>>, def: &MapDef) -> Result<MapSnapshot, String> {
    let map = map.ok_or("it was not created")?;
    match def.map_type {
        MapType::Queue | MapType::Stack => {
            let values = values(&map, def);
            return values
                .map(MapSnapshot::Values)
                .map_err(|errno| errno.to_string());
        }
        // Reads as program ids; only bpflab changes them.
        MapType::ProgArray => {}
        _ if MapContents::are_kept_by(def) => {}
        kind => return Err(format!("a {} has no entries to read", kind.name())),
    }
    let contents = Contents::read(&map).map_err(|errno| errno.to_string())?;
    Ok(MapSnapshot::Elements(contents))
}

/// The values of a queue or stack, the oldest first: pops them and pushes them back in the same
/// order.
fn values(map: &KernelMap<'_>, def: &MapDef) -> Result<Vec<Vec<u8>>, Errno> {
    let mut values = Vec::new();
    // Others may be pushing meanwhile.
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
