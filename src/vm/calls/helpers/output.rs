//! Records for user space: ring buffers (`kernel/bpf/ringbuf.c`) and perf buffers
//! (`kernel/trace/bpf_trace.c`, `net/core/filter.c`).

use std::sync::Arc;

use crate::spec::{
    CTXLEN_MASK, CURRENT_CPU, ContextKind, INDEX_MASK, RingbufFlags, RingbufQuery, limits,
};
use crate::util::Errno;
use crate::vm::machine::{Call, Destination, HelperProblem, Machine, Output, OutputBuffer, unfit};
use crate::vm::maps::{Kind, Map, MapHandle, Record, RingBuf};
use crate::vm::memory::{AccessKind, Space};
use crate::vm::world::kernel::KernelObject;

type Result = std::result::Result<u64, HelperProblem>;

/// The ring buffer behind a map.
fn ring(arg: usize, map: &Arc<dyn Map>) -> std::result::Result<&RingBuf, HelperProblem> {
    match map.kind() {
        Kind::RingBuf(ring) => Ok(ring),
        _ => Err(unfit(arg, &**map)),
    }
}

/// Records that a record was lost, and returns the errno.
fn lost(call: &mut Call<'_>, map: MapHandle, error: Errno) -> u64 {
    let map = call.machine.map_name(map);
    call.machine.output(Output::Lost { map, error });
    error.to_ret()
}

pub(super) fn ringbuf_output(call: &mut Call<'_>) -> Result {
    let handle = call.map_handle(1)?;
    let (data, len) = (call.arg(2), call.arg(3));
    let flags = RingbufFlags::from_bits(call.arg(4));
    let Machine {
        shared, run, space, ..
    } = &mut *call.machine;
    let outputs = &mut run.outputs;
    let Some(map) = shared.map(handle) else {
        return Err(call.wrong(1, "a map"));
    };
    let ring = ring(1, map)?;
    let Some(flags) = flags else {
        return Ok(Errno::EINVAL.to_ret());
    };
    draft(space, outputs, (2, data), len)?;
    let Some(record) = ring.reserve(len) else {
        return Ok(lost(call, handle, Errno::EAGAIN));
    };
    ring.area().write(record.at, outputs.drafted());
    ring.commit(record, flags, false);
    outputs.record(Destination::Ring(handle));
    Ok(0)
}

/// Drafts a record with `len` bytes from the address in argument `n`.
fn draft(
    space: &Space,
    outputs: &mut OutputBuffer,
    (n, data): (usize, u64),
    len: u64,
) -> std::result::Result<(), HelperProblem> {
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    let read = space.append(data, len, outputs.draft());
    read.map_err(|fault| HelperProblem::Access { arg: n, fault })
}

pub(super) fn ringbuf_reserve(call: &mut Call<'_>) -> Result {
    match call.arg(3) {
        0 => reserve(call, 1, call.arg(2)),
        _ => Ok(0),
    }
}

/// Reserves a record in the ring buffer in argument `n`. Returns its address, 0 if there is
/// no room.
pub(super) fn reserve(call: &mut Call<'_>, n: usize, len: u64) -> Result {
    let handle = call.map_handle(n)?;
    let ring = ring(n, call.map_of(n, handle)?)?;
    let Some(record) = ring.reserve(len) else {
        // The program only gets null; the error of `bpf_ringbuf_output` is EAGAIN.
        lost(call, handle, Errno::EAGAIN);
        return Ok(0);
    };
    let area = ring.area().clone();
    Ok(call.machine.map_record(handle, area, record)?)
}

pub(super) fn ringbuf_submit(call: &mut Call<'_>) -> Result {
    give_back(call, 1, call.arg(1), false)
}

pub(super) fn ringbuf_discard(call: &mut Call<'_>) -> Result {
    give_back(call, 1, call.arg(1), true)
}

