//! Maps compared with the kernel's rules and with plain Rust models.

mod arena;
mod create;
mod fields;
mod holders;
mod index;
mod model;
mod objects;
mod records;
mod special;
mod stacks;
mod storage;
mod threads;
mod user_ringbuf;

use std::sync::Arc;

use super::{Map, create as make};
use crate::program::MapDef;
use crate::spec::{MapFlags, MapType, UpdateFlags};
use crate::util::Errno;

const ANY: UpdateFlags = UpdateFlags::empty();

/// A map on a machine with two CPUs.
fn map(map_type: MapType, key: u32, value: u32, entries: u32) -> Arc<dyn Map> {
    let mut def = MapDef::new("m", map_type, key, value, entries);
    def.flags |= map_type.info().flags_needed;
    make(&def, 2).unwrap()
}

/// All keys in the map's order, with the system call.
fn keys(map: &dyn Map) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = Vec::new();
    while let Ok(key) = map.next_key(keys.last().map(Vec::as_slice)) {
        keys.push(key);
    }
    keys
}

/// The value that a program on `cpu` sees at a key.
fn seen(map: &dyn Map, cpu: u32, key: &[u8]) -> Option<Vec<u8>> {
    let element = map.lookup(cpu, key).unwrap()?;
    map.slab().unwrap().value(element)
}

#[test]
fn user_space_has_the_rights_that_the_flags_and_freezing_leave() {
    let frozen = map(MapType::Array, 4, 4, 1);
    frozen.freeze();
    assert!(frozen.base().is_frozen());
    assert_eq!(frozen.write(&[0; 4], &[1; 4], ANY), Err(Errno::EPERM));
    assert_eq!(frozen.remove(&[0; 4]), Err(Errno::EPERM));
    assert_eq!(frozen.read(&[0; 4]), Ok(vec![0; 4]));
    assert_eq!(
        frozen.update(0, &[0; 4], &[1; 4], ANY),
        Ok(()),
        "a program may"
    );

    let mut def = MapDef::new("m", MapType::Hash, 4, 4, 1);
    def.flags = MapFlags::RDONLY;
    let read_only = make(&def, 1).unwrap();
    assert_eq!(read_only.write(&[0; 4], &[1; 4], ANY), Err(Errno::EPERM));
    def.flags = MapFlags::WRONLY;
    let write_only = make(&def, 1).unwrap();
    assert_eq!(write_only.write(&[0; 4], &[1; 4], ANY), Ok(()));
    assert_eq!(write_only.read(&[0; 4]), Err(Errno::EPERM));
    assert_eq!(write_only.next_key(None), Err(Errno::EPERM));
}

#[test]
fn keys_and_values_of_other_sizes_are_refused() {
    for map_type in [
        MapType::Array,
        MapType::Hash,
        MapType::PercpuHash,
        MapType::ProgArray,
    ] {
        let map = map(map_type, 4, 4, 1);
        let value = vec![0; map.user_value_size()];
        assert_eq!(map.write(&[0; 3], &value, ANY), Err(Errno::EINVAL));
        assert_eq!(map.write(&[0; 4], &value[1..], ANY), Err(Errno::EINVAL));
        assert_eq!(map.read(&[0; 5]), Err(Errno::EINVAL));
        assert_eq!(map.next_key(Some(&[])), Err(Errno::EINVAL));
        assert_eq!(map.remove(&[]), Err(Errno::EINVAL));
    }
}

#[test]
fn per_cpu_values_are_rounded_up_for_user_space() {
    let map = map(MapType::PercpuArray, 4, 5, 2);
    map.update(1, &[1, 0, 0, 0], &[7; 5], ANY).unwrap();
    let expected = [[0; 8], [7, 7, 7, 7, 7, 0, 0, 0]].concat();
    assert_eq!(map.read(&[1, 0, 0, 0]), Ok(expected));
    assert_eq!(map.user_value_size(), 16);
}

#[test]
fn a_replaced_value_is_a_new_element_and_the_old_one_shows_as_gone() {
    let map = map(MapType::Hash, 4, 4, 2);
    map.update(0, &[1; 4], &[1; 4], ANY).unwrap();
    let old = map.lookup(0, &[1; 4]).unwrap().unwrap();
    map.update(0, &[1; 4], &[2; 4], ANY).unwrap();
    let slab = map.slab().unwrap();
    assert_eq!(slab.value(old), Some(vec![1; 4]), "as in the kernel");
    assert!(!slab.is_live(old));
    assert_eq!(seen(&*map, 0, &[1; 4]), Some(vec![2; 4]));

    let per_cpu = super::tests::map(MapType::PercpuHash, 4, 4, 2);
    per_cpu.update(0, &[1; 4], &[1; 4], ANY).unwrap();
    let element = per_cpu.lookup(0, &[1; 4]).unwrap();
    per_cpu.update(0, &[1; 4], &[2; 4], ANY).unwrap();
    assert_eq!(per_cpu.lookup(0, &[1; 4]).unwrap(), element, "in place");
}

#[test]
fn a_full_hash_replaces_and_does_not_grow() {
    let map = map(MapType::Hash, 4, 4, 2);
    for key in [1, 2] {
        map.update(0, &[key; 4], &[key; 4], ANY).unwrap();
    }
    assert_eq!(map.update(0, &[3; 4], &[3; 4], ANY), Err(Errno::E2BIG));
    for round in 0..20 {
        assert_eq!(map.update(0, &[1; 4], &[round; 4], ANY), Ok(()));
    }
    map.delete(&[2; 4]).unwrap();
    assert_eq!(map.update(0, &[3; 4], &[3; 4], ANY), Ok(()));
    assert_eq!(keys(&*map), [[1; 4], [3; 4]]);
}

#[test]
fn threads_share_a_hash() {
    let map = map(MapType::Hash, 8, 8, 4000);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let map = &map;
            scope.spawn(move || {
                for n in 0..1000 {
                    let key = (thread * 1000 + n).to_le_bytes();
                    map.update(0, &key, &key, ANY).unwrap();
                    assert_eq!(seen(&**map, 0, &key), Some(key.to_vec()));
                    if n % 2 == 0 {
                        map.delete(&key).unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(keys(&*map).len(), 2000);
}
