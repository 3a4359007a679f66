//! Map contents: sets the entries read before the recording, compares those read after it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::verdict::MapVerdict;
use crate::compare::recording::{Contents, MapEntry, MapRead, When};
use crate::program::{MapDef, MapOrigin};
use crate::spec::{MapType, UpdateFlags};
use crate::util::{Errno, MapId};
use crate::vm::maps::{Kind, Map};
use crate::vm::{Machine, MapHandle};

/// The recorded map contents: those read at the end, and those read before where a replay
/// does not set them.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    before: Snapshot,
    after: Snapshot,
}

/// The contents of the maps at one moment.
#[derive(Debug, Default)]
struct Snapshot {
    entries: BTreeMap<u32, Entries>,
    reads: BTreeMap<u32, (Contents, String)>,
}

/// Values by key; in maps without keys by index, the oldest first.
type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

impl Recorded {
    fn at(&mut self, when: When) -> &mut Snapshot {
        match when {
            When::Before => &mut self.before,
            When::After => &mut self.after,
        }
    }

    /// Adds an entry.
    pub fn entry(&mut self, entry: &MapEntry<'_>) {
        let map = self.at(entry.when).entries.entry(entry.map).or_default();
        let key = match entry.key {
            [] => index_key(map.len()),
            key => key.to_vec(),
        };
        map.insert(key, entry.value.to_vec());
    }

    /// Sets how completely a map was read.
    pub fn read(&mut self, read: &MapRead<'_>) {
        let why = String::from_utf8_lossy(read.why).into_owned();
        let reads = &mut self.at(read.when).reads;
        reads.insert(read.map, (read.contents, why));
    }

    /// Compares the recorded contents of a map with the replay's. Entries for which `doubt`
    /// holds make no difference; how many of them differ is returned, too.
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

    /// The verdict; `counts` is called once for each entry that differs, by key.
    fn verdict(
        &self,
        machine: &Machine,
        map: MapId,
        mut counts: impl FnMut(&[u8]) -> bool,
    ) -> MapVerdict {
        let Some(view) = view(machine, map) else {
            return MapVerdict::NotCompared("the object does not have the map".to_owned());
        };
        if let Some(why) = not_comparable(view.def()) {
            return MapVerdict::NotCompared(why.to_owned());
        }
        let theirs = match self.after.whole(map) {
            Ok(theirs) => theirs,
            Err(why) => return MapVerdict::NotCompared(why),
        };
        // A prog array reads as program ids, which are the kernel's own. No program can change
        // it, so its contents before and after are compared.
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
                "the order in which LRU maps evict is not reproducible".to_owned(),
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

impl Snapshot {
    /// All entries of a map, or why the recording does not have them all.
    fn whole(&self, map: MapId) -> Result<&Entries, String> {
        const NONE: &Entries = &Entries::new();
        match self.reads.get(&map.0) {
            Some((Contents::Whole, _)) => Ok(self.entries.get(&map.0).unwrap_or(NONE)),
            Some((Contents::Torn | Contents::Unread, why)) => Err(why.clone()),
            None => Err("the recording does not have it".to_owned()),
        }
    }
}

/// The index of a value in a map without keys, as the bytes of a key.
fn index_key(at: usize) -> Vec<u8> {
    u32::try_from(at).unwrap_or(u32::MAX).to_le_bytes().to_vec()
}

/// Whether the entry of a map before is kept for the comparison at the end, since a replay
/// does not set it.
pub(super) fn keeps_before(machine: &Machine, entry: &MapEntry<'_>) -> bool {
    let map = view(machine, MapId(entry.map));
    map.is_some_and(|map| map.def().map_type == MapType::ProgArray)
}

/// Sets an entry to its value before the recording; false if the map refuses it.
pub(super) fn set(machine: &Machine, entry: &MapEntry<'_>) -> bool {
    let Some(map) = view(machine, MapId(entry.map)) else {
        return false;
    };
    let write = || {
        let written = map.write(entry.key, entry.value, UpdateFlags::empty());
        written.is_ok()
    };
    // Maps that user space can only read got their contents when they were created.
    let is_set = || map.read(entry.key).is_ok_and(|value| value == entry.value);
    match map.def().map_type {
        MapType::Queue | MapType::Stack => write(),
        MapType::ProgArray => true,
        _ => not_comparable(map.def()).is_some() || is_set() || write(),
    }
}

/// The map of this number: a new machine has its maps in the object's order.
fn view(machine: &Machine, map: MapId) -> Option<&dyn Map> {
    machine.map(MapHandle(map.0)).map(|map| &**map)
}

/// All entries of a map.
fn entries(map: &dyn Map) -> Result<Entries, Errno> {
    if let Kind::Queue(queue) = map.kind() {
        let mut values = queue.values();
        if map.def().map_type == MapType::Stack {
            values.reverse();
        }
        return Ok((0..).map(index_key).zip(values).collect());
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

/// Whether a map is a ring or perf buffer: its records are compared as outputs.
pub(super) const fn is_output(def: &MapDef) -> bool {
    matches!(def.map_type, MapType::Ringbuf | MapType::PerfEventArray)
}

/// Whether a map evicts elements when it is full.
pub(super) const fn is_lru(def: &MapDef) -> bool {
    matches!(def.map_type, MapType::LruHash | MapType::LruPercpuHash)
}

/// Why the contents of a map can't be compared.
pub(super) fn not_comparable(def: &MapDef) -> Option<&'static str> {
    Some(match def.map_type {
        MapType::Queue | MapType::Stack | MapType::ProgArray => return None,
        _ if is_output(def) => "its records are compared as outputs",
        MapType::UserRingbuf => "what user space writes to it is not recorded",
        MapType::StackTrace => "a replay has no stacks: it uses the recorded stack ids",
        MapType::BloomFilter => {
            "it can't be read: pushes are compared, results of peeks are the kernel's"
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
