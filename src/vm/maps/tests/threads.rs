//! Maps used by several threads at once, against models that are as plain as can be.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::Map;
use super::{map, seen};
use crate::spec::{MapType, UpdateFlags};
use crate::util::Errno;

const ANY: UpdateFlags = UpdateFlags::empty();

/// A key of so many bytes for a number; two words of a long one depend on it, so that a
/// torn key would show.
fn key(number: u32, size: usize) -> Vec<u8> {
    let bytes = number.to_le_bytes();
    let mut key: Vec<u8> = bytes.into_iter().cycle().take(size).collect();
    if let Some(last) = key.last_mut().filter(|_| size > 8) {
        *last ^= 0x55;
    }
    key
}

/// Readers find what stays, and never what was never there, while others come and go in
/// the same chains.
#[test]
fn what_stays_is_found_while_others_come_and_go() {
    for size in [4, 8, 12, 40u32] {
        let key = |number| key(number, size as usize);
        let map = &*map(MapType::Hash, size, 8, 24);
        let (stay, come_and_go, never) = (0..8u32, 8..24u32, 24..32u32);
        for number in stay.clone() {
            let value = u64::from(number).to_le_bytes();
            map.update(0, &key(number), &value, ANY).unwrap();
        }
        let done = &AtomicBool::new(false);
        std::thread::scope(|threads| {
            let writers = [0, 1].map(|thread| {
                let numbers = come_and_go.clone().filter(move |n| n % 2 == thread);
                threads.spawn(move || {
                    for round in 0..300u32 {
                        for number in numbers.clone() {
                            let value = u64::from(round).to_le_bytes();
                            map.update(1, &key(number), &value, ANY).unwrap();
                        }
                        for number in numbers.clone().filter(|n| (n ^ round) & 4 == 0) {
                            map.delete(&key(number)).unwrap();
                        }
                    }
                })
            });
            let reader = threads.spawn(move || {
                let mut rounds = 0;
                while !done.load(Ordering::Relaxed) || rounds == 0 {
                    for number in stay.clone() {
                        let wanted = u64::from(number).to_le_bytes().to_vec();
                        assert_eq!(seen(map, 2, &key(number)), Some(wanted));
                    }
                    for number in never.clone() {
                        assert_eq!(map.lookup(2, &key(number)), Ok(None));
                    }
                    rounds += 1;
                }
                rounds
            });
            for writer in writers {
                writer.join().unwrap();
            }
            done.store(true, Ordering::Relaxed);
            assert!(reader.join().unwrap() > 0);
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

/// Does operations on keys that are `thread`'s alone: each must do what it does to a
/// plain map, whatever other threads do beside.
fn alone_with(map: &dyn Map, thread: u32, size: usize, ops: &[Op]) {
    let mut model: HashMap<u32, u64> = HashMap::new();
    let key = |number: u32| key(number * 3 + thread, size);
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
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn threads_with_keys_of_their_own_see_a_plain_map(
        all in [vec(op(), 0..200), vec(op(), 0..200), vec(op(), 0..200)],
        size in prop_oneof![Just(4u32), Just(8), Just(13)],
    ) {
        // As many as there are keys; some of them share a chain.
        let map = &*map(MapType::Hash, size, 8, 15);
        std::thread::scope(|threads| {
            for (thread, ops) in (0..).zip(&all) {
                threads.spawn(move || alone_with(map, thread, size as usize, ops));
            }
        });
    }
}

/// A map that evicts never loses its order, whoever uses it.
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
