//! Helpers that hand data to user space: ring buffers (`kernel/bpf/ringbuf.c`) and
//! perf buffers (`kernel/trace/bpf_trace.c`).

use std::sync::Arc;

use super::Call;
use crate::util::Errno;
use crate::vm::MapHandle;
use crate::vm::fault::HelperProblem;
use crate::vm::machine::Lent;
use crate::vm::maps::{Kind, Map, Reserved, RingBuf};
use crate::vm::memory::Region;
use crate::vm::outcome::Output;

type Result<T, E = HelperProblem> = std::result::Result<T, E>;

/// `BPF_RB_NO_WAKEUP | BPF_RB_FORCE_WAKEUP`: nobody sleeps here, but other flags
/// are errors.
const WAKEUP: u64 = 1 | 2;
/// `BPF_F_INDEX_MASK`: the index of a perf buffer; all ones is the current CPU's.
const INDEX_MASK: u64 = 0xffff_ffff;
/// `BPF_F_CTXLEN_MASK`: how many bytes of the packet to append, from bit 32.
const PACKET_MASK: u64 = 0xf_ffff << 32;

fn ring<'m>(call: &Call<'_>, map: &'m dyn Map) -> Result<&'m RingBuf> {
    match map.kind() {
        Kind::RingBuf(ring) => Ok(ring),
        _ => Err(call.wrong(1, "a ring buffer")),
    }
}

fn lost(call: &mut Call<'_>, map: &dyn Map, error: Errno) {
    let map = map.def().name.clone();
    call.machine.output(Output::Lost { map, error });
}

/// `long ringbuf_output(ringbuf, data, size, flags)`.
pub fn ringbuf_output(call: &mut Call<'_>) -> Result<u64> {
    let (_, map) = call.map(1)?;
    let ring = ring(call, &*map)?;
    if call.arg(4) & !WAKEUP != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let size = call.arg(3);
    // Where it never fits, its bytes need not be there.
    let Ok(Reserved { record, offset }) = ring.reserve(size) else {
        lost(call, &*map, Errno::EAGAIN);
        return Ok(Errno::EAGAIN.to_ret());
    };
    let data = usize::try_from(size)
        .ok()
        .map(|size| call.read(2, size))
        .transpose();
    let data = data
        .inspect_err(|_| drop(ring.commit(record, true)))?
        .unwrap_or_default();
    // Reserved: in bounds.
    let _ = ring.bytes().write(offset, &data);
    ring.commit(record, false);
    let map = map.def().name.clone();
    call.machine.output(Output::RingBuf { map, data });
    Ok(0)
}

/// `void *ringbuf_reserve(ringbuf, size, flags)`.
pub fn ringbuf_reserve(call: &mut Call<'_>) -> Result<u64> {
    let (handle, map) = call.map(1)?;
    let ring = ring(call, &*map)?;
    if call.arg(3) != 0 {
        return Ok(0);
    }
    let size = call.arg(2);
    match ring.reserve(size) {
        Ok(reserved) => lend(call, handle, ring, reserved, size),
        Err(error) => {
            lost(call, &*map, error);
            Ok(0)
        }
    }
}

/// Gives a record an address for as long as the program holds it.
fn lend(
    call: &mut Call<'_>,
    map: MapHandle,
    ring: &RingBuf,
    reserved: Reserved,
    size: u64,
) -> Result<u64> {
    let end = reserved.offset + usize::try_from(size).unwrap_or_default();
    let name = format!("record of ring buffer {}", ring.def().name);
    let region = Region::window(name, Arc::clone(ring.bytes()), reserved.offset..end);
    let base = call.machine.space.insert(region).map_err(|full| {
        ring.commit(reserved.record, true);
        HelperProblem::Other(full.to_string())
    })?;
    let address = base.plus(reserved.offset as u64);
    let record = reserved.record;
    call.machine
        .lent
        .insert(address, Lent { map, record, base });
    Ok(address)
}

/// `void ringbuf_submit(data, flags)`.
pub fn ringbuf_submit(call: &mut Call<'_>) -> Result<u64> {
    finish(call, false)
}

/// `void ringbuf_discard(data, flags)`.
pub fn ringbuf_discard(call: &mut Call<'_>) -> Result<u64> {
    finish(call, true)
}

fn finish(call: &mut Call<'_>, discard: bool) -> Result<u64> {
    let Some(lent) = call.machine.lent.remove(&call.arg(1)) else {
        return Err(call.wrong(1, "a record that bpf_ringbuf_reserve returned"));
    };
    call.machine.space.remove(lent.base);
    let Some(map) = call.machine.map(lent.map).cloned() else {
        return Ok(0);
    };
    if let Kind::RingBuf(ring) = map.kind()
        && let Some(data) = ring.commit(lent.record, discard)
        && !discard
    {
        let map = map.def().name.clone();
        call.machine.output(Output::RingBuf { map, data });
    }
    Ok(0)
}

/// `u64 ringbuf_query(ringbuf, flags)`.
pub fn ringbuf_query(call: &mut Call<'_>) -> Result<u64> {
    let (_, map) = call.map(1)?;
    Ok(ring(call, &*map)?.query(call.arg(2)))
}

/// `long perf_event_output(ctx, map, flags, data, size)`. On packets the flags can
/// ask for some of the packet's bytes behind the data (`bpf_skb_event_output`,
/// `net/core/filter.c`).
pub fn perf_event_output(call: &mut Call<'_>) -> Result<u64> {
    let (_, map) = call.map(2)?;
    let Kind::PerfEventArray(buffers) = map.kind() else {
        return Err(call.wrong(2, "a perf event array"));
    };
    let flags = call.arg(3);
    let packet = call
        .machine
        .current()
        .and_then(|current| current.placed.packet_bytes(&call.machine.space));
    let allowed = INDEX_MASK | if packet.is_some() { PACKET_MASK } else { 0 };
    if flags & !allowed != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let cpu = call.machine.world.cpu();
    let index = match flags & INDEX_MASK {
        INDEX_MASK => cpu,
        index => u32::try_from(index).unwrap_or(u32::MAX),
    };
    let appended = usize::try_from((flags & PACKET_MASK) >> 32).unwrap_or_default();
    let packet = packet.unwrap_or_default();
    let Some(appended) = packet.get(..appended) else {
        return Ok(Errno::EFAULT.to_ret());
    };
    if let Err(error) = buffers.check(index, cpu) {
        lost(call, &*map, error);
        return Ok(error.to_ret());
    }
    let mut data = call.read(4, usize::try_from(call.arg(5)).unwrap_or(usize::MAX))?;
    data.extend_from_slice(appended);
    let map = map.def().name.clone();
    call.machine.output(Output::Perf { map, cpu, data });
    Ok(0)
}
