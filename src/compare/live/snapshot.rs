//! The contents of maps, as they were before and after.

use std::io::Write;

use crate::compare::answer::MapContents;
use crate::compare::recording::{self, MapEntry, MapRead, When, WriteError, Writer};
use crate::kernel::outputs::Contents;
use crate::kernel::{KernelMap, LoadedMaps};
use crate::program::MapDef;
use crate::util::MapId;

/// What all maps of an object held at a moment, or why that of one can't be told.
#[derive(Debug, Default)]
pub(in crate::compare) struct Snapshot(Vec<Result<Contents, String>>);

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
            for (key, value) in held.iter().flat_map(Contents::iter) {
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

fn read(map: Option<KernelMap<'_>>, def: &MapDef) -> Result<Contents, String> {
    let map = map.ok_or("it was not made")?;
    if !MapContents::are_kept_by(def) {
        return Err(format!("a {} has no entries to read", def.map_type.name()));
    }
    Contents::read(&map).map_err(|errno| errno.to_string())
}
