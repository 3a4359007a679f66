//! What maps hold: set as it was before, compared with what it was after.

use std::collections::BTreeMap;

use super::verdict::MapVerdict;
use crate::compare::recording::{Contents, MapEntry, MapRead};
use crate::program::{MapDef, MapOrigin};
use crate::spec::{MapType, UpdateFlags};
use crate::util::{Errno, MapId};
use crate::vm::maps::Map;
use crate::vm::{Machine, MapHandle};

/// What a recording has of the maps after all was over.
#[derive(Debug, Default)]
pub(super) struct After {
    entries: BTreeMap<u32, BTreeMap<Vec<u8>, Vec<u8>>>,
    reads: BTreeMap<u32, (Contents, String)>,
}

impl After {
    /// An entry.
    pub fn entry(&mut self, entry: &MapEntry<'_>) {
        let map = self.entries.entry(entry.map).or_default();
        map.insert(entry.key.to_vec(), entry.value.to_vec());
    }

    /// How a map was read.
    pub fn read(&mut self, read: &MapRead<'_>) {
        let why = String::from_utf8_lossy(read.why).into_owned();
        self.reads.insert(read.map, (read.contents, why));
    }

    /// A map of the recording held against that of the replay. A difference is one of those
    /// entries of which there is no `doubt`; how many of the others differ is told besides.
    pub fn compare(
        &self,
        machine: &Machine,
        map: MapId,
        doubt: impl Fn(&[u8]) -> bool,
    ) -> (MapVerdict, usize) {
        let mut doubtful = 0;
        let verdict = self.verdict(machine, map, |key| {
            let is_doubtful = doubt(key);
            doubtful += usize::from(is_doubtful);
            !is_doubtful
        });
        (verdict, doubtful)
    }

    /// What is to be said; `counts` is asked of each entry that differs, once.
    fn verdict(
        &self,
        machine: &Machine,
        map: MapId,
        mut counts: impl FnMut(&[u8]) -> bool,
    ) -> MapVerdict {
        let Some(view) = view(machine, map) else {
            return MapVerdict::NotCompared("the replay has no such map".to_owned());
        };
        if let Some(why) = unsaid(view.def()) {
            return MapVerdict::NotCompared(why.to_owned());
        }
        match self.reads.get(&map.0) {
            Some((Contents::Whole, _)) => {}
            Some((Contents::Torn, why) | (Contents::Unread, why)) => {
                return MapVerdict::NotCompared(why.clone());
            }
            None => {
                return MapVerdict::NotCompared("the recording does not have it".to_owned());
            }
        }
        let ours = match entries(view) {
            Ok(ours) => ours,
            Err(error) => return MapVerdict::NotCompared(format!("it can't be read: {error}")),
        };
        let none = BTreeMap::new();
        let theirs = self.entries.get(&map.0).unwrap_or(&none);
        let mut keys: Vec<_> = theirs.keys().chain(ours.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.retain(|key| theirs.get(*key) != ours.get(*key) && counts(key));
        match keys.first() {
            None => MapVerdict::Equal(ours.len()),
            Some(_) if is_lru(view.def()) => MapVerdict::NotCompared(
                "each kernel has its own order in which LRU maps evict".to_owned(),
            ),
            Some(key) => MapVerdict::Different {
                key: (*key).clone(),
                expected: theirs.get(*key).cloned(),
                got: ours.get(*key).cloned(),
                entries: keys.len(),
            },
        }
    }
}

/// Sets an entry as it was before; false where the map does not take it.
pub(super) fn set(machine: &Machine, entry: &MapEntry<'_>) -> bool {
    let Some(map) = view(machine, MapId(entry.map)) else {
        return false;
    };
    // What is read only for user space was set when the maps were made.
    let is_so = || map.read(entry.key).is_ok_and(|value| value == entry.value);
    unsaid(map.def()).is_some()
        || is_so()
        || map
            .write(entry.key, entry.value, UpdateFlags::empty())
            .is_ok()
}

/// The map of this number: maps of a machine that was just made are in the order of its
/// object's.
fn view(machine: &Machine, map: MapId) -> Option<&dyn Map> {
    machine.map(MapHandle(map.0)).map(|map| &**map)
}

/// All that a map holds.
fn entries(map: &dyn Map) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, Errno> {
    let mut entries = BTreeMap::new();
    let size = (map.def().key_size as usize).max(1);
    for key in map.keys()?.chunks_exact(size) {
        match map.read(key) {
            Ok(value) => drop(entries.insert(key.to_vec(), value)),
            Err(Errno::ENOENT) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(entries)
}

/// Whether a map is a way for records, and holds nothing.
pub(super) const fn is_stream(def: &MapDef) -> bool {
    matches!(
        def.map_type,
        MapType::Ringbuf | MapType::UserRingbuf | MapType::PerfEventArray
    )
}

/// Whether a map throws elements out when there is no room.
pub(super) const fn is_lru(def: &MapDef) -> bool {
    matches!(def.map_type, MapType::LruHash | MapType::LruPercpuHash)
}

/// Why a map's contents say nothing.
pub(super) fn unsaid(def: &MapDef) -> Option<&'static str> {
    Some(match def.map_type {
        _ if is_stream(def) => "its records are compared as outputs",
        MapType::StackTrace => "stacks are the kernel's: a replay takes their numbers as recorded",
        MapType::Queue | MapType::Stack | MapType::BloomFilter => {
            "its values can't be read without taking them"
        }
        MapType::ProgArray | MapType::CgroupArray => "it holds programs or cgroups",
        kind if kind.holds_maps() => "it holds maps",
        kind if def.key_size == 0 || kind == MapType::Arena => "it has no keys",
        MapType::SkStorage
        | MapType::InodeStorage
        | MapType::TaskStorage
        | MapType::CgrpStorage => "its keys are objects of that kernel",
        _ if matches!(def.origin, MapOrigin::StructOps(_)) => "it holds programs",
        _ => return None,
    })
}
