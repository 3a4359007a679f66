//! Draining a user ring buffer (`kernel/bpf/ringbuf.c`).

use super::super::dynptr::KernelDynptr;
use crate::spec::RingbufFlags;
use crate::util::Errno;
use crate::vm::machine::{Call, HelperProblem, Returned, unfit};
use crate::vm::maps::{Kind, MapHandle, Next, Record, UserRingBuf};

/// Maximum number of samples per call (`BPF_MAX_USER_RINGBUF_SAMPLES`).
const MAX_SAMPLES: u64 = 128 * 1024;

/// `bpf_user_ringbuf_drain(map, callback, context, flags)`: calls back with a dynptr to each
/// waiting sample, oldest first, until the callback returns nonzero. Returns the number of
/// samples passed to the callback.
pub(super) fn drain(call: &mut Call<'_>) -> Returned {
    let (handle, map) = call.map(1)?;
    let Kind::UserRingBuf(ring) = map.kind() else {
        return Err(unfit(1, &*map));
    };
    let Some(flags) = RingbufFlags::from_bits(call.arg(4)) else {
        return Ok(Errno::EINVAL.to_ret());
    };
    let draining = match ring.drain() {
        Ok(draining) => draining,
        Err(errno) => return Ok(errno.to_ret()),
    };
    let (mut samples, mut rounds) = (0, 0);
    let mut result = Ok(());
    while rounds < MAX_SAMPLES {
        rounds += 1;
        match draining.next() {
            Err(errno) => {
                result = Err(errno);
                break;
            }
            Ok(Next::Nothing) => break,
            Ok(Next::Skipped) => {}
            Ok(Next::Sample(sample)) => {
                let returned = show(call, handle, ring, sample);
                draining.release(sample);
                samples += 1;
                if returned? != 0 {
                    break;
                }
            }
        }
    }
    drop(draining);
    let woken = if result.is_ok() { samples } else { 0 };
    ring.wake(woken, flags);
    Ok(result.map_or_else(Errno::to_ret, |()| samples))
}

/// Passes a sample to the callback.
fn show(
    call: &mut Call<'_>,
    handle: MapHandle,
    ring: &UserRingBuf,
    sample: Record,
) -> Result<u64, HelperProblem> {
    let context = call.arg(3);
    let data = call
        .machine
        .map_record(handle, ring.area().clone(), sample)?;
    // A sample's length fits into a dynptr.
    let size = u32::try_from(sample.len).unwrap_or_default();
    let returned = match KernelDynptr::local(&mut call.machine.space, data, size) {
        Ok(dynptr) => {
            let returned = call.call_back(2, [dynptr.register(), context, 0, 0, 0]);
            dynptr.remove(&mut call.machine.space);
            returned
        }
        Err(full) => Err(full.into()),
    };
    call.machine.unmap_record(data);
    returned
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::super::super::dynptr::Dynptr;
    use super::super::testing::Bench;
    use super::*;
    use crate::spec::MapType;
    use crate::spec::helpers::id;

    #[test]
    fn each_sample_comes_as_a_dynptr() {
        let mut bench = Bench::new();
        let (map, _, urb) = bench.map(MapType::UserRingbuf, 0, 0, 4096);
        let Kind::UserRingBuf(ring) = urb.kind() else {
            panic!("no user ring buffer");
        };
        for sample in [&[1; 3][..], &[2; 8], &[]] {
            ring.produce(sample).unwrap();
        }
        let skipped = ring.reserve(4).unwrap();
        ring.commit(skipped, true);
        ring.produce(&[4; 4]).unwrap();
        let seen = Rc::new(RefCell::new(Vec::new()));
        let samples = seen.clone();
        bench.callback = Box::new(move |machine, args| {
            assert_eq!(args[1..], [77, 0, 0, 0]);
            let dynptr = Dynptr::load(&machine.space, args[0]);
            samples.borrow_mut().push(format!("{:?}", dynptr.is_ok()));
            Some(u64::from(samples.borrow().len() == 3))
        });
        assert_eq!(bench.ok(id::user_ringbuf_drain, [map, 1, 77, 0]), 3);
        assert_eq!(bench.ok(id::user_ringbuf_drain, [map, 1, 77, 0]), 1);
        assert_eq!(bench.ok(id::user_ringbuf_drain, [map, 1, 77, 0]), 0);
        assert_eq!((seen.borrow().len(), ring.wakeups()), (4, 2));
        assert_eq!(bench.machine.unreleased().len(), 0);
    }

    #[test]
    fn flags_maps_and_faults() {
        let mut bench = Bench::new();
        let (map, _, urb) = bench.map(MapType::UserRingbuf, 0, 0, 4096);
        let (ring, ..) = bench.map(MapType::Ringbuf, 0, 0, 4096);
        let flags = [map, 1, 0, 4];
        assert_eq!(bench.errno(id::user_ringbuf_drain, flags), Errno::EINVAL);
        assert!(bench.call(id::user_ringbuf_drain, [ring, 1, 0, 0]).is_err());
        let Kind::UserRingBuf(user) = urb.kind() else {
            panic!("no user ring buffer");
        };
        user.produce(&[1]).unwrap();
        bench.callback = Box::new(|_, _| None);
        assert!(bench.call(id::user_ringbuf_drain, [map, 1, 0, 0]).is_err());
        assert!(user.drain().is_ok(), "the next program may");
        assert_eq!(bench.machine.unreleased().len(), 0);
        // Busy while a program drains.
        let _draining = user.drain().unwrap();
        let again = [map, 1, 0, 0];
        assert_eq!(bench.errno(id::user_ringbuf_drain, again), Errno::EBUSY);
    }
}