/// Submits or discards a record, given by argument `n`; flags are in argument 2. Unknown
/// flags are ignored, as in the kernel.
pub(super) fn give_back(call: &mut Call<'_>, n: usize, record: u64, discard: bool) -> Result {
    let flags = call.arg(2);
    let reserved = call.machine.unmap_record(record);
    let reserved = reserved.ok_or_else(|| call.wrong(n, "a record from bpf_ringbuf_reserve"))?;
    let Machine { shared, run, .. } = &mut *call.machine;
    let outputs = &mut run.outputs;
    let Some(map) = shared.map(reserved.map) else {
        return Err(call.wrong(n, "a record of a ring buffer"));
    };
    let ring = ring(n, map)?;
    let flags = RingbufFlags::from_bits_truncate(flags);
    if !discard {
        let Record { at, len } = reserved.record;
        ring.area().append(at, len, outputs.draft());
        outputs.record(Destination::Ring(reserved.map));
    }
    ring.commit(reserved.record, flags, discard);
    Ok(0)
}

pub(super) fn ringbuf_query(call: &mut Call<'_>) -> Result {
    let ring = ring(1, call.map_of(1, call.map_handle(1)?)?)?;
    Ok(match RingbufQuery::from_number(call.arg(2)) {
        Some(RingbufQuery::AvailData) => ring.available(),
        Some(RingbufQuery::RingSize) => ring.size(),
        Some(RingbufQuery::ConsPos) => ring.consumer_position(),
        Some(RingbufQuery::ProdPos) => ring.producer_position(),
        None => 0,
    })
}

/// `bpf_perf_event_output(context, map, flags, data, size)`: writes a record to the perf
/// buffer of the current CPU or to the slot in the flags. If the flags give a length, bytes
/// of the packet are appended to the data.
pub(super) fn perf_event_output(call: &mut Call<'_>) -> Result {
    if has_packet(call) {
        return send(call, |call, len| call.machine.packet_bytes(0, len));
    }
    if call.arg(3) & !INDEX_MASK != 0 {
        // The kernel checks the data in any case.
        call.check(4, size_of_data(call), AccessKind::Read)?;
        return Ok(Errno::EINVAL.to_ret());
    }
    send(call, |_, _| None)
}

/// `bpf_skb_output`: the same for a program with an `sk_buff` as an argument; the appended
/// bytes start at `skb->data`.
pub(super) fn skb_output(call: &mut Call<'_>) -> Result {
    send(call, |call, len| {
        packet_behind(call, len, "data", |skb| skb.get("len").ok())
    })
}

/// `bpf_xdp_output`: the same for a program with an `xdp_buff` as an argument.
pub(super) fn xdp_output(call: &mut Call<'_>) -> Result {
    send(call, |call, len| {
        packet_behind(call, len, "data", |xdp| {
            let (data, end) = (xdp.get("data").ok()?, xdp.get("data_end").ok()?);
            end.checked_sub(data)
        })
    })
}

/// The first bytes of the packet that a kernel object describes.
fn packet_behind(
    call: &Call<'_>,
    len: usize,
    data: &str,
    there: impl Fn(&KernelObject) -> Option<u64>,
) -> Option<Vec<u8>> {
    let packet = call.machine.world.kernel_memory().object_at(call.arg(1))?;
    if len as u64 > there(&packet)? {
        return None;
    }
    let mut bytes = vec![0; len];
    let at = packet.get(data).ok()?;
    call.machine.space.probe(at, &mut bytes).map(|()| bytes)
}

/// The size of the data in argument 5.
fn size_of_data(call: &Call<'_>) -> usize {
    usize::try_from(call.arg(5)).unwrap_or(usize::MAX)
}

