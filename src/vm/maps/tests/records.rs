//! The ring buffer compared with a model and with the kernel's layout.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::{Kind, Map, Record, RingBuf};
use super::map;
use crate::spec::{MapType, RingbufFlags, UpdateFlags};
use crate::util::Errno;

const NONE: RingbufFlags = RingbufFlags::empty();
const SIZE: u64 = 4096;
const LARGEST: usize = 4096 - 16;

fn ring(map: &dyn Map) -> &RingBuf {
    match map.kind() {
        Kind::RingBuf(ring) => ring,
        _ => panic!("no ring buffer"),
    }
}

/// Reserves and fills a record.
fn record(ring: &RingBuf, data: &[u8]) -> Record {
    let record = ring.reserve(data.len() as u64).unwrap();
    ring.area().write(record.at, data);
    record
}

#[test]
fn records_lie_as_the_kernel_lays_them() {
    let map = map(MapType::Ringbuf, 0, 0, 4096);
    let ring = ring(&*map);
    let first = record(ring, &[1, 2, 3, 4, 5]);
    let second = record(ring, &[6; 8]);
    assert_eq!((first.at, first.len), (8, 5));
    assert_eq!((second.at, second.len), (24, 8));
    assert_eq!(ring.area().load(0, 4), Some(5 | 1 << 31), "busy");
    ring.commit(first, NONE, false);
    assert_eq!(ring.area().load(0, 4), Some(5));
    ring.commit(second, NONE, true);
    assert_eq!(ring.area().load(16, 4), Some(8 | 1 << 30), "discarded");
    assert_eq!(
        (ring.producer_position(), ring.consumer_position()),
        (32, 0)
    );
    assert_eq!(ring.take(), [[1, 2, 3, 4, 5]]);
    assert_eq!((ring.available(), ring.consumer_position()), (0, 32));
}

#[test]
fn a_record_that_is_being_written_holds_up_those_behind_it() {
    let map = map(MapType::Ringbuf, 0, 0, 4096);
    let ring = ring(&*map);
    let [first, second, third] = [1, 2, 3].map(|n| record(ring, &[n; 4]));
    ring.commit(second, NONE, false);
    assert!(ring.take().is_empty());
    ring.commit(first, NONE, false);
    assert_eq!(ring.take(), [[1; 4], [2; 4]]);
    ring.commit(third, NONE, false);
    assert_eq!(ring.take(), [[3; 4]]);
}

#[test]
fn the_ring_is_never_filled_to_its_last_byte() {
    let map = map(MapType::Ringbuf, 0, 0, 4096);
    let ring = ring(&*map);
    assert_eq!(ring.reserve(SIZE - 8), None, "no byte would stay free");
    assert_eq!(ring.reserve(SIZE), None);
    assert_eq!(ring.reserve(u64::from(u32::MAX)), None);
    assert_eq!(ring.reserve(u64::MAX), None);
    let large = record(ring, &[7; LARGEST]);
    assert_eq!(ring.reserve(0), None);
    ring.commit(large, NONE, false);
    assert_eq!(ring.reserve(0), None, "not before it is consumed");
    assert_eq!(ring.take(), [[7; LARGEST]]);
    // Now a record wraps around the end.
    let across = record(ring, &[8; 100]);
    ring.commit(across, NONE, false);
    assert_eq!(ring.take(), [[8; 100]]);
}

#[test]
fn an_old_busy_record_bounds_the_span_even_when_others_are_consumed() {
    let map = map(MapType::Ringbuf, 0, 0, 4096);
    let ring = ring(&*map);
    let busy = record(ring, &[0; 1000]);
    let done = record(ring, &[0; 3000]);
    ring.commit(done, NONE, false);
    assert!(ring.take().is_empty());
    assert_eq!(ring.reserve(72), None);
    ring.commit(busy, NONE, true);
    assert_eq!(ring.take().len(), 1);
    assert!(ring.reserve(3000).is_some());
}

#[test]
fn consumers_are_woken_when_they_have_caught_up_or_by_force() {
    let map = map(MapType::Ringbuf, 0, 0, 4096);
    let ring = ring(&*map);
    let [a, b, c, d] = [1, 2, 3, 4].map(|n| record(ring, &[n]));
    assert!(ring.commit(a, NONE, false), "the consumer stands before it");
    assert!(!ring.commit(b, NONE, false));
    assert!(ring.commit(c, RingbufFlags::FORCE_WAKEUP, false));
    assert_eq!(ring.take().len(), 3);
    assert!(!ring.commit(d, RingbufFlags::NO_WAKEUP, false));
    assert_eq!(ring.wakeups(), 2);
}

