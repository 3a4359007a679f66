//! Special fields, and updates under a value's lock.

use std::sync::Arc;
use std::time::Duration;

use super::super::{Map, create as make};
use super::ANY;
use crate::btf::{FieldKind, SpecialField};
use crate::program::MapDef;
use crate::spec::{MapFlags, MapType, UpdateFlags};
use crate::util::Errno;

const LOCK: UpdateFlags = UpdateFlags::LOCK;

fn index(n: u32) -> [u8; 4] {
    n.to_le_bytes()
}

/// A value of 24 bytes: a number, a lock, a kernel pointer, a number.
fn def(map_type: MapType) -> MapDef {
    let field = |kind, off, size| SpecialField {
        size,
        ..SpecialField::new(kind, off)
    };
    MapDef {
        special: [
            field(FieldKind::KptrRef, 8, 8),
            field(FieldKind::SpinLock, 4, 4),
        ]
        .into_iter()
        .collect(),
        ..MapDef::new("m", map_type, 4, 24, 4)
    }
}

fn map(map_type: MapType) -> Arc<dyn Map> {
    make(&def(map_type), 2).unwrap()
}

/// The value that a program finds at key 1, with special fields as they are.
fn raw(map: &dyn Map) -> Vec<u8> {
    let element = map.lookup(0, &index(1)).unwrap().unwrap();
    map.slab().unwrap().value(element).unwrap()
}

/// Sets the kernel pointer of the value to something else.
fn poke_pointer(map: &dyn Map) {
    let element = map.lookup(0, &index(1)).unwrap().unwrap();
    let slab = map.slab().unwrap();
    slab.values()
        .write(slab.offset(element) + 8, &[0xee; 8])
        .unwrap();
}

fn value(byte: u8, pointer: u8) -> Vec<u8> {
    [[byte; 4].as_slice(), &[0; 4], &[pointer; 8], &[byte; 8]].concat()
}

#[test]
fn an_arrays_update_frees_what_is_no_lock() {
    for flags in [ANY, LOCK] {
        let map = map(MapType::Array);
        poke_pointer(&*map);
        assert_eq!(map.update(0, &index(1), &[7; 24], flags), Ok(()));
        assert_eq!(raw(&*map), value(7, 0));
        poke_pointer(&*map);
        assert_eq!(map.read(&index(1)), Ok(value(7, 0)));
        assert_eq!(map.read_with(&index(1), LOCK), Ok(value(7, 0)));
        assert_eq!(map.write(&index(1), &[9; 24], flags), Ok(()));
        assert_eq!(raw(&*map), value(9, 0));
    }
}

#[test]
fn a_hashs_update_makes_a_new_element_unless_it_locks() {
    let map = map(MapType::Hash);
    assert_eq!(map.update(0, &index(1), &[7; 24], LOCK), Ok(()));
    poke_pointer(&*map);
    let first = map.lookup(0, &index(1));
    assert_eq!(map.update(0, &index(1), &[8; 24], LOCK), Ok(()));
    assert_eq!(map.lookup(0, &index(1)), first);
    assert_eq!(raw(&*map), value(8, 0xee));
    assert_eq!(map.write(&index(1), &[9; 24], LOCK), Ok(()));
    assert_eq!(raw(&*map), value(9, 0xee));
    let noexist = LOCK.union(UpdateFlags::NOEXIST);
    assert_eq!(
        map.update(0, &index(1), &[0; 24], noexist),
        Err(Errno::EEXIST)
    );
    let exist = LOCK.union(UpdateFlags::EXIST);
    assert_eq!(
        map.update(0, &index(2), &[0; 24], exist),
        Err(Errno::ENOENT)
    );

    assert_eq!(map.update(0, &index(1), &[5; 24], ANY), Ok(()));
    assert_ne!(map.lookup(0, &index(1)), first);
    assert_eq!(raw(&*map), value(5, 0));
    // Deleting the element frees its fields.
    let slab = map.slab().unwrap();
    assert_eq!(slab.value(first.unwrap().unwrap()), Some(value(9, 0)));
}

#[test]
fn a_value_without_a_lock_is_not_locked() {
    for map_type in MapType::ALL {
        let info = map_type.info();
        let plain = !map_type.holds_maps() && *map_type != MapType::Arena;
        if !plain || !info.key.allows(4) || !info.value.allows(24) {
            continue;
        }
        let mut def = MapDef::new("m", *map_type, 4, 24, 4);
        def.flags |= info.flags_needed;
        let Ok(map) = make(&def, 2) else { continue };
        let value = vec![0; map.user_value_size()];
        let key = &index(1);
        assert_eq!(
            map.write(key, &value, LOCK),
            Err(Errno::EINVAL),
            "{map_type}"
        );
        assert_eq!(map.read_with(key, LOCK), Err(Errno::EINVAL), "{map_type}");
        let other = UpdateFlags::EXIST;
        assert_eq!(map.read_with(key, other), Err(Errno::EINVAL), "{map_type}");
    }
}

#[test]
fn a_map_that_cannot_have_the_fields_has_none() {
    let lru = map(MapType::LruHash);
    assert!(lru.def().special.is_empty());
    assert_eq!(lru.write(&index(1), &[7; 24], LOCK), Err(Errno::EINVAL));
    let read_only = MapDef {
        flags: MapFlags::RDONLY_PROG,
        ..def(MapType::Array)
    };
    assert!(make(&read_only, 2).unwrap().def().special.is_empty());
    let short = MapDef {
        value_size: 12,
        ..def(MapType::Array)
    };
    assert_eq!(make(&short, 2).unwrap().def().special.len(), 1);
}

/// An update waits for the holder of the lock.
#[test]
fn an_update_waits_for_the_lock() {
    for map_type in [MapType::Array, MapType::Hash] {
        let map = map(map_type);
        map.write(&index(1), &[1; 24], ANY).unwrap();
        let element = map.lookup(0, &index(1)).unwrap().unwrap();
        let slab = map.slab().unwrap().clone();
        let lock = slab.offset(element) + 4;
        slab.values().store(lock, 4, 1).unwrap();
        std::thread::scope(|threads| {
            let update = threads.spawn(|| map.write(&index(1), &[2; 24], LOCK));
            std::thread::sleep(Duration::from_millis(20));
            assert!(!update.is_finished());
            assert_eq!(slab.value(element).map(|value| value[0]), Some(1));
            slab.values().store(lock, 4, 0).unwrap();
            assert_eq!(update.join().unwrap(), Ok(()));
        });
        assert_eq!(raw(&*map), value(2, 0));
    }
}
