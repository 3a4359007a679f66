//! Counters and branch records of perf events (`kernel/trace/bpf_trace.c`,
//! `perf_event_read_local` in `kernel/events/core.c`).

use crate::spec::{CURRENT_CPU, INDEX_MASK};
use crate::util::Errno;
use crate::vm::events::attach::BranchEntry;
use crate::vm::machine::{Call, HelperProblem, unfit};
use crate::vm::maps::{Counter, Kind};
use crate::vm::memory::AccessKind;

type Result = std::result::Result<u64, HelperProblem>;

/// `BPF_F_GET_BRANCH_RECORDS_SIZE`.
const RECORDS_SIZE: u64 = 1;

/// The counter of the event in the slot given by the flags.
fn counter(
    call: &mut Call<'_>,
) -> std::result::Result<std::result::Result<Counter, Errno>, HelperProblem> {
    let (_, map) = call.map(1)?;
    let Kind::PerfEventArray(events) = map.kind() else {
        return Err(unfit(1, &*map));
    };
    let flags = call.arg(2);
    if flags & !INDEX_MASK != 0 {
        return Ok(Err(Errno::EINVAL));
    }
    let cpu = call.machine.world.cpu();
    let slot = match flags {
        CURRENT_CPU => cpu,
        slot => u32::try_from(slot).unwrap_or(u32::MAX),
    };
    Ok(events.counter(slot, cpu))
}

/// `bpf_perf_event_read(map, flags)`: the counter; an error can't be told from a large value.
pub(super) fn perf_event_read(call: &mut Call<'_>) -> Result {
    let counter = counter(call)?;
    Ok(counter.map_or_else(Errno::to_ret, |counter| counter.counter))
}

/// Fills a `struct bpf_perf_event_value`; zeros on an error.
fn fill(
    call: &mut Call<'_>,
    at: usize,
    size: usize,
    counter: std::result::Result<Counter, Errno>,
) -> Result {
    let counter = if size == Counter::SIZE {
        counter
    } else {
        Err(Errno::EINVAL)
    };
    match counter {
        Ok(counter) => call.write(at, &counter.bytes()).map(|()| 0),
        Err(errno) => {
            call.check(at, size, AccessKind::Write)?;
            call.write(at, &vec![0; size]).map(|()| errno.to_ret())
        }
    }
}

pub(super) fn perf_event_read_value(call: &mut Call<'_>) -> Result {
    let counter = counter(call)?;
    let size = call.size(4);
    fill(call, 3, size, counter)
}

/// `bpf_perf_prog_read_value(context, buffer, size)`: the counter of the event that
/// overflowed. Unless the test sets it, the event was always running.
pub(super) fn perf_prog_read_value(call: &mut Call<'_>) -> Result {
    let counter = call.machine.site().and_then(|site| site.counter);
    let size = call.size(3);
    fill(call, 2, size, Ok(counter.unwrap_or_default()))
}

/// The branch records of the current event.
fn branches(call: &mut Call<'_>) -> Option<Vec<u8>> {
    let site = call.machine.site()?;
    Some(BranchEntry::bytes(site.branches.as_deref()?))
}

pub(super) fn read_branch_records(call: &mut Call<'_>) -> Result {
    let flags = call.arg(4);
    if flags & !RECORDS_SIZE != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let Some(records) = branches(call) else {
        return Ok(Errno::ENOENT.to_ret());
    };
    if flags & RECORDS_SIZE != 0 {
        return Ok(records.len() as u64);
    }
    let size = call.size(3);
    if call.arg(2) == 0 || !size.is_multiple_of(BranchEntry::SIZE) {
        return Ok(Errno::EINVAL.to_ret());
    }
    call.check(2, size, AccessKind::Write)?;
    let copied = records.get(..size).unwrap_or(&records);
    call.write(2, copied).map(|()| copied.len() as u64)
}

