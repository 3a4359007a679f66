//! User ring buffers.

use super::super::{Kind, Next, UserRingBuf};
use super::*;
use crate::spec::RingbufFlags;

fn ring(map: &dyn Map) -> &UserRingBuf {
    match map.kind() {
        Kind::UserRingBuf(ring) => ring,
        other => panic!("{other:?}"),
    }
}

/// The samples that a program would see.
fn drain(ring: &UserRingBuf) -> Vec<Vec<u8>> {
    let draining = ring.drain().unwrap();
    let mut samples = Vec::new();
    loop {
        match draining.next().unwrap() {
            Next::Nothing => return samples,
            Next::Skipped => {}
            Next::Sample(sample) => {
                samples.push(ring.area().copy(sample.at, sample.len).unwrap());
                draining.release(sample);
            }
        }
    }
}

#[test]
fn samples_come_in_order_round_after_round() {
    let map = map(MapType::UserRingbuf, 0, 0, 4096);
    let ring = ring(&*map);
    for round in 0..100u8 {
        for len in [0, 1, 8, 1000] {
            ring.produce(&vec![round; len]).unwrap();
        }
        let samples = drain(ring);
        let lengths: Vec<usize> = samples.iter().map(Vec::len).collect();
        assert_eq!(lengths, [0, 1, 8, 1000]);
        assert!(samples.iter().flatten().all(|byte| *byte == round));
        assert_eq!(ring.available(), 0);
    }
}

#[test]
fn a_full_ring_has_no_room_and_a_small_one_never_has() {
    let map = map(MapType::UserRingbuf, 0, 0, 4096);
    let ring = ring(&*map);
    assert_eq!(ring.produce(&[0; 4089]), Err(Errno::E2BIG));
    assert_eq!(ring.produce(&[0; 4088]), Ok(()), "to the last byte");
    assert_eq!(ring.produce(&[]), Err(Errno::ENOSPC));
    assert_eq!(drain(ring).len(), 1);
    assert_eq!(ring.produce(&[]), Ok(()));
}

#[test]
fn what_is_being_written_waits_and_what_is_discarded_is_skipped() {
    let map = map(MapType::UserRingbuf, 0, 0, 4096);
    let ring = ring(&*map);
    let (first, second) = (ring.reserve(8).unwrap(), ring.reserve(8).unwrap());
    ring.area().write(second.at, &[2; 8]).unwrap();
    ring.commit(second, false);
    assert!(drain(ring).is_empty());
    ring.commit(first, true);
    assert_eq!(drain(ring), [[2; 8]]);
}

#[test]
fn one_program_drains_at_a_time() {
    let map = map(MapType::UserRingbuf, 0, 0, 4096);
    let ring = ring(&*map);
    let draining = ring.drain().unwrap();
    assert_eq!(ring.drain().err(), Some(Errno::EBUSY));
    drop(draining);
    assert!(ring.drain().is_ok());
}

#[test]
fn samples_that_no_producer_writes_are_errors() {
    let map = map(MapType::UserRingbuf, 0, 0, 4096);
    let ring = ring(&*map);
    let sample = ring.reserve(8).unwrap();
    ring.area().store(sample.at - 8, 4, 100);
    assert_eq!(ring.drain().unwrap().next(), Err(Errno::EINVAL));
}

#[test]
fn flags_say_whether_a_producer_is_woken() {
    let map = map(MapType::UserRingbuf, 0, 0, 4096);
    let ring = ring(&*map);
    ring.wake(0, RingbufFlags::empty());
    ring.wake(1, RingbufFlags::NO_WAKEUP);
    assert_eq!(ring.wakeups(), 0);
    ring.wake(1, RingbufFlags::empty());
    ring.wake(0, RingbufFlags::FORCE_WAKEUP);
    assert_eq!(ring.wakeups(), 2);
}
