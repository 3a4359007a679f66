//! Typed access of tests to maps and global variables: in batches, and by C names.

use std::sync::Arc;

use bpflab::isa::assemble;
use bpflab::program::{MapDef, Program};
use bpflab::report::{HistogramRule, MapContents};
use bpflab::spec::{MapType, ProgType, UpdateFlags};
use bpflab::util::Errno;
use bpflab::vm::World;
use bpflab::{Error, Object, Vm};
use zerocopy::{FromBytes, Immutable, IntoBytes};

#[derive(Debug, Clone, Copy, PartialEq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Entry {
    pid: u32,
    comm: [u8; 16],
    // Padding in C, to align `since`.
    gap: u32,
    since: u64,
}

const ENTRY: Entry = Entry {
    pid: 7,
    comm: *b"dd\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    gap: 0,
    since: 5,
};

fn object(name: &str) -> Object {
    let path = format!("{}/tests/objects/{name}.bpf.o", env!("CARGO_MANIFEST_DIR"));
    Object::open(path).unwrap()
}

/// A machine with these maps and an empty program.
fn vm(maps: &[MapDef]) -> Vm {
    let mut program = Program::new("p", ProgType::Xdp, assemble("r0 = 2\nexit").unwrap());
    program.maps = maps.into();
    let mut vm = Vm::with_world(World::with_cpus(2));
    vm.load_programs(maps, vec![Arc::new(program)]).unwrap();
    vm
}

fn map(map_type: MapType, key: u32, value: u32) -> MapDef {
    MapDef::new("m", map_type, key, value, 8)
}

fn errno<T: std::fmt::Debug>(result: Result<T, Error>) -> Errno {
    match result {
        Err(Error::MapOperation { errno, .. }) => errno,
        other => panic!("{other:?}"),
    }
}

#[test]
fn fields_go_by_their_names_in_c() {
    let vm = Vm::unverified(object("map_kinds")).unwrap();
    let map = vm.map("entries").unwrap();
    assert!(map.entry(&7u32).unwrap().is_none());
    map.set(&7u32, &ENTRY).unwrap();
    let mut entry = map.entry(&7u32).unwrap().unwrap();
    assert_eq!(entry.field("pid").unwrap(), 7);
    assert_eq!(entry.field("comm").unwrap(), "dd");
    assert_eq!(entry.field("comm[1]").unwrap(), "d");
    assert_eq!(entry.value().unwrap()["since"], 5);
    entry.set("since", 1u64 << 40).unwrap();
    entry.set("comm", "cat").unwrap();
    let stored = map.get::<u32, Entry>(&7).unwrap().unwrap();
    assert_eq!((stored.since, &stored.comm[..4]), (1 << 40, &b"cat\0"[..]));
    let error = entry.field("comn").unwrap_err().to_string();
    assert_eq!(
        error,
        "map 'entries': field 'comn': `comn`: struct entry has no member `comn`; \
         it has pid, comm, since"
    );
    assert!(entry.set("pid", "x").is_err());
    // A map without BTF for its values.
    let untyped = vm.map("sizes_only").unwrap().entry(&[0u8; 12]);
    assert!(matches!(untyped, Err(Error::NoType(name)) if name == "sizes_only"));
}

#[test]
fn each_cpu_has_its_value() {
    let vm = Vm::unverified(object("map_kinds")).unwrap();
    let map = vm.map("per_cpu").unwrap();
    map.set_per_cpu(&1u32, &[1u32, 2, 3, 4]).unwrap();
    assert_eq!(map.get_per_cpu(&1u32).unwrap(), Some(vec![1u32, 2, 3, 4]));
    let entry = map.entry(&1u32).unwrap().unwrap();
    assert_eq!(entry.of_cpu(3, "").unwrap(), 4);
    assert!(entry.of_cpu(4, "").is_err());
    assert_eq!(
        map.entries_per_cpu::<u32, u32>().unwrap(),
        [(0, vec![0; 4]), (1, vec![1, 2, 3, 4]), (2, vec![0; 4])]
    );
    assert!(matches!(
        map.set_per_cpu(&1u32, &[1u32]),
        Err(Error::Size {
            wanted: 32,
            given: 8,
            ..
        })
    ));
    assert!(matches!(
        map.set_per_cpu(&1u32, &[1u64; 4]),
        Err(Error::Size {
            wanted: 4,
            given: 8,
            ..
        })
    ));
}