pub(super) fn get_branch_snapshot(call: &mut Call<'_>) -> Result {
    let size = call.size(2);
    call.check(1, size, AccessKind::Write)?;
    let records = branches(call).unwrap_or_default();
    let room = size - size % BranchEntry::SIZE;
    let copied = records.get(..room).unwrap_or(&records);
    call.write(1, copied)?;
    if call.arg(3) != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    if copied.is_empty() {
        return Ok(Errno::ENOENT.to_ret());
    }
    Ok(copied.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::spec::context::Arch;
    use crate::spec::helpers::id;
    use crate::spec::{MapType, ProgType};
    use crate::vm::events::Event;

    #[test]
    fn counters_are_read_through_an_array_of_events() {
        let mut bench = Bench::new();
        let (map, _, events) = bench.map(MapType::PerfEventArray, 4, 4, 8);
        let Kind::PerfEventArray(events) = events.kind() else {
            unreachable!()
        };
        let counter = Counter {
            counter: 7,
            enabled: 10,
            running: 5,
        };
        events.set_counter(0, 0, Some(counter)).unwrap();
        events.set_counter(1, 1, Some(counter)).unwrap();
        let at = bench.memory(&[0xff; 24]);
        assert_eq!(bench.call(id::perf_event_read, [map, CURRENT_CPU]), Ok(7));
        assert_eq!(
            bench.call(id::perf_event_read_value, [map, 0, at, 24]),
            Ok(0)
        );
        assert_eq!(bench.bytes(at, 24), counter.bytes());
        for (flags, size, errno) in [
            (1 << 32, 24, Errno::EINVAL),
            (0, 16, Errno::EINVAL),
            (8, 24, Errno::E2BIG),
            (7, 24, Errno::ENOENT),
            // An event of another CPU.
            (1, 24, Errno::EINVAL),
        ] {
            let told = bench.errno(id::perf_event_read_value, [map, flags, at, size]);
            assert_eq!(told, errno, "{flags:#x} {size}");
            assert_eq!(bench.bytes(at, 16), [0; 16]);
        }
    }

    #[test]
    fn a_sample_has_its_counter_and_its_branches() {
        let event = Event::context(ProgType::PerfEvent, Arch::HOST).unwrap();
        let branch = |from| BranchEntry {
            from,
            to: from + 1,
            flags: 0,
        };
        let event = event.counter(3).branches([branch(10), branch(20)]);
        let mut bench = Bench::on(ProgType::PerfEvent, &event);
        let (context, at) = (bench.context(), bench.memory(&[0xff; 72]));
        let read = bench.call(id::perf_prog_read_value, [context, at, 24]);
        assert_eq!((read, bench.bytes(at, 2)), (Ok(0), vec![3, 0]));
        let records = id::read_branch_records;
        assert_eq!(bench.call(records, [context, 0, 0, RECORDS_SIZE]), Ok(48));
        assert_eq!(bench.call(records, [context, at, 24, 0]), Ok(24));
        assert_eq!(bench.call(records, [context, at, 72, 0]), Ok(48));
        assert_eq!(bench.bytes(at + 24, 1), [20]);
        assert_eq!(bench.errno(records, [context, at, 20, 0]), Errno::EINVAL);
        assert_eq!(bench.errno(records, [context, 0, 0, 0]), Errno::EINVAL);
        assert_eq!(bench.errno(records, [context, at, 24, 2]), Errno::EINVAL);
        let snapshot = id::get_branch_snapshot;
        assert_eq!(bench.call(snapshot, [at, 71, 0]), Ok(48));
        assert_eq!(bench.errno(snapshot, [at, 23, 0]), Errno::ENOENT);
        assert_eq!(bench.errno(snapshot, [at, 24, 1]), Errno::EINVAL);
        let mut bare = Bench::new();
        let nothing = bare.errno(records, [0, 0, 0, RECORDS_SIZE]);
        assert_eq!(nothing, Errno::ENOENT);
    }
}