/// Writes a record. The kernel's padding to 8 bytes is left out.
fn send(call: &mut Call<'_>, packet: impl Fn(&Call<'_>, usize) -> Option<Vec<u8>>) -> Result {
    let handle = call.map_handle(2)?;
    let map = call.map_of(2, handle)?;
    let Kind::PerfEventArray(events) = map.kind() else {
        return Err(unfit(2, &**map));
    };
    let flags = call.arg(3);
    let cpu = call.machine.world.cpu();
    let slot = match flags & INDEX_MASK {
        CURRENT_CPU => cpu,
        slot => u32::try_from(slot).unwrap_or(u32::MAX),
    };
    let accepted = events.accepts(slot, cpu);
    let (data, len) = (call.arg(4), call.arg(5));
    draft(
        &call.machine.space,
        &mut call.machine.run.outputs,
        (4, data),
        len,
    )?;
    if flags & !(INDEX_MASK | CTXLEN_MASK) != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let appended = usize::try_from((flags & CTXLEN_MASK) >> 32).unwrap_or_default();
    if appended > 0 {
        match packet(call, appended) {
            Some(packet) => call.machine.run.outputs.extend(&packet),
            None => return Ok(Errno::EFAULT.to_ret()),
        }
    }
    if let Err(errno) = accepted {
        return Ok(lost(call, handle, errno));
    }
    if call.machine.run.outputs.drafted().len() > limits::MAX_PERF_RECORD - PERF_OVERHEAD {
        return Ok(lost(call, handle, Errno::ENOSPC));
    }
    call.machine
        .run
        .outputs
        .record(Destination::Perf(handle, cpu));
    Ok(0)
}

/// Bytes of a perf record besides the data: header, data length, up to 7 bytes of padding.
const PERF_OVERHEAD: usize = 8 + 4 + 7;