#[test]
fn variables_are_read_and_written_while_programs_are_loaded() {
    let mut vm = Vm::new(object("globals")).unwrap();
    let event = vm.raw_tracepoint("sys_enter").unwrap();
    vm.run("touch_globals", &event).unwrap();
    assert_eq!(vm.global("seen").unwrap(), 1);
    assert_eq!(vm.global("by_cpu[0]").unwrap(), 3);
    assert_eq!(vm.global("limits").unwrap()["high"], 1u64 << 40);
    assert_eq!(vm.global("limits.low").unwrap(), 3);
    assert_eq!(vm.global("offset").unwrap(), -7);
    vm.set_global("seen", 41).unwrap();
    vm.set_global("by_cpu[2]", 9).unwrap();
    vm.run("touch_globals", &event).unwrap();
    assert_eq!(vm.global("seen").unwrap(), 42);
    assert_eq!(vm.global("by_cpu").unwrap().to_string(), "[6,0,9,0]");
    assert_eq!(errno(vm.set_global("limits.low", 4)), Errno::EPERM);
    let error = vm.global("sen").unwrap_err().to_string();
    assert!(
        error.starts_with("no global variable 'sen'; there are: "),
        "{error}"
    );
    assert!(error.contains("by_cpu"), "{error}");
    let error = vm.global("limits.middle").unwrap_err().to_string();
    assert!(error.contains("has no member `middle`"), "{error}");
}

#[test]
fn what_is_taken_is_gone() {
    let vm_hash = vm(&[map(MapType::Hash, 4, 4)]);
    let hash = vm_hash.map("m").unwrap();
    hash.set(&1u32, &7u32).unwrap();
    assert_eq!(hash.keys::<u32>().unwrap(), [1]);
    assert_eq!(hash.take::<u32, u32>(&1).unwrap(), Some(7));
    assert_eq!(hash.take::<u32, u32>(&1).unwrap(), None);
    assert!(hash.pop::<u32>().is_err(), "it has keys");

    let vm_stack = vm(&[map(MapType::Stack, 0, 4)]);
    let stack = vm_stack.map("m").unwrap();
    (1..=8u32).for_each(|n| stack.push(&n).unwrap());
    assert_eq!(errno(stack.push(&9u32)), Errno::E2BIG);
    assert_eq!(stack.peek::<u32>().unwrap(), Some(8));
    assert_eq!(stack.pop::<u32>().unwrap(), Some(8));
    assert_eq!(stack.pop::<u32>().unwrap(), Some(7));
    assert!(stack.contains(&1u32).is_err());

    let vm_bloom = vm(&[map(MapType::BloomFilter, 0, 4)]);
    let bloom = vm_bloom.map("m").unwrap();
    bloom.push(&5u32).unwrap();
    assert!(bloom.contains(&5u32).unwrap());
    assert!(matches!(bloom.contains(&5u64), Err(Error::Size { .. })));

    let vm_array = vm(&[map(MapType::Array, 4, 4)]);
    let array = vm_array.map("m").unwrap();
    assert_eq!(errno(array.take::<u32, u32>(&1)), Errno::ENOTSUPP);
}

