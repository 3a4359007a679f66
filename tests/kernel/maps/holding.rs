//! Maps of maps, and prog arrays.

use std::sync::Arc;

use crate::shared::sample;
use bpflab::isa::assemble;
use bpflab::kernel::{LoadOptions, LoadedMaps, load};
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapFlags, MapType, ProgType, UpdateFlags};
use bpflab::util::{Errno, MapId};
use bpflab::vm::maps::{Kind, Map, create};
use bpflab::vm::{MapHandle, ProgramHandle};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::pair::{cpus, walk};

/// Inner maps: some valid, some with another definition than the first.
fn inner() -> Vec<MapDef> {
    let def = |map_type, key, value, entries| MapDef::new("inner", map_type, key, value, entries);
    let flagged = |mut def: MapDef, flags| {
        def.flags = flags;
        def
    };
    vec![
        def(MapType::Array, 4, 8, 2),
        def(MapType::Array, 4, 8, 2),
        def(MapType::Array, 4, 8, 3),
        def(MapType::Array, 4, 4, 2),
        flagged(def(MapType::Array, 4, 8, 2), MapFlags::INNER_MAP),
        flagged(def(MapType::Array, 4, 8, 7), MapFlags::INNER_MAP),
        flagged(def(MapType::Array, 4, 8, 2), MapFlags::RDONLY_PROG),
        def(MapType::Hash, 4, 8, 2),
        def(MapType::Hash, 4, 8, 9),
        def(MapType::LruHash, 4, 8, 2),
    ]
}

#[derive(Debug, Clone)]
enum Op {
    Put(u32, usize, u64),
    Remove(u32),
    Read(u32),
    Walk,
}

fn op() -> impl Strategy<Value = Op> {
    let (key, flags) = (0..5u32, prop_oneof![5 => Just(0u64), 1 => 1..5u64]);
    prop_oneof![
        6 => (key.clone(), 0..10usize, flags).prop_map(|(key, inner, flags)| Op::Put(key, inner, flags)),
        2 => key.clone().prop_map(Op::Remove),
        2 => key.prop_map(Op::Read),
        1 => Just(Op::Walk),
    ]
}

/// A map of maps in bpflab and in the kernel, with ten inner maps.
struct Outer {
    ours: Arc<dyn Map>,
    /// The outer map is the last.
    theirs: LoadedMaps,
    inner: Vec<MapDef>,
}

impl Outer {
    fn new(map_type: MapType, shape: usize, cpus: u32) -> Self {
        let mut defs = inner();
        let mut def = MapDef::new("outer", map_type, 4, 4, 3);
        def.inner = Some(Box::new(defs[shape].clone()));
        let ours = create(&def, cpus).unwrap();
        defs.push(def);
        let theirs = LoadedMaps::create(&defs, None).unwrap();
        defs.pop();
        Self {
            ours,
            theirs,
            inner: defs,
        }
    }

    fn agree(&self, op: &Op) -> Result<(), TestCaseError> {
        let map = |index: usize| {
            let id = MapId(u32::try_from(index).unwrap());
            self.theirs.map(id).unwrap()
        };
        let theirs = map(self.inner.len());
        let Kind::MapOfMaps(ours) = self.ours.kind() else {
            panic!("no map of maps");
        };
        match op {
            Op::Put(key, inner, flags) => {
                let flags = UpdateFlags::from_bits_retain(*flags);
                let handle = MapHandle(u32::try_from(*inner).unwrap());
                let put = ours.set(&key.to_le_bytes(), handle, &self.inner[*inner], flags);
                let there = theirs.put_map(&key.to_le_bytes(), &map(*inner), flags);
                prop_assert_eq!(put, there, "{:?}", self.inner[*inner]);
            }
            Op::Remove(key) => {
                let key = key.to_le_bytes();
                prop_assert_eq!(self.ours.remove(&key), theirs.delete(&key));
            }
            Op::Read(key) => {
                // The ids that are read differ.
                let key = key.to_le_bytes();
                let read = self.ours.read(&key).map(drop);
                let there = theirs.lookup(&key, UpdateFlags::empty()).map(drop);
                prop_assert_eq!(read, there);
            }
            Op::Walk => {
                let sorted = |keys: Result<Vec<Vec<u8>>, Errno>| {
                    keys.map(|mut keys| {
                        keys.sort();
                        keys
                    })
                };
                let walked = walk(|key| self.ours.next_key(key));
                let there = walk(|key| theirs.next_key(key));
                prop_assert_eq!(sorted(walked), sorted(there));
            }
        }
        Ok(())
    }
}

#[test]
fn maps_of_maps() {
    let Some(cpus) = cpus() else { return };
    for map_type in [MapType::ArrayOfMaps, MapType::HashOfMaps] {
        for shape in [0, 4, 7] {
            let mut runner = TestRunner::new(ProptestConfig {
                cases: sample::cases(30),
                failure_persistence: None,
                ..ProptestConfig::default()
            });
            let result = runner.run(&vec(op(), 0..40), |ops| {
                let outer = Outer::new(map_type, shape, cpus);
                ops.iter().try_for_each(|op| outer.agree(op))
            });
            result.unwrap_or_else(|error| panic!("{map_type} of {shape}: {error}"));
        }
    }
}

/// Tests each operation separately: there are few.
#[test]
fn arrays_of_programs() {
    let Some(cpus) = cpus() else { return };
    let def = MapDef::new("programs", MapType::ProgArray, 4, 4, 2);
    let theirs = LoadedMaps::create(std::slice::from_ref(&def), None).unwrap();
    let mut program = Program::new("p", ProgType::Xdp, assemble("r0 = 2\nexit").unwrap());
    program.maps = Arc::new([def.clone()]);
    program.license = "GPL".into();
    let loaded = load(&program, &theirs, &LoadOptions::default()).unwrap();
    let loaded = loaded.program.unwrap();
    let there = theirs.map(MapId(0)).unwrap();
    let map = create(&def, cpus).unwrap();
    let Kind::ProgArray(ours) = map.kind() else {
        panic!("no array of programs");
    };
    for key in [0u32, 1, 2, 0] {
        let (put, key) = (ours.set(key, ProgramHandle(0)), key.to_le_bytes());
        assert_eq!(put, there.put_program(&key, &loaded));
        let read = map.read(&key).map(drop);
        let look = there.lookup(&key, UpdateFlags::empty()).map(drop);
        assert_eq!(read, look);
        let walked = walk(|key| map.next_key(key));
        assert_eq!(walked, walk(|key| there.next_key(key)));
    }
    for key in [1u32, 1, 2] {
        let key = key.to_le_bytes();
        assert_eq!(map.remove(&key), there.delete(&key));
    }
    // The number is not a program's descriptor.
    let flags = UpdateFlags::NOEXIST;
    for (key, flags) in [
        (0u32, UpdateFlags::empty()),
        (0, flags),
        (2, flags),
        (2, UpdateFlags::empty()),
    ] {
        let (key, value) = (key.to_le_bytes(), [0xff; 4]);
        assert_eq!(
            map.write(&key, &value, flags),
            there.update(&key, &value, flags)
        );
    }
}
