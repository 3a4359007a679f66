//! The maps that a program may use. Each line was seen on Linux 6.18.

use std::sync::Arc;

use super::*;
use crate::btf::{Array, Builder, Encoding, Member};
use crate::program::MapDef;
use crate::spec::{MapType, ProgFlags};

/// A program that references each of these maps once, or an offset in its value.
fn naming(prog_type: ProgType, maps: &[MapDef], place: Option<i32>) -> Program {
    let text = "r1 = 0 ll\n".repeat(maps.len()) + "r0 = 0\nexit";
    let mut program = program(prog_type, &text);
    for index in 0..maps.len() {
        let src = if place.is_some() { 6 } else { 5 };
        let imm = i32::try_from(index).unwrap();
        program.insns[2 * index] = RawInsn::new(0x18, 1, src, 0, imm);
        program.insns[2 * index + 1] = RawInsn::new(0, 0, 0, 0, place.unwrap_or(0));
    }
    program.maps = Arc::from(maps);
    program
}

fn map(map_type: MapType, entries: u32) -> MapDef {
    MapDef::new("m", map_type, 4, 16, entries)
}

#[test]
fn a_place_is_in_the_one_value_of_an_array() {
    let at = |map_type, entries, off| {
        let program = naming(ProgType::Xdp, &[map(map_type, entries)], Some(off));
        verdict(&program)
    };
    assert_eq!(at(MapType::Array, 1, 15), "ok");
    assert_eq!(
        at(MapType::Array, 1, 16),
        "EINVAL invalid access to map value pointer, value_size=16 off=16"
    );
    assert_eq!(
        at(MapType::Array, 1, 1 << 29),
        "EINVAL direct value offset of 536870912 is not allowed"
    );
    assert_eq!(
        at(MapType::Array, 2, 0),
        "ENOTSUPP invalid access to map value pointer, value_size=16 off=0"
    );
    let none = "EINVAL no direct value access support for this map type";
    assert_eq!(at(MapType::Hash, 1, 0), none);
    assert_eq!(at(MapType::PercpuArray, 1, 0), none);
}

#[test]
fn sleepers_use_maps_that_wait() {
    let sleeping = |map_type| {
        let mut program = naming(ProgType::Syscall, &[map(map_type, 1)], None);
        program.flags = ProgFlags::SLEEPABLE;
        verdict(&program)
    };
    assert_eq!(sleeping(MapType::Hash), "ok");
    assert_eq!(sleeping(MapType::Queue), "ok");
    let error =
        "EINVAL Sleepable programs can only use array, hash, ringbuf and local storage maps";
    for map_type in [MapType::ProgArray, MapType::LpmTrie, MapType::BloomFilter] {
        assert_eq!(sleeping(map_type), error, "{map_type}");
    }
}

#[test]
fn maps_are_counted() {
    let maps = vec![map(MapType::Array, 1); 65];
    assert_eq!(verdict(&naming(ProgType::Xdp, &maps[..64], None)), "ok");
    assert_eq!(
        verdict(&naming(ProgType::Xdp, &maps, None)),
        "E2BIG The total number of maps per program has reached the limit of 64"
    );
    let storage = vec![map(MapType::CgroupStorage, 0); 2];
    assert_eq!(
        verdict(&naming(ProgType::CgroupSkb, &storage, None)),
        "EBUSY only one cgroup storage of each type is allowed"
    );
    let mut both = storage;
    both[1].map_type = MapType::PercpuCgroupStorage;
    assert_eq!(verdict(&naming(ProgType::CgroupSkb, &both, None)), "ok");
    // A second reference to the same map is allowed.
    let mut again = naming(ProgType::Xdp, &maps, None);
    again.insns[128].imm = 0;
    assert_eq!(verdict(&again), "ok");
    let mut missing = naming(ProgType::Xdp, &maps[..2], None);
    missing.maps = Arc::from(&maps[..1]);
    assert!(verdict(&missing).starts_with("EBADF"));
    missing.maps = Arc::from([]);
    assert_eq!(
        verdict(&missing),
        "EPROTO fd_idx without fd_array is invalid"
    );
}

