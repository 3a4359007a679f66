//! Random operations on maps of programs and maps, and on bloom filters, compared with a plain
//! model.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::{Kind, create as make};
use super::{ANY, keys, map};
use crate::program::MapDef;
use crate::spec::{MapType, UpdateFlags};
use crate::util::Errno;
use crate::vm::{MapHandle, ProgramHandle};

const ENTRIES: u32 = 4;

#[derive(Debug, Clone)]
enum Op {
    Put(u32, u32, u64),
    Remove(u32),
    Get(u32),
}

fn op() -> impl Strategy<Value = Op> {
    let (key, flags) = (0..6u32, prop_oneof![4 => Just(0u64), 2 => 1..5u64]);
    prop_oneof![
        5 => (key.clone(), 0..9u32, flags).prop_map(|(key, what, flags)| Op::Put(key, what, flags)),
        2 => key.clone().prop_map(Op::Remove),
        3 => key.prop_map(Op::Get),
    ]
}

/// The model: what each slot of an array or key of a hash has.
#[derive(Debug, Default)]
struct Slots {
    keyed: bool,
    there: BTreeMap<u32, u32>,
}

impl Slots {
    fn put(&mut self, key: u32, what: u32, flags: u64) -> Result<(), Errno> {
        if self.keyed {
            match (flags, self.there.contains_key(&key)) {
                (3.., _) => return Err(Errno::EINVAL),
                (1, true) => return Err(Errno::EEXIST),
                (2, false) => return Err(Errno::ENOENT),
                (_, false) if self.there.len() == 4 => return Err(Errno::E2BIG),
                _ => {}
            }
        } else if flags != 0 {
            return Err(Errno::EINVAL);
        } else if key >= ENTRIES {
            return Err(Errno::E2BIG);
        }
        self.there.insert(key, what);
        Ok(())
    }

    fn remove(&mut self, key: u32) -> Result<(), Errno> {
        if !self.keyed && key >= ENTRIES {
            return Err(Errno::E2BIG);
        }
        self.there.remove(&key).map(drop).ok_or(Errno::ENOENT)
    }

    /// Arrays return every slot, even empty ones.
    fn keys(&self) -> Vec<Vec<u8>> {
        let keys: Vec<u32> = match self.keyed {
            true => self.there.keys().copied().collect(),
            false => (0..ENTRIES).collect(),
        };
        keys.into_iter()
            .map(|key| key.to_le_bytes().to_vec())
            .collect()
    }
}

proptest! {
    #[test]
    fn maps_of_maps(keyed: bool, ops in vec(op(), 0..60)) {
        let map_type = if keyed { MapType::HashOfMaps } else { MapType::ArrayOfMaps };
        let shape = MapDef::new("shape", MapType::Hash, 4, 8, 3);
        let mut def = MapDef::new("m", map_type, 4, 4, ENTRIES);
        def.inner = Some(Box::new(shape.clone()));
        let map = make(&def, 2).unwrap();
        let Kind::MapOfMaps(inner) = map.kind() else {
            return Err(TestCaseError::fail("no map of maps"));
        };
        let mut model = Slots { keyed, ..Slots::default() };
        for op in ops {
            match op {
                Op::Put(key, what, flags) => {
                    let bits = UpdateFlags::from_bits_retain(flags);
                    let put = inner.set(&key.to_le_bytes(), MapHandle(what), &shape, bits);
                    prop_assert_eq!(put, model.put(key, what, flags));
                }
                Op::Remove(key) => {
                    prop_assert_eq!(map.remove(&key.to_le_bytes()), model.remove(key));
                }
                Op::Get(key) => {
                    let there = model.there.get(&key).copied();
                    prop_assert_eq!(inner.get(&key.to_le_bytes()), there.map(MapHandle));
                    let id = there.map(|id| id.to_le_bytes().to_vec());
                    prop_assert_eq!(map.read(&key.to_le_bytes()), id.ok_or(Errno::ENOENT));
                }
            }
            prop_assert_eq!(keys(&*map), model.keys());
            // A batch skips empty slots.
            let batch = map.read_batch(None, 9, ANY);
            prop_assert_eq!(batch.keys.len(), 4 * model.there.len());
        }
    }

    #[test]
    fn arrays_of_programs(ops in vec(op(), 0..60)) {
        let map = map(MapType::ProgArray, 4, 4, ENTRIES);
        let Kind::ProgArray(programs) = map.kind() else {
            return Err(TestCaseError::fail("no array of programs"));
        };
        let mut model = Slots::default();
        for op in ops {
            match op {
                Op::Put(key, what, _) => {
                    let put = programs.set(key, ProgramHandle(what));
                    prop_assert_eq!(put, model.put(key, what, 0));
                }
                Op::Remove(key) => {
                    prop_assert_eq!(map.remove(&key.to_le_bytes()), model.remove(key));
                }
                Op::Get(key) => {
                    let there = model.there.get(&key).copied();
                    prop_assert_eq!(programs.get(key), there.map(ProgramHandle));
                }
            }
            prop_assert_eq!(keys(&*map), model.keys());
        }
    }

    /// Every added value is found; a value that was not added is rarely found.
    #[test]
    fn bloom_filters(added in vec(any::<u32>(), 0..200), hashes in 0..16u64) {
        let mut def = MapDef::new("m", MapType::BloomFilter, 0, 4, 200);
        def.extra = hashes;
        let map = make(&def, 2).unwrap();
        let Kind::Bloom(bloom) = map.kind() else {
            return Err(TestCaseError::fail("no bloom filter"));
        };
        let mut model = BTreeSet::new();
        for value in added {
            prop_assert_eq!(map.write(&[], &value.to_le_bytes(), ANY), Ok(()));
            model.insert(value);
            prop_assert!(model.iter().all(|value| bloom.contains(&value.to_le_bytes())));
        }
        let absent = (0..2000u32).filter(|value| !model.contains(value));
        let wrong = absent.filter(|value| bloom.contains(&value.to_le_bytes())).count();
        // With one hash function, two in five bits are set when it is full.
        prop_assert!(wrong < if hashes == 1 { 1200 } else { 400 }, "{} of 2000", wrong);
    }
}
