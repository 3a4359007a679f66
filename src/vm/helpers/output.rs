//! Records for user space: ring buffers (`kernel/bpf/ringbuf.c`) and perf buffers
//! (`kernel/trace/bpf_trace.c`, `net/core/filter.c`).

use std::sync::Arc;

use super::super::fault::HelperProblem;
use super::super::maps::{Kind, Map, Record, RingBuf};
use super::super::outcome::Output;
use super::call::{Call, unfit};
use crate::spec::{
    CTXLEN_MASK, CURRENT_CPU, ContextKind, INDEX_MASK, RingbufFlags, RingbufQuery, limits,
};
use crate::util::Errno;

type Result = std::result::Result<u64, HelperProblem>;

/// The ring buffer that a map is.
fn ring<'m>(arg: usize, map: &'m Arc<dyn Map>) -> std::result::Result<&'m RingBuf, HelperProblem> {
    match map.kind() {
        Kind::RingBuf(ring) => Ok(ring),
        _ => Err(unfit(arg, &**map)),
    }
}

/// Notes that a record found no room.
fn lost(call: &mut Call<'_>, map: &dyn Map, error: Errno) -> u64 {
    let map = map.def().name.clone();
    call.machine.output(Output::Lost { map, error });
    error.to_ret()
}

/// Hands a record on and notes what user space will see.
fn submit(call: &mut Call<'_>, map: &dyn Map, ring: &RingBuf, record: Record, flags: RingbufFlags) {
    let data = ring.area().copy(record.at, record.len).unwrap_or_default();
    ring.commit(record, flags, false);
    let map = map.def().name.clone();
    call.machine.output(Output::RingBuf { map, data });
}

pub(super) fn ringbuf_output(call: &mut Call<'_>) -> Result {
    let (_, map) = call.map(1)?;
    let ring = ring(1, &map)?;
    let flags = RingbufFlags::from_bits(call.arg(4));
    let Some(flags) = flags else {
        return Ok(Errno::EINVAL.to_ret());
    };
    let len = call.arg(3);
    let size = usize::try_from(len).unwrap_or(usize::MAX);
    let data = call.read(2, size)?;
    let Some(record) = ring.reserve(len) else {
        return Ok(lost(call, &*map, Errno::EAGAIN));
    };
    ring.area().write(record.at, &data);
    submit(call, &*map, ring, record, flags);
    Ok(0)
}

pub(super) fn ringbuf_reserve(call: &mut Call<'_>) -> Result {
    let (handle, map) = call.map(1)?;
    let ring = ring(1, &map)?;
    if call.arg(3) != 0 {
        return Ok(0);
    }
    let Some(record) = ring.reserve(call.arg(2)) else {
        // The program is told no more than null; `ringbuf_output` says EAGAIN.
        lost(call, &*map, Errno::EAGAIN);
        return Ok(0);
    };
    Ok(call.machine.lend(handle, ring.area(), record)?)
}

pub(super) fn ringbuf_submit(call: &mut Call<'_>) -> Result {
    give_back(call, false)
}

pub(super) fn ringbuf_discard(call: &mut Call<'_>) -> Result {
    give_back(call, true)
}

/// Ends a reservation. Flags that mean nothing are not looked at, as in the kernel.
fn give_back(call: &mut Call<'_>, discard: bool) -> Result {
    let lent = call.machine.take_back(call.arg(1));
    let lent = lent.ok_or_else(|| call.wrong(1, "a record from bpf_ringbuf_reserve"))?;
    let map = call.machine.map(lent.map).cloned();
    let map = map.ok_or_else(|| call.wrong(1, "a record of a ring buffer"))?;
    let ring = ring(1, &map)?;
    let flags = RingbufFlags::from_bits_truncate(call.arg(2));
    if discard {
        ring.commit(lent.record, flags, true);
    } else {
        submit(call, &*map, ring, lent.record, flags);
    }
    Ok(0)
}

pub(super) fn ringbuf_query(call: &mut Call<'_>) -> Result {
    let (_, map) = call.map(1)?;
    let ring = ring(1, &map)?;
    Ok(match RingbufQuery::from_number(call.arg(2)) {
        Some(RingbufQuery::AvailData) => ring.available(),
        Some(RingbufQuery::RingSize) => ring.size(),
        Some(RingbufQuery::ConsPos) => ring.consumer_position(),
        Some(RingbufQuery::ProdPos) => ring.producer_position(),
        None => 0,
    })
}

/// Sends a record to the perf buffer of the current CPU, or through the slot that
/// the flags name. The record here is what the program gave: the padding to 8
/// bytes that the kernel adds behind it is left out.
pub(super) fn perf_event_output(call: &mut Call<'_>) -> Result {
    let (_, map) = call.map(2)?;
    let Kind::PerfEventArray(events) = map.kind() else {
        return Err(unfit(2, &*map));
    };
    let flags = call.arg(3);
    let size = usize::try_from(call.arg(5)).unwrap_or(usize::MAX);
    let mut data = call.read(4, size)?.into_vec();
    let allowed = if has_packet(call) {
        INDEX_MASK | CTXLEN_MASK
    } else {
        INDEX_MASK
    };
    if flags & !allowed != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let appended = usize::try_from((flags & CTXLEN_MASK) >> 32).unwrap_or_default();
    if appended > 0 {
        match call.machine.packet_bytes(0, appended) {
            Some(packet) => data.extend(packet),
            None => return Ok(Errno::EFAULT.to_ret()),
        }
    }
    let cpu = call.machine.world.cpu();
    let slot = match flags & INDEX_MASK {
        CURRENT_CPU => cpu,
        slot => u32::try_from(slot).unwrap_or(u32::MAX),
    };
    if let Err(errno) = events.accepts(slot, cpu) {
        return Ok(lost(call, &*map, errno));
    }
    if data.len() > limits::MAX_PERF_RECORD - PERF_OVERHEAD {
        return Ok(lost(call, &*map, Errno::ENOSPC));
    }
    let map = map.def().name.clone();
    call.machine.output(Output::Perf { map, cpu, data });
    Ok(0)
}

/// Bytes of a perf record besides the data: its header, the data's length, and up
/// to 7 of padding.
const PERF_OVERHEAD: usize = 8 + 4 + 7;

/// Whether the program's context is a packet, whose bytes it may append
/// (`bpf_skb_event_output`, `bpf_xdp_event_output`).
fn has_packet(call: &Call<'_>) -> bool {
    let context = call
        .machine
        .current()
        .map(|current| current.prog_type.info().context);
    matches!(context, Some(ContextKind::SkBuff | ContextKind::XdpMd))
}