/// A value with a special field in an array in a struct, and one behind a typedef. A struct
/// counts only with its size and at its alignment.
#[test]
fn watched_fields_are_not_for_every_program() {
    let mut b = Builder::new();
    let int = b.int("int", 4, Encoding::Signed);
    let member = |name, ty, bit_offset| Member {
        name,
        ty,
        bit_offset,
        bitfield: None,
    };
    let lock = b.structure("bpf_spin_lock", 4, &[member("val", int, 0)]);
    let timer = b.structure("bpf_timer", 16, &[member("x", int, 0)]);
    let queue = b.structure("bpf_wq", 16, &[member("x", int, 0)]);
    let alias = b.typedef("lock_t", lock);
    let timers = b.array(Array {
        element: timer,
        index: int,
        len: 1,
    });
    let inner = b.structure("inner", 24, &[member("t", timers, 64)]);
    let nested = b.structure("nested", 32, &[member("in", inner, 64)]);
    let locked = b.structure("locked", 16, &[member("lock", lock, 0)]);
    let aliased = b.structure("aliased", 16, &[member("lock", alias, 0)]);
    let queued = b.structure("queued", 16, &[member("w", queue, 0)]);
    let btf = b.build().unwrap();
    let with = |prog_type, value| {
        let mut map = map(MapType::Array, 1);
        (map.key_type, map.value_type) = (Some(int), Some(value));
        map.value_size = btf.size_of(value).unwrap();
        let mut program = naming(prog_type, &[map], None);
        program.btf = Some(btf.clone());
        verdict(&program)
    };
    assert_eq!(with(ProgType::Xdp, locked), "ok");
    assert_eq!(with(ProgType::Xdp, nested), "ok");
    assert_eq!(
        with(ProgType::SocketFilter, locked),
        "EINVAL socket filter progs cannot use bpf_spin_lock yet"
    );
    let tracing = |what: &str| format!("EINVAL tracing progs cannot use {what} yet");
    assert_eq!(with(ProgType::Kprobe, locked), tracing("bpf_spin_lock"));
    assert_eq!(with(ProgType::Tracepoint, nested), tracing("bpf_timer"));
    assert_eq!(with(ProgType::Tracepoint, queued), tracing("bpf_wq"));
    // The kernel doesn't resolve the typedef.
    assert_eq!(with(ProgType::Tracepoint, aliased), "ok");
}

/// BTF that doesn't match the map's sizes is ignored.
#[test]
fn types_of_other_sizes_count_for_nothing() {
    let mut b = Builder::new();
    let int = b.int("int", 4, Encoding::Signed);
    let short = b.int("short", 2, Encoding::Signed);
    let pair = b.structure("pair", 4, &[]);
    let member = |name, ty| Member {
        name,
        ty,
        bit_offset: 0,
        bitfield: None,
    };
    let timer = b.structure("bpf_timer", 16, &[member("x", int)]);
    let timed = b.structure("timed", 16, &[member("t", timer)]);
    let btf = b.build().unwrap();
    let with = |map_type, key_type, value_size| {
        let mut map = map(map_type, 1);
        (map.key_type, map.value_type) = (key_type, Some(timed));
        map.value_size = value_size;
        map.special_fields(&btf).is_some()
    };
    assert!(with(MapType::Array, Some(int), 16) && with(MapType::Hash, Some(pair), 16));
    assert!(!with(MapType::Array, Some(int), 24));
    assert!(!with(MapType::Hash, Some(short), 16));
    assert!(!with(MapType::Array, Some(pair), 16));
    assert!(!with(MapType::Array, None, 16) && !with(MapType::Hash, None, 16));
}
