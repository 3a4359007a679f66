//! What maps hold: set as it was before, compared with what it was after.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::verdict::MapVerdict;
use crate::compare::recording::{Contents, MapEntry, MapRead, When};
use crate::program::{MapDef, MapOrigin};
use crate::spec::{MapType, UpdateFlags};
use crate::util::{Errno, MapId};
use crate::vm::maps::{Kind, Map};
use crate::vm::{Machine, MapHandle};

/// What a recording has of the maps: their entries after all was over, and those before where
/// a replay does not set them.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    before: Held,
    after: Held,
}

/// What maps held at one moment.
#[derive(Debug, Default)]
struct Held {
    entries: BTreeMap<u32, Entries>,
    reads: BTreeMap<u32, (Contents, String)>,
}

/// Values by their keys; where there are none, by their places, the oldest first.
type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

impl Recorded {
    fn at(&mut self, when: When) -> &mut Held {
        match when {
            When::Before => &mut self.before,
            When::After => &mut self.after,
        }
    }

    /// An entry.
    pub fn entry(&mut self, entry: &MapEntry<'_>) {
        let map = self.at(entry.when).entries.entry(entry.map).or_default();
        let key = match entry.key {
            [] => place(map.len()),
            key => key.to_vec(),
        };
        map.insert(key, entry.value.to_vec());
    }

    /// How a map was read.
    pub fn read(&mut self, read: &MapRead<'_>) {
        let why = String::from_utf8_lossy(read.why).into_owned();
        let reads = &mut self.at(read.when).reads;
        reads.insert(read.map, (read.contents, why));
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
        let theirs = match self.after.whole(map) {
            Ok(theirs) => theirs,
            Err(why) => return MapVerdict::NotCompared(why),
        };
        // Numbers of programs are each kernel's own. No program can change such a map, and at
        // the start it holds what the object says.
        let ours = match view.def().map_type {
            MapType::ProgArray => self.before.whole(map).map(Cow::Borrowed),
            _ => entries(view)
                .map(Cow::Owned)
                .map_err(|error| format!("it can't be read: {error}")),
        };
        let ours = match ours {
            Ok(ours) => ours,
            Err(why) => return MapVerdict::NotCompared(why),
        };
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
                is_outside: false,
            },
        }
    }
}

impl Held {
    /// All entries of a map, or why they are not all there.
    fn whole(&self, map: MapId) -> Result<&Entries, String> {
        const NONE: &Entries = &Entries::new();
        match self.reads.get(&map.0) {
            Some((Contents::Whole, _)) => Ok(self.entries.get(&map.0).unwrap_or(NONE)),
            Some((Contents::Torn | Contents::Unread, why)) => Err(why.clone()),
            None => Err("the recording does not have it".to_owned()),
        }
    }
}

/// The place of a value in a map without keys, in the shape of a key.
fn place(at: usize) -> Vec<u8> {
    u32::try_from(at).unwrap_or(u32::MAX).to_le_bytes().to_vec()
}

/// Whether what a map held before is needed in the end: it is not set.
pub(super) fn keeps_before(machine: &Machine, entry: &MapEntry<'_>) -> bool {
    let map = view(machine, MapId(entry.map));
    map.is_some_and(|map| map.def().map_type == MapType::ProgArray)
}

/// Sets an entry as it was before; false where the map does not take it.
pub(super) fn set(machine: &Machine, entry: &MapEntry<'_>) -> bool {
    let Some(map) = view(machine, MapId(entry.map)) else {
        return false;
    };
    let write = || {
        let written = map.write(entry.key, entry.value, UpdateFlags::empty());
        written.is_ok()
    };
    // What is read only for user space was set when the maps were made.
    let is_so = || map.read(entry.key).is_ok_and(|value| value == entry.value);
    match map.def().map_type {
        MapType::Queue | MapType::Stack => write(),
        MapType::ProgArray => true,
        _ => unsaid(map.def()).is_some() || is_so() || write(),
    }
}

/// The map of this number: maps of a machine that was just made are in the order of its
/// object's.
fn view(machine: &Machine, map: MapId) -> Option<&dyn Map> {
    machine.map(MapHandle(map.0)).map(|map| &**map)
}

/// All that a map holds.
fn entries(map: &dyn Map) -> Result<Entries, Errno> {
    if let Kind::Queue(queue) = map.kind() {
        let mut values = queue.values();
        if map.def().map_type == MapType::Stack {
            values.reverse();
        }
        return Ok((0..).map(place).zip(values).collect());
    }
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

/// Whether a map is a way for records that are compared as outputs, and holds nothing.
pub(super) const fn is_output(def: &MapDef) -> bool {
    matches!(def.map_type, MapType::Ringbuf | MapType::PerfEventArray)
}

/// Whether a map throws elements out when there is no room.
pub(super) const fn is_lru(def: &MapDef) -> bool {
    matches!(def.map_type, MapType::LruHash | MapType::LruPercpuHash)
}

/// Why the contents of a map can't be compared.
pub(super) fn unsaid(def: &MapDef) -> Option<&'static str> {
    Some(match def.map_type {
        MapType::Queue | MapType::Stack | MapType::ProgArray => return None,
        _ if is_output(def) => "its records are compared as outputs",
        MapType::UserRingbuf => "what user space writes to it is not recorded",
        MapType::StackTrace => "stacks are the kernel's: a replay takes their numbers as recorded",
        MapType::BloomFilter => {
            "nobody can read it; what is pushed is compared, what peeks are told is the kernel's"
        }
        MapType::CgroupArray => "it holds cgroups",
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
