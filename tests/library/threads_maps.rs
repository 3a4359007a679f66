//! Maps of every kind used by several CPUs concurrently: nothing is lost, duplicated or torn.

use crate::shared::machine;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use bpflab::btf::{Array, Btf, Builder, Encoding, Member};
use bpflab::program::MapDef;
use bpflab::spec::{MapFlags, MapType, UpdateFlags};
use bpflab::vm::{Output, ProgramHandle};

use machine::{ENGINES, event, hammer, program, returns, vm, xdp};

const RUNS: u32 = 300;

/// Runs `p` on three CPUs and something else on this thread until they are done.
fn beside(vm: &mut bpflab::Vm, mut also: impl FnMut(&bpflab::Vm) + Send) {
    let user = vm.cpu(3).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let (user, done) = (&user, &done);
        let other = threads.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                also(user);
            }
        });
        hammer(vm, 1..3, RUNS);
        done.store(true, Ordering::Relaxed);
        other.join().unwrap();
    });
}

/// Eight words; the second half of the first word is a lock.
fn guarded(map_type: MapType) -> (MapDef, Btf) {
    let mut types = Builder::new();
    let word = types.int("unsigned int", 4, Encoding::Unsigned);
    let member = |name, ty, bytes: u32| Member {
        name,
        ty,
        bit_offset: bytes * 8,
        bitfield: None,
    };
    let lock = types.structure("bpf_spin_lock", 4, &[member("val", word, 0)]);
    let many = types.array(Array {
        element: word,
        index: word,
        len: 14,
    });
    let members = [
        member("first", word, 0),
        member("lock", lock, 4),
        member("rest", many, 8),
    ];
    let value = types.structure("value", 64, &members);
    let mut map = MapDef::new("guarded", map_type, 4, 64, 4);
    (map.key_type, map.value_type) = (Some(word), Some(value));
    (map, types.build().unwrap())
}

/// With `BPF_F_LOCK` values are written and read as a whole: all words are equal, and the
/// lock itself is never visible.
#[test]
fn a_value_under_its_lock_is_not_torn() {
    let mut writes = String::from("call bpf_get_prandom_u32\n*(u32 *)(r10 - 68) = 1\n");
    for word in 0..16 {
        writes += &format!("*(u32 *)(r10 - {}) = r0\n", 64 - 4 * word);
    }
    writes += "r2 = r10
        r2 += -68
        r3 = r10
        r3 += -64
        r4 = 4
        r1 = map[idx:0]
        call bpf_map_update_elem
        exit";
    for map_type in [MapType::Array, MapType::Hash] {
        let (map, types) = guarded(map_type);
        for engine in ENGINES {
            let mut vm = xdp(std::slice::from_ref(&map), Some(types.clone()), &writes);
            assert_eq!(returns(vm.set_engine(engine)), 0);
            let mut mine = 0u32;
            beside(&mut vm, |user| {
                let map = user.map("guarded").unwrap();
                let (key, lock) = (1u32.to_le_bytes(), UpdateFlags::LOCK);
                let value = map.raw().read_with(&key, lock).unwrap();
                let mut words: Vec<_> = value.chunks(4).collect();
                assert_eq!(words.remove(1), [0; 4], "{map_type} {engine}");
                assert!(words.iter().all(|word| *word == words[0]), "{words:?}");
                mine += 1;
                let value: Vec<u8> = (0..16).flat_map(|_| mine.to_le_bytes()).collect();
                map.raw().write(&key, &value, lock).unwrap();
            });
        }
    }
}

/// Pushes a unique number to the first map: the CPU from bit `shift` on, and a per-CPU
/// sequence number from the second map. Random numbers would repeat.
fn push_turn(shift: u32) -> String {
    format!(
        "
        call bpf_get_smp_processor_id
        r6 = r0
        r6 <<= {shift}
        *(u32 *)(r10 - 4) = r0
        r2 = r10
        r2 += -4
        r1 = map[idx:1]
        call bpf_map_lookup_elem
        if r0 == 0 goto bad
        r1 = *(u64 *)(r0 + 0)
        r1 += 1
        *(u64 *)(r0 + 0) = r1
        r6 |= r1
        *(u64 *)(r10 - 16) = r6
        r2 = r10
        r2 += -16
        r3 = 0
        r1 = map[idx:0]
        call bpf_map_push_elem
        "
    )
}

