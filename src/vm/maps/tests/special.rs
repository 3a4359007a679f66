//! Maps of programs, of maps, of perf events, bloom filters and placeholders.

use super::super::{Kind, Map};
use super::*;
use crate::vm::{MapHandle, ProgramHandle};

fn index(n: u32) -> [u8; 4] {
    n.to_le_bytes()
}

#[test]
fn programs_stand_in_slots() {
    let map = map(MapType::ProgArray, 4, 4, 2);
    let Kind::ProgArray(programs) = map.kind() else {
        panic!("no prog array");
    };
    assert_eq!(programs.set(1, ProgramHandle(7)), Ok(()));
    assert_eq!(programs.set(2, ProgramHandle(7)), Err(Errno::E2BIG));
    assert_eq!(
        (programs.get(0), programs.get(1)),
        (None, Some(ProgramHandle(7)))
    );
    assert_eq!(programs.get(u32::MAX), None);
    assert_eq!(map.read(&index(1)), Ok(index(7).to_vec()));
    assert_eq!(map.read(&index(0)), Err(Errno::ENOENT));
    assert_eq!(keys(&*map).len(), 2);
    assert_eq!(map.write(&index(0), &[9; 4], ANY), Err(Errno::EBADF));
    assert_eq!(map.write(&index(2), &[9; 4], ANY), Err(Errno::E2BIG));
    assert_eq!(
        map.write(&index(0), &[9; 4], UpdateFlags::EXIST),
        Err(Errno::EINVAL)
    );
    assert_eq!(map.remove(&index(1)), Ok(()));
    assert_eq!(map.remove(&index(1)), Err(Errno::ENOENT));
    assert_eq!(map.remove(&index(2)), Err(Errno::E2BIG));
    assert_eq!(
        map.update(0, &index(0), &[0; 4], ANY),
        Err(Errno::EOPNOTSUPP)
    );
    map.freeze();
    assert_eq!(programs.set(1, ProgramHandle(7)), Err(Errno::EPERM));
}

#[test]
fn perf_buffers_are_there_for_each_cpu_unless_set_otherwise() {
    let map = map(MapType::PerfEventArray, 4, 4, 4);
    let Kind::PerfEventArray(events) = map.kind() else {
        panic!("no perf event array");
    };
    assert_eq!(events.accepts(1, 1), Ok(()));
    assert_eq!(events.accepts(0, 1), Err(Errno::EOPNOTSUPP));
    assert_eq!(events.accepts(2, 1), Err(Errno::ENOENT));
    assert_eq!(events.accepts(4, 1), Err(Errno::E2BIG));
    assert_eq!(events.set(3, Some(1)), Ok(()));
    assert_eq!(events.accepts(3, 1), Ok(()));
    assert_eq!(events.set(3, Some(2)), Err(Errno::ENODEV));
    assert_eq!(events.set(4, None), Err(Errno::E2BIG));
    assert_eq!(map.remove(&index(1)), Ok(()));
    assert_eq!(events.accepts(1, 1), Err(Errno::ENOENT));
    assert_eq!(map.read(&index(0)), Err(Errno::ENOTSUPP));
}

fn of_maps(map_type: MapType, inner: MapDef) -> Arc<dyn Map> {
    let mut def = MapDef::new("outer", map_type, 4, 4, 2);
    def.inner = Some(Box::new(inner));
    make(&def, 2).unwrap()
}

#[test]
fn maps_hold_maps_of_one_shape() {
    let shape = MapDef::new("shape", MapType::Array, 4, 8, 3);
    for map_type in [MapType::ArrayOfMaps, MapType::HashOfMaps] {
        let outer = of_maps(map_type, shape.clone());
        let Kind::MapOfMaps(inner) = outer.kind() else {
            panic!("no map of maps");
        };
        assert_eq!(inner.set(&index(1), MapHandle(5), &shape, ANY), Ok(()));
        assert_eq!(inner.get(&index(1)), Some(MapHandle(5)));
        assert_eq!(inner.get(&index(0)), None);
        assert_eq!(outer.read(&index(1)), Ok(index(5).to_vec()));
        let mut longer = shape.clone();
        longer.max_entries = 4;
        assert_eq!(
            inner.set(&index(0), MapHandle(6), &longer, ANY),
            Err(Errno::EINVAL)
        );
        let wider = MapDef::new("wider", MapType::Array, 4, 16, 3);
        assert_eq!(
            inner.set(&index(0), MapHandle(6), &wider, ANY),
            Err(Errno::EINVAL)
        );
        assert_eq!(outer.remove(&index(1)), Ok(()));
        assert_eq!(outer.remove(&index(1)), Err(Errno::ENOENT));
        assert_eq!(outer.write(&index(1), &[0; 4], ANY), Err(Errno::EBADF));
    }
}

