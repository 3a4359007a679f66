//! Which maps can be created.

use super::super::MapError;
use super::*;

fn refused(def: &MapDef) -> MapError {
    match make(def, 4) {
        Ok(map) => panic!("made {map:?}"),
        Err(error) => error,
    }
}

#[test]
fn every_type_can_be_made_from_what_its_table_allows() {
    for map_type in MapType::ALL {
        let def = MapDef::small("m", *map_type);
        let map = make(&def, 4).unwrap();
        assert_eq!(map.def(), &def, "{map_type}");
    }
}

#[test]
fn an_error_names_map_attribute_and_rule() {
    let def = MapDef::new("hist", MapType::Hash, 4, 8, 0);
    assert_eq!(
        refused(&def).to_string(),
        "map hist (hash): max_entries is 0, expected at least 1: EINVAL (Invalid argument)"
    );
    let def = MapDef::new("rb", MapType::Ringbuf, 0, 0, 5000);
    assert_eq!(
        refused(&def).to_string(),
        "map rb (ringbuf): max_entries is 5000, expected a power of two that is a \
         multiple of 4096 bytes: EINVAL (Invalid argument)"
    );
}

#[test]
fn sizes_and_numbers_have_the_kernels_limits() {
    let cases = [
        (MapType::Array, 8, 4, 1, Errno::EINVAL),
        (MapType::Array, 4, 0, 1, Errno::EINVAL),
        (MapType::Array, 4, 1 << 31, 1, Errno::E2BIG),
        (MapType::PercpuArray, 4, 32768, 1, Errno::ENOENT),
        (MapType::PercpuArray, 4, 32769, 1, Errno::E2BIG),
        (MapType::Hash, 0, 4, 1, Errno::EINVAL),
        (MapType::Hash, 4, (4 << 20) - 53, 1, Errno::ENOENT),
        (MapType::Hash, 4, (4 << 20) - 52, 1, Errno::E2BIG),
        (MapType::Hash, u32::MAX, u32::MAX, 1, Errno::E2BIG),
        (MapType::Hash, 4, 4, (1 << 31) + 1, Errno::E2BIG),
        (MapType::Hash, 4, 4, 1 << 31, Errno::ENOMEM),
        (MapType::Array, 4, 1 << 20, 1 << 20, Errno::ENOMEM),
        (MapType::PercpuHash, 4, 32769, 1, Errno::E2BIG),
        (MapType::ProgArray, 4, 8, 1, Errno::EINVAL),
        (MapType::Ringbuf, 4, 0, 4096, Errno::EINVAL),
        (MapType::Queue, 4, 4, 1, Errno::EINVAL),
        (MapType::Stack, 0, (4 << 20) + 1, 1, Errno::E2BIG),
        (MapType::BloomFilter, 0, 4, 0, Errno::EINVAL),
        (MapType::ArrayOfMaps, 4, 4, 1, Errno::EBADF),
        (MapType::StackTrace, 4, 1016, 3, Errno::ENOENT),
        (MapType::StackTrace, 4, 1024, 3, Errno::EINVAL),
        (MapType::StackTrace, 4, 12, 3, Errno::EINVAL),
        (MapType::StackTrace, 4, 8, (1 << 31) + 1, Errno::E2BIG),
        (MapType::Cpumap, 4, 4, 8193, Errno::E2BIG),
        (MapType::Devmap, 4, 12, 3, Errno::EINVAL),
        (MapType::DevmapHash, 4, 4, u32::MAX, Errno::EINVAL),
        (MapType::Xskmap, 4, 8, 3, Errno::EINVAL),
        (MapType::Sockhash, 512, 4, 3, Errno::ENOENT),
        (MapType::Sockhash, 513, 4, 3, Errno::E2BIG),
        (MapType::CgroupStorage, 12, 8, 0, Errno::EINVAL),
        (MapType::CgroupStorage, 16, 8, 1, Errno::EINVAL),
        (MapType::CgroupStorage, 16, 65_407, 0, Errno::ENOENT),
        (MapType::CgroupStorage, 8, 65_408, 0, Errno::E2BIG),
        (MapType::PercpuCgroupStorage, 8, 32_769, 0, Errno::E2BIG),
        (MapType::UserRingbuf, 0, 0, 12_288, Errno::EINVAL),
    ];
    for (map_type, key, value, entries, errno) in cases {
        let def = MapDef::new("m", map_type, key, value, entries);
        let found = make(&def, 2)
            .err()
            .map_or(Errno::ENOENT, |error| error.errno);
        assert_eq!(found, errno, "{map_type} {key} {value} {entries}");
    }
}

