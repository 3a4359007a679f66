//! One machine with several CPUs, each on its own thread.

use crate::shared::machine;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bpflab::btf::{Btf, Builder, Encoding, Member};
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType, UpdateFlags};
use bpflab::vm::{CpuError, World};
use bpflab::{Error, Vm};

use machine::{ENGINES, event, hammer, program, returns, vm, xdp};

fn taken(result: Result<Vm, Error>) -> CpuError {
    match result {
        Err(Error::Cpu(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_machine_may_be_sent_and_shared() {
    fn sent_and_shared<T: Send + Sync>() {}
    sent_and_shared::<Vm>();
}

const CPU: &str = "call bpf_get_smp_processor_id\nexit";

#[test]
fn each_cpu_has_its_number() {
    let mut first = vm(&[], CPU);
    let (mut second, mut last) = (first.cpu(1).unwrap(), first.cpu(3).unwrap());
    assert_eq!([&mut first, &mut second, &mut last].map(returns), [0, 1, 3]);
    // World and settings are copied once, at the fork.
    first.world().task().set_pid(7);
    assert_eq!(second.world().task().pid(), 1000);
}

#[test]
fn a_cpu_is_used_once() {
    let first = vm(&[], CPU);
    assert_eq!(taken(first.cpu(0)), CpuError::Taken(0));
    let missing = CpuError::Missing { cpu: 4, cpus: 4 };
    assert_eq!(taken(first.cpu(4)), missing);
    let mut second = first.cpu(1).unwrap();
    assert_eq!(taken(second.cpu(1)), CpuError::Taken(1));
    // A CPU chosen with `set_cpu` is occupied when something runs there.
    second.world().set_cpu(2);
    assert_eq!(returns(&mut second), 2);
    let third = first.cpu(1).unwrap();
    second.world().set_cpu(1);
    let refused = second.run("p", &event()).map(|_| vm(&[], CPU));
    assert_eq!(taken(refused), CpuError::Taken(1));
    drop(third);
    assert_eq!(returns(&mut second), 1);
    drop(first);
    assert_eq!(returns(&mut second.cpu(0).unwrap()), 0);
}

#[test]
fn nothing_is_added_while_there_are_several() {
    let mut first = vm(&[], CPU);
    let second = first.cpu(1).unwrap();
    let more = || vec![program("q", &[], "r0 = 5\nexit")];
    let error = first.load_programs(&[], more()).unwrap_err().to_string();
    assert!(error.starts_with("programs can't be added"), "{error}");
    let map = bpflab::vm::maps::create(&MapDef::new("m", MapType::Array, 4, 8, 1), 4).unwrap();
    assert!(first.machine().add_map(map.clone()).is_err());
    drop(second);
    assert!(first.load_programs(&[], more()).is_ok());
    assert!(first.machine().add_map(map).is_ok());
    let mut second = first.cpu(1).unwrap();
    assert_eq!(second.run("q", &event()).unwrap().returned("q"), Some(5));
}

#[test]
fn attachments_are_copied() {
    let mut program = Program::clone(&program("t", &[], "r0 = 1\nexit"));
    program.prog_type = ProgType::Tracepoint;
    let mut first = Vm::with_world(World::default());
    first.load_programs(&[], vec![Arc::new(program)]).unwrap();
    let place = "syscalls/sys_enter_write";
    first.attach_to("t", place).unwrap();
    let mut second = first.cpu(1).unwrap();
    first.detach("t").unwrap();
    let mut runs = |vm: &mut Vm| {
        let event = vm.tracepoint(place).unwrap();
        vm.fire(event).unwrap().runs.len()
    };
    assert_eq!([&mut first, &mut second].map(&mut runs), [0, 1]);
}

/// A mocked helper is shared by all CPUs; its calls are serialized.
#[test]
fn a_mock_is_shared() {
    let mut first = vm(
        &[],
        "r1 = 0\nr2 = 0\nr3 = 0\ncall bpf_get_prandom_u32\nexit",
    );
    let mut calls = 0;
    first
        .mock_helper("bpf_get_prandom_u32", move |_| {
            calls += 1;
            Ok(calls)
        })
        .unwrap();
    let mut second = first.cpu(1).unwrap();
    let highest = std::thread::scope(|threads| {
        let each = [&mut first, &mut second]
            .map(|vm| threads.spawn(move || (0..500).map(|_| returns(vm)).max().unwrap()));
        each.map(|thread| thread.join().unwrap()).into_iter().max()
    });
    assert_eq!(highest, Some(1000));
}

#[test]
fn chance_is_another_on_each_cpu() {
    let mut first = vm(&[], "call bpf_get_prandom_u32\nexit");
    let mut second = first.cpu(1).unwrap();
    assert_ne!(returns(&mut first), returns(&mut second));
}

const RUNS: u32 = 200;

/// Atomically adds 1 to the value of each of 16 keys; inserts missing keys.
const COUNTS: &str = "
    r6 = 0
    next: *(u32 *)(r10 - 4) = r6
    r2 = r10
    r2 += -4
    r1 = map[idx:0]
    call bpf_map_lookup_elem
    if r0 != 0 goto add
    *(u64 *)(r10 - 16) = 0
    r2 = r10
    r2 += -4
    r3 = r10
    r3 += -16
    r4 = 1
    r1 = map[idx:0]
    call bpf_map_update_elem
    r2 = r10
    r2 += -4
    r1 = map[idx:0]
    call bpf_map_lookup_elem
    if r0 != 0 goto add
    r0 = 1
    exit
    add: r1 = 1
    lock *(u64 *)(r0 + 0) += r1
    r6 += 1
    if r6 < 16 goto next
    r0 = 0
    exit";

/// All CPUs count in the same elements; no count is lost. The first CPU that needs a key
/// inserts it.
#[test]
fn no_count_is_lost() {
    for map_type in [MapType::Hash, MapType::Array, MapType::LruHash] {
        for engine in ENGINES {
            let mut vm = vm(&[MapDef::new("counts", map_type, 4, 8, 64)], COUNTS);
            hammer(vm.set_engine(engine), 1..4, RUNS);
            let counts = vm.map("counts").unwrap();
            for key in 0..16u32 {
                let count = counts.get::<u32, u64>(&key).unwrap();
                assert_eq!(
                    count,
                    Some(4 * u64::from(RUNS)),
                    "{map_type} {engine} {key}"
                );
            }
        }
    }
}

/// The same while user space and another CPU insert and delete other keys.
#[test]
fn no_count_is_lost_while_other_keys_come_and_go() {
    // Besides the 16 keys a random key in 16..32.
    let churns = "
        call bpf_get_prandom_u32
        r0 &= 15
        r0 += 16
        *(u32 *)(r10 - 4) = r0
        *(u64 *)(r10 - 16) = r0
        r2 = r10
        r2 += -4
        r3 = r10
        r3 += -16
        r4 = 0
        r1 = map[idx:0]
        call bpf_map_update_elem
        call bpf_get_prandom_u32
        r0 &= 15
        r0 += 16
        *(u32 *)(r10 - 4) = r0
        r2 = r10
        r2 += -4
        r1 = map[idx:0]
        call bpf_map_delete_elem
    ";
    for engine in ENGINES {
        let maps = [MapDef::new("counts", MapType::Hash, 4, 8, 32)];
        let mut vm = vm(&maps, &format!("{churns}{COUNTS}"));
        let user = vm.cpu(3).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|threads| {
            let user = threads.spawn(|| {
                let map = user.map("counts").unwrap();
                for key in (16..32u32).cycle() {
                    let _ = map.set_bytes(&key.to_le_bytes(), &[1; 8], UpdateFlags::EXIST);
                    let _ = map.delete(&(key ^ 5)).unwrap();
                    let there = map.entries::<u32, u64>();
                    // As in the kernel, an iteration restarts if its key was deleted.
                    assert!(there.is_ok());
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            hammer(vm.set_engine(engine), 1..3, RUNS);
            done.store(true, Ordering::Relaxed);
            user.join().unwrap();
        });
        let counts = vm.map("counts").unwrap();
        for key in 0..16u32 {
            let count = counts.get::<u32, u64>(&key).unwrap();
            assert_eq!(count, Some(3 * u64::from(RUNS)), "{engine} {key}");
        }
    }
}

/// Every CPU adds to its own value, without atomic instructions.
#[test]
fn per_cpu_values_are_each_one_cpus() {
    let adds = COUNTS.replace(
        "lock *(u64 *)(r0 + 0) += r1",
        "r2 = *(u64 *)(r0 + 0)\nr2 += r1\n*(u64 *)(r0 + 0) = r2",
    );
    for map_type in [
        MapType::PercpuArray,
        MapType::PercpuHash,
        MapType::LruPercpuHash,
    ] {
        for engine in ENGINES {
            let mut vm = vm(&[MapDef::new("counts", map_type, 4, 8, 64)], &adds);
            hammer(vm.set_engine(engine), 1..3, RUNS);
            let counts = vm.map("counts").unwrap();
            for key in 0..16u32 {
                let each = counts.get_per_cpu::<u32, u64>(&key).unwrap().unwrap();
                let runs = u64::from(RUNS);
                assert_eq!(each, [runs, runs, runs, 0], "{map_type} {engine} {key}");
            }
        }
    }
}

/// Each CPU toggles its own bit in a shared word, counts in a second word, and swaps a third
/// word, counting the swaps.
#[test]
fn atomic_instructions_are_atomic() {
    let flips = "
        call bpf_get_smp_processor_id
        r6 = 1
        r0 &= 63
        r6 <<= r0
        *(u32 *)(r10 - 4) = 0
        r2 = r10
        r2 += -4
        r1 = map[idx:0]
        call bpf_map_lookup_elem
        if r0 == 0 goto bad
        r7 = r0
        r8 = 0
        again: lock *(u64 *)(r7 + 0) ^= r6
        r1 = r6
        r1 = atomic64_fetch_or((u64 *)(r7 + 0), r1)
        r1 &= r6
        if r1 == 0 goto bad
        r1 = r6
        r1 = atomic64_fetch_xor((u64 *)(r7 + 0), r1)
        r1 &= r6
        if r1 == 0 goto bad
        r1 = 1
        lock *(u64 *)(r7 + 8) += r1
        r0 = *(u64 *)(r7 + 16)
        r3 = r0
        r2 = r0
        r2 += 3
        r0 = atomic64_cmpxchg((u64 *)(r7 + 16), r0, r2)
        if r0 != r3 goto skip
        lock *(u64 *)(r7 + 24) += r1
        skip: r8 += 1
        if r8 < 20 goto again
        r0 = 0
        exit
        bad: r0 = 1
        exit";
    for engine in ENGINES {
        let mut vm = vm(&[MapDef::new("words", MapType::Array, 4, 32, 1)], flips);
        hammer(vm.set_engine(engine), 1..4, RUNS);
        let words = vm.map("words").unwrap().get::<u32, [u64; 4]>(&0).unwrap();
        let [bits, count, number, swaps] = words.unwrap();
        let runs = 4 * 20 * u64::from(RUNS);
        assert_eq!((bits, count), (0, runs), "{engine}");
        assert!(swaps > 0 && swaps <= runs, "{engine}");
        assert_eq!(number, 3 * swaps, "{engine}");
    }
}

/// A number and its lock.
fn guarded() -> (MapDef, Btf) {
    let mut types = Builder::new();
    let word = types.int("unsigned int", 4, Encoding::Unsigned);
    let member = |name, ty, bit_offset| Member {
        name,
        ty,
        bit_offset,
        bitfield: None,
    };
    let lock = types.structure("bpf_spin_lock", 4, &[member("val", word, 0)]);
    let members = [member("number", word, 0), member("lock", lock, 32)];
    let value = types.structure("value", 8, &members);
    let mut map = MapDef::new("guarded", MapType::Array, 4, 8, 1);
    (map.key_type, map.value_type) = (Some(word), Some(value));
    (map, types.build().unwrap())
}

/// Under the lock additions need not be atomic.
#[test]
fn a_lock_excludes_the_other_cpus() {
    let adds = "
        r8 = 0
        *(u32 *)(r10 - 4) = 0
        r2 = r10
        r2 += -4
        r1 = map[idx:0]
        call bpf_map_lookup_elem
        if r0 == 0 goto out
        r6 = r0
        next: r1 = r6
        r1 += 4
        call bpf_spin_lock
        r7 = *(u32 *)(r6 + 0)
        r7 += 1
        *(u32 *)(r6 + 0) = r7
        r1 = r6
        r1 += 4
        call bpf_spin_unlock
        r8 += 1
        if r8 < 20 goto next
        out: r0 = 0
        exit";
    let (map, types) = guarded();
    for engine in ENGINES {
        let mut vm = xdp(std::slice::from_ref(&map), Some(types.clone()), adds);
        hammer(vm.set_engine(engine), 1..4, RUNS);
        let value = vm.map("guarded").unwrap().get::<u32, [u32; 2]>(&0).unwrap();
        assert_eq!(value, Some([4 * 20 * RUNS, 0]), "{engine}");
    }
}

/// A program that faults while it holds a lock releases it.
#[test]
fn a_fault_leaves_no_lock_behind() {
    let holds = "
        *(u32 *)(r10 - 4) = 0
        r2 = r10
        r2 += -4
        r1 = map[idx:0]
        call bpf_map_lookup_elem
        if r0 == 0 goto out
        r6 = r0
        r1 = r6
        r1 += 4
        call bpf_spin_lock
        r7 = 0
        spin: r7 += 1
        if r7 < 100 goto spin
        r1 = r6
        r1 += 4
        call bpf_spin_unlock
        out: r0 = 0
        exit";
    let (map, types) = guarded();
    for engine in ENGINES {
        let mut first = xdp(std::slice::from_ref(&map), Some(types.clone()), holds);
        first.set_engine(engine);
        let mut second = first.cpu(1).unwrap();
        first.set_budget(50);
        let fault = first.run("p", &event()).unwrap_err();
        assert!(matches!(fault, Error::Fault(_)), "{fault}");
        assert_eq!(returns(&mut second), 0, "{engine}");
    }
}

/// Each CPU sends records with its CPU and sequence number while a consumer takes records. No
/// record is lost or duplicated, and the records of one CPU stay in order.
#[test]
fn no_record_is_lost() {
    const EACH: u64 = 500;
    // Returns 2 if the ring buffer is full.
    let sends = "
        r1 = map[idx:0]
        r2 = 24
        r3 = 0
        call bpf_ringbuf_reserve
        if r0 != 0 goto send
        r0 = 2
        exit
        send: r6 = r0
        call bpf_get_smp_processor_id
        *(u64 *)(r6 + 0) = r0
        *(u64 *)(r6 + 8) = r0
        *(u32 *)(r10 - 4) = r0
        r2 = r10
        r2 += -4
        r1 = map[idx:1]
        call bpf_map_lookup_elem
        if r0 == 0 goto drop
        r1 = *(u64 *)(r0 + 0)
        *(u64 *)(r6 + 16) = r1
        r1 += 1
        *(u64 *)(r0 + 0) = r1
        r1 = r6
        r2 = 0
        call bpf_ringbuf_submit
        r0 = 0
        exit
        drop: r1 = r6
        r2 = 0
        call bpf_ringbuf_discard
        r0 = 1
        exit";
    for engine in ENGINES {
        let maps = [
            MapDef::new("ring", MapType::Ringbuf, 0, 0, 4096),
            MapDef::new("sent", MapType::Array, 4, 8, 4),
        ];
        let vm = xdp(&maps, None, sends);
        let consumer = vm.cpu(3).unwrap();
        let mut others = [1, 2].map(|cpu| vm.cpu(cpu).unwrap());
        let mut vm = vm;
        let done = AtomicBool::new(false);
        let taken = std::thread::scope(|threads| {
            let consumer = threads.spawn(|| {
                let (ring, mut taken) = (consumer.map("ring").unwrap(), Vec::new());
                loop {
                    let is_last = done.load(Ordering::Acquire);
                    taken.extend(ring.take_records().unwrap());
                    if is_last {
                        return taken;
                    }
                }
            });
            let producers = others.iter_mut().chain([&mut vm]).map(|vm| {
                vm.set_engine(engine);
                threads.spawn(move || {
                    let mut sent = 0;
                    while sent < EACH {
                        match returns(vm) {
                            0 => sent += 1,
                            2 => std::thread::yield_now(),
                            other => panic!("{other}"),
                        }
                    }
                })
            });
            for producer in producers.collect::<Vec<_>>() {
                producer.join().unwrap();
            }
            done.store(true, Ordering::Release);
            consumer.join().unwrap()
        });
        let mut next = BTreeMap::<u64, u64>::new();
        for record in taken {
            let number = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap());
            let expected = next.entry(number(0)).or_default();
            assert_eq!((number(8), number(16)), (number(0), *expected), "{engine}");
            *expected += 1;
        }
        assert_eq!(
            next,
            BTreeMap::from([(0, EACH), (1, EACH), (2, EACH)]),
            "{engine}"
        );
    }
}

/// A program running on a thread outlives the machine that loaded it.
#[test]
fn code_stays_as_long_as_someone_runs_it() {
    let spins = "
        r6 = 0
        again: r6 += 1
        if r6 < 100000 goto again
        r0 = 0
        exit";
    for engine in ENGINES {
        let mut first = vm(&[], spins);
        first.set_engine(engine);
        let mut second = first.cpu(1).unwrap();
        let started = &AtomicBool::new(false);
        std::thread::scope(|threads| {
            let runs = threads.spawn(move || {
                for _ in 0..20 {
                    assert_eq!(returns(&mut second), 0);
                    started.store(true, Ordering::Release);
                }
            });
            while !started.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            let program = Arc::downgrade(first.programs().next().unwrap());
            drop(first);
            assert!(program.upgrade().is_some() || runs.is_finished());
            runs.join().unwrap();
            assert!(program.upgrade().is_none(), "gone with its last user");
        });
    }
}
