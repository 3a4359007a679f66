//! Maps used by several threads at once, compared with models that are as simple as possible.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::Map;
use super::super::index::{Key, Number};
use super::{map, seen};
use crate::spec::{MapType, UpdateFlags};
use crate::util::Errno;

const ANY: UpdateFlags = UpdateFlags::empty();

/// A key of `size` bytes for a number; all words depend on it, so that torn reads show.
fn key(number: u32, size: usize) -> Vec<u8> {
    let bytes = number.to_le_bytes();
    bytes.into_iter().cycle().take(size).collect()
}

/// Numbers whose keys are in one chain (of 32) of a small map.
fn in_chain(chain: u64, size: usize, count: usize) -> Vec<u32> {
    let bucket = |number: &u32| match size {
        8 => Number(u64::from(*number) << 32 | u64::from(*number)).hash() >> 59,
        4 => Number((*number).into()).hash() >> 59,
        _ => key(*number, size).hash() >> 59,
    };
    let numbers = (0..).filter(|number| bucket(number) == chain);
    numbers.take(count).collect()
}

/// Readers find keys that stay, and no key that never existed, while other keys are added to and
/// removed from the same chain, and slots move to another chain and back.
#[test]
fn what_stays_is_found_while_others_come_and_go() {
    for size in [4, 8, 12, 40u32] {
        let key = |number| key(number, size as usize);
        let map = &*map(MapType::Hash, size, 8, 24);
        let (here, there) = (
            in_chain(7, size as usize, 24),
            in_chain(9, size as usize, 8),
        );
        let (stay, others) = here.split_at(8);
        let (come_and_go, never) = others.split_at(8);
        for number in stay {
            let value = u64::from(*number).to_le_bytes();
            map.update(0, &key(*number), &value, ANY).unwrap();
        }
        let done = &AtomicBool::new(false);
        std::thread::scope(|threads| {
            for mine in [come_and_go, &there] {
                threads.spawn(move || {
                    for round in 0.. {
                        if done.load(Ordering::Relaxed) {
                            break;
                        }
                        for number in mine {
                            let value = u64::MAX.to_le_bytes();
                            map.update(1, &key(*number), &value, ANY).unwrap();
                        }
                        for number in mine.iter().filter(|n| (*n ^ round) & 1 == 0) {
                            map.delete(&key(*number)).unwrap();
                        }
                    }
                });
            }
            let start = Instant::now();
            let finds = || {
                while start.elapsed() < Duration::from_millis(80) {
                    let found = stay.iter().all(|number| {
                        let wanted = u64::from(*number).to_le_bytes().to_vec();
                        seen(map, 1, &key(*number)) == Some(wanted)
                    });
                    if !found || !never.iter().all(|n| map.lookup(1, &key(*n)) == Ok(None)) {
                        return false;
                    }
                }
                true
            };
            let found = finds();
            done.store(true, Ordering::Relaxed);
            assert!(found, "keys of {size} bytes");
        });
    }
}

#[derive(Debug, Clone)]
enum Op {
    Lookup(u32),
    Update(u32, u64, u64),
    Delete(u32),
    Read(u32),
}

fn op() -> impl Strategy<Value = Op> {
    let number = 0..5u32;
    prop_oneof![
        4 => number.clone().prop_map(Op::Lookup),
        4 => (number.clone(), any::<u64>(), 0..3u64).prop_map(|(n, v, f)| Op::Update(n, v, f)),
        2 => number.clone().prop_map(Op::Delete),
        1 => number.prop_map(Op::Read),
    ]
}

/// Runs operations on keys that only `thread` uses: each must behave as on a plain map, whatever
/// other threads do.
fn alone_with(map: &dyn Map, thread: u32, size: usize, ops: &[Op]) {
    let mut model: HashMap<u32, u64> = HashMap::new();
    let chain = in_chain(7, size, 15);
    let key = |number: u32| key(chain[(number * 3 + thread) as usize], size);
    for op in ops {
        match *op {
            Op::Lookup(number) => {
                let wanted = model.get(&number).map(|value| value.to_le_bytes().to_vec());
                assert_eq!(seen(map, thread, &key(number)), wanted);
            }
            Op::Update(number, value, flags) => {
                let wanted = match (flags, model.contains_key(&number)) {
                    (1, true) => Err(Errno::EEXIST),
                    (2, false) => Err(Errno::ENOENT),
                    _ => {
                        model.insert(number, value);
                        Ok(())
                    }
                };
                let flags = UpdateFlags::from_bits_retain(flags);
                let updated = map.update(thread, &key(number), &value.to_le_bytes(), flags);
                assert_eq!(updated, wanted);
            }
            Op::Delete(number) => {
                let wanted = model.remove(&number).map(drop).ok_or(Errno::ENOENT);
                assert_eq!(map.delete(&key(number)), wanted);
            }
            Op::Read(number) => {
                let wanted = model.get(&number).ok_or(Errno::ENOENT);
                let wanted = wanted.map(|value| value.to_le_bytes().to_vec());
                assert_eq!(map.read(&key(number)), wanted);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn threads_with_keys_of_their_own_see_a_plain_map(
        all in [vec(op(), 0..500), vec(op(), 0..500), vec(op(), 0..500)],
        size in prop_oneof![Just(4u32), Just(8), Just(13)],
    ) {
        // As many as there are keys, all in one chain.
        let map = &*map(MapType::Hash, size, 8, 15);
        std::thread::scope(|threads| {
            for (thread, ops) in (0..).zip(&all) {
                threads.spawn(move || alone_with(map, thread, size as usize, ops));
            }
        });
    }
}

/// An LRU map stays consistent with concurrent use.
#[test]
fn an_lru_map_stays_whole() {
    let map = &*map(MapType::LruHash, 4, 8, 8);
    std::thread::scope(|threads| {
        for thread in 0..3u32 {
            threads.spawn(move || {
                for n in 0..2000u32 {
                    let number = (n * 7 + thread) % 20;
                    let value = u64::from(number).to_le_bytes();
                    map.update(thread, &key(number, 4), &value, ANY).unwrap();
                    let _ = map.lookup(thread, &key(number / 2, 4));
                    let _ = map.delete(&key(number / 3, 4));
                }
            });
        }
    });
    let there = map.keys().unwrap();
    assert!(there.len() <= 8 * 4);
    for number in there.chunks(4) {
        let value = map.read(number).unwrap();
        assert_eq!(value[..4], *number);
    }
}