#[test]
fn inner_arrays_may_differ_in_length_where_the_flag_says_so() {
    let mut shape = MapDef::new("shape", MapType::Array, 4, 8, 3);
    shape.flags = MapFlags::INNER_MAP;
    let mut longer = shape.clone();
    longer.max_entries = 300;
    let outer = of_maps(MapType::ArrayOfMaps, shape);
    let Kind::MapOfMaps(inner) = outer.kind() else {
        panic!("no map of maps");
    };
    assert_eq!(inner.set(&index(0), MapHandle(1), &longer, ANY), Ok(()));
}

#[test]
fn hashes_of_maps_have_keys_and_arrays_have_indices() {
    let shape = MapDef::new("shape", MapType::Hash, 4, 8, 3);
    let hash = of_maps(MapType::HashOfMaps, shape.clone());
    let Kind::MapOfMaps(inner) = hash.kind() else {
        panic!("no map of maps");
    };
    let put = |key: u32, flags| inner.set(&index(key), MapHandle(key), &shape, flags);
    assert_eq!(put(9, UpdateFlags::EXIST), Err(Errno::ENOENT));
    assert_eq!(put(9, ANY), Ok(()));
    assert_eq!(put(9, UpdateFlags::NOEXIST), Err(Errno::EEXIST));
    assert_eq!(put(8, ANY), Ok(()));
    assert_eq!(put(7, ANY), Err(Errno::E2BIG));
    assert_eq!(keys(&*hash), [index(8), index(9)]);

    let array = of_maps(MapType::ArrayOfMaps, shape.clone());
    let Kind::MapOfMaps(inner) = array.kind() else {
        panic!("no map of maps");
    };
    let set = inner.set(&index(2), MapHandle(1), &shape, ANY);
    assert_eq!(set, Err(Errno::E2BIG));
    let set = inner.set(&index(1), MapHandle(1), &shape, UpdateFlags::NOEXIST);
    assert_eq!(set, Err(Errno::EINVAL));
    assert_eq!(array.remove(&index(2)), Err(Errno::E2BIG));
    assert_eq!(keys(&*array), [index(0), index(1)]);
}

#[test]
fn a_bloom_filter_forgets_nothing_and_rarely_errs() {
    let map = map(MapType::BloomFilter, 0, 4, 1000);
    let Kind::Bloom(bloom) = map.kind() else {
        panic!("no bloom filter");
    };
    for n in 0..1000 {
        assert_eq!(map.write(&[], &index(n), ANY), Ok(()));
    }
    assert!((0..1000).all(|n| bloom.contains(&index(n))));
    let wrong = (1000..11_000)
        .filter(|n| bloom.contains(&index(*n)))
        .count();
    // Five hash functions, seven bits per entry: about one in fifty.
    assert!(wrong < 600, "{wrong} of 10000");
    assert_eq!(
        bloom.push(&index(1), UpdateFlags::EXIST),
        Err(Errno::EINVAL)
    );
    assert_eq!(map.remove(&[]), Err(Errno::EOPNOTSUPP));
}

#[test]
fn keys_of_few_bytes_are_found() {
    for size in [1u32, 4, 7, 8] {
        let map = map(MapType::Hash, size, 8, 100);
        let key = |number: u64| number.to_le_bytes()[..size as usize].to_vec();
        for number in (0..200).step_by(3) {
            map.update(0, &key(number), &[0; 8], ANY).unwrap();
        }
        for number in 0..220 {
            let found = map.lookup(0, &key(number)).unwrap();
            assert_eq!(found.is_some(), number < 200 && number % 3 == 0);
        }
    }
}
