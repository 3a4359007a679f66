//! The maps that every generated program has, whether it uses them or not.

use std::sync::Arc;

use super::choices::Choices;
use crate::program::{Initial, MapDef};
use crate::spec::MapType;

/// The maps by number; a program's [`MapId`](crate::util::MapId)s.
pub(super) const ARRAY: u32 = 0;
pub(super) const HASH: u32 = 1;
pub(super) const PER_CPU_ARRAY: u32 = 2;
pub(super) const PER_CPU_HASH: u32 = 3;
/// One value, accessed directly, for results.
pub(super) const RESULTS: u32 = 4;
pub(super) const QUEUE: u32 = 5;
pub(super) const STACK: u32 = 6;
pub(super) const RING: u32 = 7;
pub(super) const JUMPS: u32 = 8;
pub(super) const PERF: u32 = 9;
/// Arrays, each with two values, in an array and in a hash.
pub(super) const OUTER: u32 = 10;
const INNER: u32 = 11;
/// One value: an upper bound of the frames that wait below the targets of tail calls.
pub(super) const WAITING: u32 = 12;
/// One value, with a pointer to a task; only with a kernel.
pub(super) const KPTRS: u32 = 13;

/// Maps whose values can be looked up.
pub(super) const VALUES: [u32; 4] = [ARRAY, HASH, PER_CPU_ARRAY, PER_CPU_HASH];
/// Maps from which elements can be deleted.
pub(super) const HASHES: [u32; 2] = [HASH, PER_CPU_HASH];

/// Name, type, bytes of a key and of a value, entries.
const TABLE: [(&str, MapType, u32, u32, u32); 13] = [
    ("array", MapType::Array, 4, 32, 5),
    ("hash", MapType::Hash, 8, 24, 8),
    ("cpu_array", MapType::PercpuArray, 4, 16, 2),
    ("cpu_hash", MapType::PercpuHash, 4, 8, 4),
    ("results", MapType::Array, 4, 64, 1),
    ("queue", MapType::Queue, 0, 8, 4),
    ("stack", MapType::Stack, 0, 16, 4),
    ("ring", MapType::Ringbuf, 0, 0, 4096),
    ("jumps", MapType::ProgArray, 4, 4, 4),
    ("perf", MapType::PerfEventArray, 4, 4, 0),
    ("outer", MapType::ArrayOfMaps, 4, 4, 2),
    ("inner", MapType::Array, 4, 16, 2),
    ("waiting", MapType::Array, 4, 8, 1),
];

/// Bytes of a key.
pub(super) fn key_size(map: u32) -> i16 {
    row(map).map_or(0, |row| i16::try_from(row.2).unwrap_or_default())
}

/// Bytes of a value, for per-CPU maps of one CPU's.
pub(super) fn value_size(map: u32) -> i16 {
    row(map).map_or(0, |row| i16::try_from(row.3).unwrap_or_default())
}

fn row(map: u32) -> Option<&'static (&'static str, MapType, u32, u32, u32)> {
    TABLE.get(usize::try_from(map).ok()?)
}

/// The value size of the maps inside [`OUTER`].
pub(super) const INNER_VALUE: i16 = 16;

/// The structure of the values of [`KPTRS`], and its members with their structures.
pub(super) const KPTR_VALUE: &str = "kptrs";
pub(super) const KPTR_MEMBER: &str = "task";
pub(super) const KPTR_OBJECT: &str = "task_struct";

/// The map definitions with contents. `others` are the programs of the prog array.
pub(super) fn definitions(
    choices: &mut Choices,
    others: &[String],
    has_kernel: bool,
) -> Arc<[MapDef]> {
    let mut defs: Vec<MapDef> = TABLE
        .iter()
        .map(|(name, map_type, key, value, entries)| {
            MapDef::new(*name, *map_type, *key, *value, *entries)
        })
        .collect();
    let inner = defs[INNER as usize].clone();
    let outer = &mut defs[OUTER as usize];
    outer.inner = Some(Box::new(inner));
    outer.initial.push(Initial::Map {
        index: 1,
        map: crate::util::MapId(INNER),
    });
    for (index, name) in (0..).zip(others) {
        defs[JUMPS as usize].initial.push(Initial::Program {
            index,
            name: name.clone(),
        });
    }
    for map in [ARRAY, HASH, RESULTS, INNER] {
        let def = &mut defs[map as usize];
        let most = usize::try_from(def.max_entries.min(3)).unwrap_or_default();
        for key in 0..choices.below(most + 1) {
            let mut bytes = vec![0; def.key_size as usize];
            if let (Some(first), Ok(key)) = (bytes.first_mut(), u8::try_from(key)) {
                *first = key;
            }
            let value = choices.contents(def.value_size as usize).into();
            def.initial.push(Initial::Bytes { key: bytes, value });
        }
    }
    if has_kernel {
        defs.push(MapDef::new(KPTR_VALUE, MapType::Array, 4, 8, 1));
    }
    defs.into()
}