#[test]
fn flags_have_the_kernels_rules() {
    let cases = [
        (MapType::Array, MapFlags::NO_PREALLOC, Errno::EINVAL),
        (MapType::Hash, MapFlags::NO_COMMON_LRU, Errno::EINVAL),
        (MapType::LruHash, MapFlags::NO_PREALLOC, Errno::ENOTSUPP),
        (
            MapType::Hash,
            MapFlags::RDONLY_PROG | MapFlags::WRONLY_PROG,
            Errno::EINVAL,
        ),
        (
            MapType::Hash,
            MapFlags::RDONLY | MapFlags::WRONLY,
            Errno::EINVAL,
        ),
        (MapType::PercpuHash, MapFlags::NUMA_NODE, Errno::EINVAL),
        (
            MapType::PerfEventArray,
            MapFlags::RDONLY_PROG,
            Errno::EINVAL,
        ),
    ];
    for (map_type, flags, errno) in cases {
        let mut def = MapDef::new("m", map_type, 4, 4, 1);
        def.flags = flags;
        assert_eq!(refused(&def).errno, errno, "{map_type} {flags:?}");
    }
    let trie = MapDef::new("m", MapType::LpmTrie, 8, 4, 1);
    assert_eq!(refused(&trie).problem, "map_flags needs 0x1");
    let mut array = MapDef::new("m", MapType::Array, 4, 4, 1);
    array.extra = 1;
    assert_eq!(refused(&array).errno, Errno::EINVAL);
    let mut bloom = MapDef::new("m", MapType::BloomFilter, 0, 4, 1);
    bloom.extra = 16;
    assert_eq!(refused(&bloom).errno, Errno::EINVAL);
}

#[test]
fn maps_of_maps_say_what_they_hold() {
    let mut def = MapDef::new("m", MapType::HashOfMaps, 4, 4, 1);
    for (inner, errno) in [
        (
            MapDef::new("i", MapType::ProgArray, 4, 4, 1),
            Errno::ENOTSUPP,
        ),
        (
            MapDef::new("i", MapType::ArrayOfMaps, 4, 4, 1),
            Errno::EINVAL,
        ),
        (MapDef::new("i", MapType::Array, 4, 0, 1), Errno::EINVAL),
    ] {
        def.inner = Some(Box::new(inner));
        assert_eq!(refused(&def).errno, errno);
    }
}

#[test]
fn large_maps_take_memory_as_it_is_used() {
    // More than a gigabyte: touching all of it would slow down the test.
    let array = map(MapType::Array, 4, 1024, 1 << 20);
    let hash = map(MapType::Hash, 8, 64, 4 << 20);
    let last = ((1u32 << 20) - 1).to_le_bytes();
    array.update(0, &last, &[1; 1024], ANY).unwrap();
    hash.update(0, &[1; 8], &[2; 64], ANY).unwrap();
    assert_eq!(seen(&*array, 0, &last), Some(vec![1; 1024]));
    assert_eq!(seen(&*hash, 0, &[1; 8]), Some(vec![2; 64]));
}

#[test]
fn a_perf_event_array_of_no_entries_has_one_for_each_cpu() {
    let map = map(MapType::PerfEventArray, 4, 4, 0);
    assert_eq!(map.def().max_entries, 2);
}