/// Whether the context is a packet, whose bytes can be appended (`bpf_skb_event_output`,
/// `bpf_xdp_event_output`).
fn has_packet(call: &Call<'_>) -> bool {
    let context = call
        .machine
        .current()
        .map(|current| current.prog_type.info().context);
    matches!(context, Some(ContextKind::SkBuff | ContextKind::XdpMd))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::btf::{Builder, Encoding, Member};
    use crate::spec::helpers::id;
    use crate::spec::{MapType, ProgType};
    use crate::vm::events::Event;

    const EINVAL: u64 = Errno::EINVAL.to_ret();
    const E2BIG: u64 = Errno::E2BIG.to_ret();

    fn committed(data: &[u8]) -> Output {
        Output::RingBuf {
            map: "m".into(),
            data: data.to_vec(),
        }
    }

    #[test]
    fn a_record_is_reserved_written_and_submitted() {
        let mut bench = Bench::new();
        let (map, _, ring_map) = bench.map(MapType::Ringbuf, 0, 0, 4096);
        let first = bench.call(id::ringbuf_reserve, [map, 8, 0]).unwrap();
        let second = bench.call(id::ringbuf_reserve, [map, 4, 0]).unwrap();
        bench
            .machine
            .space
            .store(first, 8, 0x0807_0605_0403_0201)
            .unwrap();
        assert_eq!(
            bench
                .machine
                .space
                .store(second + 1, 4, 0)
                .unwrap_err()
                .to_string(),
            "writes 4 bytes at ring buffer record of m+1, 1 byte past its end (4 bytes)"
        );
        bench.machine.space.store(second, 4, 9).unwrap();
        assert_eq!(bench.machine.unreleased().len(), 2);
        assert_eq!(bench.call(id::ringbuf_submit, [second, 0]), Ok(0));
        let Kind::RingBuf(ring) = ring_map.kind() else {
            panic!("no ring buffer");
        };
        assert!(ring.take().is_empty(), "the first is still being written");
        assert_eq!(bench.call(id::ringbuf_submit, [first, 0]), Ok(0));
        assert_eq!(
            ring.take(),
            [vec![1, 2, 3, 4, 5, 6, 7, 8], vec![9, 0, 0, 0]]
        );
        let outputs = bench.machine.take_outputs();
        assert_eq!(
            outputs,
            [
                committed(&[9, 0, 0, 0]),
                committed(&[1, 2, 3, 4, 5, 6, 7, 8])
            ]
        );
        assert!(bench.machine.space.load(first, 8).is_err(), "it is gone");
        assert!(bench.call(id::ringbuf_submit, [first, 0]).is_err());
        assert_eq!(bench.machine.unreleased().len(), 0);
    }

    #[test]
    fn discarded_records_are_seen_by_nobody() {
        let mut bench = Bench::new();
        let (map, _, ring_map) = bench.map(MapType::Ringbuf, 0, 0, 4096);
        let record = bench.call(id::ringbuf_reserve, [map, 8, 0]).unwrap();
        assert!(bench.call(id::ringbuf_discard, [record + 1, 0]).is_err());
        assert_eq!(bench.call(id::ringbuf_discard, [record, 0]), Ok(0));
        assert!(bench.machine.take_outputs().is_empty());
        assert_eq!(ring(1, &ring_map).unwrap().take(), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn records_are_copied_or_lost() {
        let mut bench = Bench::new();
        let (map, _, _) = bench.map(MapType::Ringbuf, 0, 0, 4096);
        let data = bench.memory(&[7; 3000]);
        assert_eq!(
            bench.call(id::ringbuf_output, [map, data, 3000, 4]),
            Ok(EINVAL)
        );
        assert_eq!(bench.call(id::ringbuf_output, [map, data, 3000, 1]), Ok(0));
        let lost = bench.call(id::ringbuf_output, [map, data, 3000, 0]);
        assert_eq!(lost, Ok(Errno::EAGAIN.to_ret()));
        assert_eq!(bench.call(id::ringbuf_reserve, [map, 3000, 0]), Ok(0));
        assert_eq!(bench.call(id::ringbuf_reserve, [map, 8, 1]), Ok(0), "flags");
        assert!(
            bench
                .call(id::ringbuf_output, [map, data, 3001, 0])
                .is_err()
        );
        let lost = Output::Lost {
            map: "m".into(),
            error: Errno::EAGAIN,
        };
        let outputs = bench.machine.take_outputs();
        assert_eq!(outputs, [committed(&[7; 3000]), lost.clone(), lost]);
    }

    #[test]
    fn a_ring_buffer_answers_questions() {
        let mut bench = Bench::new();
        let (map, _, ring_map) = bench.map(MapType::Ringbuf, 0, 0, 4096);
        let data = bench.memory(&[7; 20]);
        bench.call(id::ringbuf_output, [map, data, 20, 0]).unwrap();
        assert_eq!(ring(1, &ring_map).unwrap().take(), [[7; 20]]);
        bench.call(id::ringbuf_output, [map, data, 5, 0]).unwrap();
        let answers = [0, 1, 2, 3, 4].map(|query| bench.call(id::ringbuf_query, [map, query]));
        assert_eq!(answers, [Ok(16), Ok(4096), Ok(32), Ok(48), Ok(0)]);
        let (array, ..) = bench.map(MapType::Array, 4, 4, 1);
        assert!(bench.call(id::ringbuf_query, [array, 0]).is_err());
        assert!(bench.call(id::ringbuf_reserve, [array, 8, 0]).is_err());
    }

    #[test]
    fn perf_records_go_to_the_cpus_buffer() {
        let mut bench = Bench::new();
        let (map, ..) = bench.map(MapType::PerfEventArray, 4, 4, 5);
        let data = bench.memory(&[7; 8]);
        bench.machine.world.set_cpu(2);
        let send =
            |bench: &mut Bench, flags| bench.call(id::perf_event_output, [0, map, flags, data, 8]);
        assert_eq!(send(&mut bench, CURRENT_CPU), Ok(0));
        assert_eq!(send(&mut bench, 2), Ok(0));
        assert_eq!(send(&mut bench, 1), Ok(Errno::EOPNOTSUPP.to_ret()));
        assert_eq!(send(&mut bench, 4), Ok(Errno::ENOENT.to_ret()));
        assert_eq!(send(&mut bench, 5), Ok(E2BIG));
        assert_eq!(
            send(&mut bench, 1 << 32 | 2),
            Ok(EINVAL),
            "there is no packet"
        );
        let sent = Output::Perf {
            map: "m".into(),
            cpu: 2,
            data: vec![7; 8],
        };
        let lost = |error| Output::Lost {
            map: "m".into(),
            error,
        };
        assert_eq!(
            bench.machine.take_outputs(),
            [
                sent.clone(),
                sent,
                lost(Errno::EOPNOTSUPP),
                lost(Errno::ENOENT),
                lost(Errno::E2BIG)
            ]
        );
        assert!(
            bench
                .call(id::perf_event_output, [0, map, 2, data, 9])
                .is_err()
        );
        let large = bench.memory(&[0; 0x1_0000]);
        let sent = bench.call(id::perf_event_output, [0, map, 2, large, 0x1_0000]);
        assert_eq!(sent, Ok(Errno::ENOSPC.to_ret()));
    }

    #[test]
    fn a_packets_first_bytes_can_be_appended() {
        let mut bench = Bench::new();
        let packet: Vec<u8> = (0..64).collect();
        let event = Event::packet(packet.clone());
        let placed = event
            .place(ProgType::Xdp, &mut bench.machine.space)
            .unwrap();
        bench.machine.enter(ProgType::Xdp, placed).unwrap();
        let (map, ..) = bench.map(MapType::PerfEventArray, 4, 4, 4);
        let data = bench.memory(&[0xff; 2]);
        let flags = 3 << 32 | CURRENT_CPU;
        assert_eq!(
            bench.call(id::perf_event_output, [0, map, flags, data, 2]),
            Ok(0)
        );
        let flags = 65 << 32 | CURRENT_CPU;
        let sent = bench.call(id::perf_event_output, [0, map, flags, data, 2]);
        assert_eq!(sent, Ok(Errno::EFAULT.to_ret()));
        let expected = Output::Perf {
            map: "m".into(),
            cpu: 0,
            data: vec![0xff, 0xff, 0, 1, 2],
        };
        assert_eq!(bench.machine.take_outputs(), [expected]);
    }

    /// A kernel packet object whose first bytes are in another region.
    fn packet_of_kernel(bench: &mut Bench, name: &str) -> u64 {
        let mut types = Builder::new();
        let int = types.int("unsigned int", 4, Encoding::Unsigned);
        let byte = types.int("unsigned char", 1, Encoding::Unsigned);
        let bytes = types.ptr(byte);
        let member = |name, ty, at: u32| Member {
            name,
            ty,
            bit_offset: 8 * at,
            bitfield: None,
        };
        let skb = [member("len", int, 0), member("data", bytes, 8)];
        types.structure("sk_buff", 16, &skb);
        let xdp = [member("data", bytes, 0), member("data_end", bytes, 8)];
        types.structure("xdp_buff", 16, &xdp);
        let memory = bench.machine.world.kernel_memory();
        memory.set_kernel_types(types.build().unwrap());
        let data = memory.make_bytes("packet", &[1, 2, 3, 4]).unwrap();
        let packet = memory.make(name).unwrap().set("data", &data).unwrap();
        let packet = match name {
            "sk_buff" => packet.set("len", 4).unwrap(),
            _ => packet.set("data_end", data.address() + 4).unwrap(),
        };
        packet.address()
    }

    #[test]
    fn a_traced_packets_first_bytes_can_be_appended() {
        for (helper, name) in [(id::skb_output, "sk_buff"), (id::xdp_output, "xdp_buff")] {
            let mut bench = Bench::new();
            let packet = packet_of_kernel(&mut bench, name);
            let (map, ..) = bench.map(MapType::PerfEventArray, 4, 4, 4);
            let data = bench.memory(&[0xff; 2]);
            let mut send = |packet, len: u64| {
                let flags = len << 32 | CURRENT_CPU;
                let sent = bench.call(helper, [packet, map, flags, data, 2]);
                (sent.unwrap(), bench.machine.take_outputs())
            };
            let (sent, outputs) = send(packet, 3);
            let expected = Output::Perf {
                map: "m".into(),
                cpu: 0,
                data: vec![0xff, 0xff, 1, 2, 3],
            };
            assert_eq!((sent, outputs), (0, vec![expected]), "{name}");
            let efault = (Errno::EFAULT.to_ret(), vec![]);
            assert_eq!(send(packet, 5), efault, "{name}");
            assert_eq!(send(0, 1), efault, "{name}");
        }
    }
}