/// Every pushed value is popped once, or is still there.
#[test]
fn no_value_is_lost_in_queues_and_stacks() {
    let text = push_turn(32)
        + "
        if r0 != 0 goto bad
        r1 = *(u64 *)(r10 - 16)
        r1 &= 1
        if r1 != 0 goto good
        r2 = r10
        r2 += -16
        r1 = map[idx:0]
        call bpf_map_pop_elem
        if r0 != 0 goto good
        r2 = r10
        r2 += -16
        r3 = 0
        r1 = map[idx:2]
        call bpf_map_push_elem
        if r0 != 0 goto bad
        good: r0 = 0
        exit
        bad: r0 = 1
        exit";
    for map_type in [MapType::Queue, MapType::Stack] {
        for engine in ENGINES {
            let maps = [
                MapDef::new("values", map_type, 0, 8, 4096),
                MapDef::new("turns", MapType::Array, 4, 8, 4),
                MapDef::new("popped", MapType::Queue, 0, 8, 4096),
            ];
            let mut vm = vm(&maps, &text);
            vm.set_engine(engine);
            let mut taken = Vec::new();
            beside(&mut vm, |user| {
                taken.extend(user.map("values").unwrap().pop::<u64>().unwrap());
            });
            for name in ["values", "popped"] {
                let map = vm.map(name).unwrap();
                taken.extend(std::iter::from_fn(|| map.pop::<u64>().unwrap()));
            }
            taken.sort_unstable();
            let each = |cpu: u64| (1..=u64::from(RUNS)).map(move |turn| cpu << 32 | turn);
            let all: Vec<_> = (0..3).flat_map(each).collect();
            assert_eq!(taken, all, "{map_type} {engine}");
        }
    }
}

/// Atomically adds 1 to the value of the key at r10-8.
const COUNTS: &str = "
    r2 = r10
    r2 += -8
    r1 = map[idx:0]
    call bpf_map_lookup_elem
    if r0 == 0 goto bad
    r1 = 1
    lock *(u64 *)(r0 + 0) += r1
    r0 = 0
    exit
    bad: r0 = 1
    exit";

/// Counts in a prefix of 8 bits while longer prefixes that don't match are inserted and
/// deleted.
#[test]
fn no_count_is_lost_in_a_trie() {
    let key = |len: u32, bits: [u8; 4]| [len.to_le_bytes(), bits].concat();
    let text = format!("*(u32 *)(r10 - 8) = 32\n*(u32 *)(r10 - 4) = 10\n{COUNTS}");
    for engine in ENGINES {
        let mut def = MapDef::new("routes", MapType::LpmTrie, 8, 8, 8);
        def.flags = MapFlags::NO_PREALLOC;
        let mut vm = vm(&[def], &text);
        let whole = key(8, [10, 0, 0, 0]);
        let any = UpdateFlags::empty();
        vm.map("routes")
            .unwrap()
            .set_bytes(&whole, &[0; 8], any)
            .unwrap();
        let mut turn = 0u8;
        beside(vm.set_engine(engine), |user| {
            turn = turn % 200 + 1;
            let routes = user.map("routes").unwrap();
            let longer = key(16, [10, turn, 0, 0]);
            routes.set_bytes(&longer, &[9; 8], any).unwrap();
            let shorter = key(4, [0; 4]);
            routes.set_bytes(&shorter, &[9; 8], any).unwrap();
            assert!(routes.delete(&longer[..]).unwrap());
            assert!(routes.delete(&shorter[..]).unwrap());
            assert!(routes.entries_bytes().is_ok());
        });
        let count = vm.map("routes").unwrap().get::<[u8], u64>(&whole).unwrap();
        assert_eq!(count, Some(3 * u64::from(RUNS)), "{engine}");
    }
}

/// Every value added by any CPU is in the filter.
#[test]
fn no_value_is_missed_in_a_filter() {
    let text = push_turn(16)
        + "
        exit
        bad: r0 = 1
        exit";
    for engine in ENGINES {
        let maps = [
            MapDef::new("seen", MapType::BloomFilter, 0, 8, 100),
            MapDef::new("turns", MapType::Array, 4, 8, 4),
        ];
        let mut vm = vm(&maps, &text);
        hammer(vm.set_engine(engine), 1..4, RUNS);
        let seen = vm.map("seen").unwrap();
        for cpu in 0..4u64 {
            for turn in 1..=u64::from(RUNS) {
                assert!(seen.contains(&(cpu << 16 | turn)).unwrap(), "{engine}");
            }
        }
    }
}

/// Each run counts in one of two inner maps, which are swapped concurrently.
#[test]
fn no_count_is_lost_while_inner_maps_are_swapped() {
    let text = "
        *(u64 *)(r10 - 8) = 0
        r2 = r10
        r2 += -8
        r1 = map[idx:0]
        call bpf_map_lookup_elem
        if r0 == 0 goto bad
        r1 = r0
        r2 = r10
        r2 += -8
        call bpf_map_lookup_elem
        if r0 == 0 goto bad
        r1 = 1
        lock *(u64 *)(r0 + 0) += r1
        r0 = 0
        exit
        bad: r0 = 1
        exit";
    let inner = |name| MapDef::new(name, MapType::Array, 4, 8, 1);
    for map_type in [MapType::ArrayOfMaps, MapType::HashOfMaps] {
        for engine in ENGINES {
            let mut outer = MapDef::new("outer", map_type, 4, 4, 1);
            outer.inner = Some(Box::new(inner("shape")));
            let mut vm = vm(&[outer, inner("a"), inner("b")], text);
            let handles = ["a", "b"].map(|name| vm.map(name).unwrap().handle());
            vm.map("outer")
                .unwrap()
                .set_inner(&0u32, handles[0])
                .unwrap();
            let mut turn = 0;
            beside(vm.set_engine(engine), |user| {
                turn = 1 - turn;
                let outer = user.map("outer").unwrap();
                outer.set_inner(&0u32, handles[turn]).unwrap();
            });
            let count = |name| vm.map(name).unwrap().get::<u32, u64>(&0).unwrap().unwrap();
            let sum = count("a") + count("b");
            assert_eq!(sum, 3 * u64::from(RUNS), "{map_type} {engine}");
        }
    }
}