#[test]
fn the_system_call_can_do_nothing_with_it() {
    let map = map(MapType::Ringbuf, 0, 0, 4096);
    let flags = UpdateFlags::empty();
    assert_eq!(map.read(&[]), Err(Errno::ENOTSUPP));
    assert_eq!(map.write(&[], &[], flags), Err(Errno::ENOTSUPP));
    assert_eq!(map.remove(&[]), Err(Errno::ENOTSUPP));
    assert_eq!(map.next_key(None), Err(Errno::ENOTSUPP));
    assert_eq!(map.lookup(0, &[]), Err(Errno::EOPNOTSUPP));
}

#[test]
fn threads_lose_and_double_no_record() {
    let map = map(MapType::Ringbuf, 0, 0, 1 << 16);
    let mut taken = std::thread::scope(|scope| {
        let producers: Vec<_> = (0..3u64)
            .map(|thread| {
                let map = &map;
                scope.spawn(move || {
                    for n in 0..500u64 {
                        let data = (thread << 32 | n).to_le_bytes();
                        let record = loop {
                            match ring(&**map).reserve(8) {
                                Some(record) => break record,
                                None => std::thread::yield_now(),
                            }
                        };
                        ring(&**map).area().write(record.at, &data);
                        ring(&**map).commit(record, NONE, false);
                    }
                })
            })
            .collect();
        let mut taken = Vec::new();
        while !producers.iter().all(|producer| producer.is_finished()) {
            taken.extend(ring(&*map).take());
        }
        taken.extend(ring(&*map).take());
        taken
    });
    taken.sort();
    taken.dedup();
    assert_eq!(taken.len(), 1500);
}

#[derive(Debug, Clone)]
enum Op {
    Reserve(usize),
    /// The nth of the open records.
    Commit(prop::sample::Index, bool),
    Take,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => prop_oneof![0..40usize, 900..2200usize, Just(4080), Just(5000)].prop_map(Op::Reserve),
        3 => (any::<prop::sample::Index>(), any::<bool>()).prop_map(|(n, d)| Op::Commit(n, d)),
        1 => Just(Op::Take),
    ]
}

/// The model's record: its data and, once committed, whether it was discarded.
struct Known {
    data: Vec<u8>,
    record: Record,
    start: u64,
    done: Option<bool>,
}

proptest! {
    #[test]
    fn random_use(ops in vec(op(), 0..80)) {
        let map = map(MapType::Ringbuf, 0, 0, 4096);
        let ring = ring(&*map);
        let mut known: VecDeque<Known> = VecDeque::new();
        let (mut producer, mut consumer, mut count) = (0u64, 0u64, 0u8);
        for op in ops {
            match op {
                Op::Reserve(len) => {
                    let span = (len as u64 + 8).next_multiple_of(8);
                    // The oldest busy record is never before the consumer.
                    let fits = producer + span - consumer < SIZE;
                    count = count.wrapping_add(1);
                    let data = vec![count; len];
                    match ring.reserve(len as u64) {
                        Some(record) => {
                            prop_assert!(fits);
                            ring.area().write(record.at, &data);
                            known.push_back(Known { data, record, start: producer, done: None });
                            producer += span;
                        }
                        None => prop_assert!(!fits),
                    }
                }
                Op::Commit(n, discard) => {
                    let mut open: Vec<_> = known.iter_mut().filter(|k| k.done.is_none()).collect();
                    if !open.is_empty() {
                        let n = n.index(open.len());
                        open[n].done = Some(discard);
                        ring.commit(open[n].record, NONE, discard);
                    }
                }
                Op::Take => {
                    let mut expected = Vec::new();
                    while let Some(Known { done: Some(discarded), .. }) = known.front() {
                        let discarded = *discarded;
                        if let Some(known) = known.pop_front()
                            && !discarded
                        {
                            expected.push(known.data);
                        }
                    }
                    consumer = known.front().map_or(producer, |known| known.start);
                    prop_assert_eq!(ring.take(), expected);
                }
            }
            prop_assert_eq!(ring.producer_position(), producer);
            prop_assert_eq!(ring.consumer_position(), consumer);
        }
    }
}