#[test]
fn perf_counters_go_into_arrays_of_perf_events() {
    let vm_events = vm(&[map(MapType::PerfEventArray, 4, 4)]);
    let events = vm_events.map("m").unwrap();
    events.set_counter(0, 1, 77u64).unwrap();
    assert_eq!(errno(events.set_counter(0, 4096, 77u64)), Errno::ENODEV);
    let vm_array = vm(&[map(MapType::Array, 4, 4)]);
    let array = vm_array.map("m").unwrap();
    assert!(matches!(
        array.set_counter(0, 0, 77u64),
        Err(Error::MapKind { .. })
    ));
}

/// Repeated until `ENOENT`, like `bpf_map_lookup_batch(3)`.
#[test]
fn batches_go_through_the_whole_map() {
    const ANY: UpdateFlags = UpdateFlags::empty();
    let numbers = |count: u32| (0..count).flat_map(u32::to_le_bytes).collect::<Vec<_>>();
    let mut def = map(MapType::Hash, 4, 4);
    def.max_entries = 1000;
    let vm = vm(&[def]);
    let view = vm.map("m").unwrap();
    let hash = view.raw();
    assert_eq!(
        hash.write_batch(&numbers(1000), &numbers(1000), ANY),
        (Ok(()), 1000)
    );
    let more = 1000u32.to_le_bytes();
    assert_eq!(hash.write_batch(&more, &more, ANY), (Err(Errno::E2BIG), 0));
    let (mut from, mut seen) = (None, Vec::new());
    loop {
        let batch = hash.read_batch(from.as_deref(), 64, ANY);
        assert_eq!(batch.keys, batch.values);
        assert!(batch.keys.len() <= 64 * 4);
        seen.extend(batch.keys.chunks(4).map(<[u8]>::to_vec));
        from = Some(batch.next);
        match batch.result {
            Ok(()) => {}
            Err(errno) => {
                assert_eq!(errno, Errno::ENOENT);
                break;
            }
        }
    }
    seen.sort_unstable();
    let mut expected: Vec<_> = numbers(1000).chunks(4).map(<[u8]>::to_vec).collect();
    expected.sort_unstable();
    assert_eq!(seen, expected);

    assert_eq!(hash.remove_batch(&numbers(10), ANY), (Ok(()), 10));
    assert_eq!(
        hash.remove_batch(&numbers(11), ANY),
        (Err(Errno::ENOENT), 0)
    );
    let all = hash.take_batch(None, 2000, ANY);
    assert_eq!((all.keys.len(), all.result), (990 * 4, Err(Errno::ENOENT)));
    assert!(view.keys::<u32>().unwrap().is_empty());
    assert_eq!(hash.read_batch(None, 0, ANY).result, Ok(()));
    let odd = hash.write_batch(&[0; 7], &[0; 4], ANY);
    assert_eq!(odd, (Err(Errno::EINVAL), 0));
}

/// Maps as large as those of a load balancer: an entry is stored and found, and what is not used
/// is not looked at (`vm/memory/shared.rs` tests that no page of it is touched).
#[test]
fn large_maps_show_what_is_used_of_them() {
    let mut ring = map(MapType::Array, 4, 4);
    (ring.name, ring.max_entries) = ("ring".into(), 33_554_432);
    let mut connections = map(MapType::LruHash, 4, 8);
    (connections.name, connections.max_entries) = ("connections".into(), 16_777_216);
    let vm = vm(&[ring, connections]);
    let ring = vm.map("ring").unwrap();
    ring.set(&77u32, &5u32).unwrap();
    ring.set(&33_554_431u32, &6u32).unwrap();
    let connections = vm.map("connections").unwrap();
    connections.set(&1u32, &2u64).unwrap();
    let contents = |map| {
        MapContents::new(map, HistogramRule::Guess)
            .unwrap()
            .unwrap()
    };
    assert_eq!(
        contents(&ring).to_string(),
        "map ring (array, 33554430 of 33554432 entries zero)\n  77 = 5\n  33554431 = 6\n"
    );
    assert_eq!(
        contents(&connections).to_string(),
        "map connections (lru_hash, 1 of 16777216 entries)\n  1 = 2\n"
    );
}