/// Each tail call reaches one of two programs, which are swapped concurrently.
#[test]
fn no_tail_call_is_lost_while_programs_are_swapped() {
    let caller = "r2 = map[idx:1]\nr3 = 0\ncall bpf_tail_call\nr0 = 1\nexit";
    let callee = |key: u32| format!("*(u64 *)(r10 - 8) = {key}\n{COUNTS}");
    for engine in ENGINES {
        let maps = [
            MapDef::new("counts", MapType::Array, 4, 8, 2),
            MapDef::new("programs", MapType::ProgArray, 4, 4, 1),
        ];
        let programs = vec![
            program("p", &maps, caller),
            program("a", &maps, &callee(0)),
            program("b", &maps, &callee(1)),
        ];
        let mut vm = bpflab::Vm::with_world(bpflab::vm::World::default());
        let handles = vm.load_programs(&maps, programs).unwrap();
        let set = |vm: &bpflab::Vm, program: ProgramHandle| {
            vm.map("programs").unwrap().set_program(0, program).unwrap();
        };
        set(&vm, handles[1]);
        let mut turn = 1;
        beside(vm.set_engine(engine), |user| {
            turn = 3 - turn;
            set(user, handles[turn]);
        });
        let counts = vm.map("counts").unwrap().entries::<u32, u64>().unwrap();
        let sum: u64 = counts.iter().map(|(_, count)| count).sum();
        assert_eq!(sum, 3 * u64::from(RUNS), "{engine}");
    }
}

/// Each CPU's records are in its own perf buffer, in order.
#[test]
fn each_cpu_has_its_perf_buffer() {
    let text = "
        *(u64 *)(r10 - 8) = 7
        r4 = r10
        r4 += -8
        r5 = 8
        r3 = 0xffffffff ll
        r2 = map[idx:0]
        call bpf_perf_event_output
        exit";
    for engine in ENGINES {
        let maps = [MapDef::new("events", MapType::PerfEventArray, 4, 4, 0)];
        let mut first = vm(&maps, text);
        first.set_engine(engine);
        let mut others: Vec<_> = (1..3).map(|cpu| first.cpu(cpu).unwrap()).collect();
        let mut seen = BTreeMap::new();
        std::thread::scope(|threads| {
            let vms = others.iter_mut().chain([&mut first]);
            let each: Vec<_> = vms
                .map(|vm| {
                    threads.spawn(move || {
                        let outputs =
                            (0..RUNS).flat_map(|_| vm.run("p", &event()).unwrap().outputs);
                        outputs.collect::<Vec<_>>()
                    })
                })
                .collect();
            for thread in each {
                for output in thread.join().unwrap() {
                    let Output::Perf { cpu, .. } = output else {
                        panic!("{output:?}");
                    };
                    *seen.entry(cpu).or_insert(0) += 1;
                }
            }
        });
        assert_eq!(
            seen,
            BTreeMap::from([(0, RUNS), (1, RUNS), (2, RUNS)]),
            "{engine}"
        );
    }
}

/// Elements taken in batches during concurrent inserts are there exactly once at the end.
#[test]
fn batches_take_each_element_once() {
    let text = "
        call bpf_get_prandom_u32
        *(u32 *)(r10 - 4) = r0
        *(u64 *)(r10 - 16) = 1
        r2 = r10
        r2 += -4
        r3 = r10
        r3 += -16
        r4 = 1
        r1 = map[idx:0]
        call bpf_map_update_elem
        r0 = 0
        exit";
    for map_type in [MapType::Hash, MapType::LruHash] {
        for engine in ENGINES {
            let mut vm = vm(&[MapDef::new("m", map_type, 4, 8, 4096)], text);
            let mut taken = Vec::new();
            let any = UpdateFlags::empty();
            beside(vm.set_engine(engine), |user| {
                let batch = user.map("m").unwrap().raw().take_batch(None, 4096, any);
                assert!(
                    batch
                        .values
                        .chunks(8)
                        .all(|value| value == [1, 0, 0, 0, 0, 0, 0, 0])
                );
                taken.extend(batch.keys.chunks(4).map(<[u8]>::to_vec));
            });
            let left = vm.map("m").unwrap().raw().take_batch(None, 4096, any);
            taken.extend(left.keys.chunks(4).map(<[u8]>::to_vec));
            // Random numbers rarely repeat.
            let most = 3 * RUNS as usize;
            assert!(
                (most - 5..=most).contains(&taken.len()),
                "{map_type} {engine} {}",
                taken.len()
            );
        }
    }
}
