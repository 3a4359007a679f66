//! Helpers on the packet of an `xdp_buff` (`net/core/filter.c`).

use super::packet;
use crate::spec::limits;
use crate::util::Errno;
use crate::vm::events::{ETH_HLEN, PacketRange, XDP_FRAME};
use crate::vm::machine::{Call, Returned};
use crate::vm::memory::AccessKind;

/// Maximum size of the metadata (`xdp_metalen_invalid`).
const MOST_META: usize = 252;
/// Maximum size of a fragment: a page (`frag_size` of a test run's queue).
const PAGE: usize = limits::PAGE_SIZE as usize;
/// Upper bound of offsets and sizes.
const MAX_OFFSET: u32 = 0xffff;

pub(super) fn get_buff_len(call: &mut Call<'_>) -> Returned {
    Ok(packet::of(call)?.len() as u64)
}

/// `bpf_xdp_load_bytes(context, offset, destination, size)`.
pub(super) fn load_bytes(call: &mut Call<'_>) -> Returned {
    let (offset, len) = (call.arg_u32(2), call.arg_u32(4));
    call.check(3, len as usize, AccessKind::Write)?;
    let packet = packet::of(call)?;
    if offset > MAX_OFFSET || len > MAX_OFFSET {
        return Ok(Errno::EFAULT.to_ret());
    }
    match packet.read(offset as usize, len as usize) {
        Some(bytes) => {
            call.write(3, &bytes)?;
            Ok(0)
        }
        None => Ok(Errno::EINVAL.to_ret()),
    }
}

/// `bpf_xdp_store_bytes(context, offset, source, size)`.
pub(super) fn store_bytes(call: &mut Call<'_>) -> Returned {
    let (offset, len) = (call.arg_u32(2), call.arg_u32(4));
    let bytes = call.read(3, len as usize)?;
    let mut packet = packet::of(call)?;
    if offset > MAX_OFFSET || len > MAX_OFFSET {
        return Ok(Errno::EFAULT.to_ret());
    }
    Ok(match packet.write(offset as usize, &bytes) {
        Some(()) => 0,
        None => Errno::EINVAL.to_ret(),
    })
}

/// An offset moved by a signed number of bytes; `None` below 0.
fn moved(at: usize, by: i32) -> Option<usize> {
    at.checked_add_signed(isize::try_from(by).ok()?)
}

/// Moves the packet's ends; `EINVAL` if that is impossible.
fn place(call: &mut Call<'_>, range: Option<PacketRange>) -> Returned {
    Ok(match range {
        Some(range) if packet::set_range(call, range) => 0,
        _ => Errno::EINVAL.to_ret(),
    })
}

/// `bpf_xdp_adjust_head(context, delta)`: moves the packet's start together with its
/// metadata. The start of the headroom is reserved by the kernel.
pub(super) fn adjust_head(call: &mut Call<'_>) -> Returned {
    let delta = call.arg_i32(2);
    let packet = packet::of(call)?;
    let PacketRange { meta, data, end } = packet.range;
    let target = moved(data, delta)
        .filter(|start| *start >= XDP_FRAME + (data - meta) && start + ETH_HLEN <= end);
    let range = target.and_then(|start| {
        let to = start - (data - meta);
        let metadata = packet.read_block(meta, data - meta)?;
        packet.write_block(to, &metadata)?;
        Some(PacketRange {
            meta: to,
            data: start,
            end,
        })
    });
    place(call, range)
}

/// `bpf_xdp_adjust_meta(context, delta)`: moves the start of the metadata.
pub(super) fn adjust_meta(call: &mut Call<'_>) -> Returned {
    let delta = call.arg_i32(2);
    let range = packet::of(call)?.range;
    let target = moved(range.meta, delta);
    let Some(meta) = target.filter(|meta| (XDP_FRAME..=range.data).contains(meta)) else {
        return Ok(Errno::EINVAL.to_ret());
    };
    let len = range.data - meta;
    if !len.is_multiple_of(4) || len > MOST_META {
        return Ok(Errno::EACCES.to_ret());
    }
    place(call, Some(PacketRange { meta, ..range }))
}

/// `bpf_xdp_adjust_tail(context, delta)`: moves the packet's end; new bytes are 0. A packet
/// with fragments shrinks from the last fragment; the last fragment grows to at most a page.
pub(super) fn adjust_tail(call: &mut Call<'_>) -> Returned {
    let delta = call.arg_i32(2);
    let packet = packet::of(call)?;
    let (range, frags) = (packet.range, packet.frags.len());
    if frags > 0 && delta >= 0 {
        let room = frags.next_multiple_of(PAGE);
        return Ok(match moved(frags, delta) {
            Some(len) if len <= room => {
                packet.frags.resize(len, 0);
                0
            }
            _ => Errno::EINVAL.to_ret(),
        });
    }
    // Bytes removed from the fragments, and the new end of the linear part.
    let cut = usize::try_from(delta.unsigned_abs()).unwrap_or(usize::MAX);
    let from_frags = if delta < 0 { cut.min(frags) } else { 0 };
    let end = match delta {
        0.. => moved(range.end, delta),
        _ => range.end.checked_sub(cut - from_frags),
    };
    let end = end.filter(|end| *end >= range.data + ETH_HLEN && *end <= packet.block_len());
    if let Some(end) = end {
        packet.frags.truncate(frags - from_frags);
        let grown = vec![0; end.saturating_sub(range.end)];
        // In bounds, as `end` is.
        let _ = packet.write_block(range.end, &grown);
    }
    place(call, end.map(|end| PacketRange { end, ..range }))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::spec::ProgType;
    use crate::spec::helpers::id;
    use crate::vm::events::Event;

    fn bench(len: usize) -> (Bench, u64) {
        let bytes: Vec<u8> = (0..=255).cycle().take(len).collect();
        let bench = Bench::on(ProgType::Xdp, &Event::packet(bytes));
        let context = bench.context();
        (bench, context)
    }

    fn packet(bench: &Bench) -> Vec<u8> {
        let placed = &bench.machine.current().unwrap().placed;
        placed.packet_bytes(&bench.machine.space).unwrap()
    }

    fn delta(delta: i32) -> u64 {
        delta.cast_unsigned().into()
    }

    #[test]
    fn the_head_moves_within_the_headroom() {
        let (mut bench, context) = bench(64);
        assert_eq!(bench.ok(id::xdp_adjust_head, [context, 10]), 0);
        assert_eq!((packet(&bench).len(), packet(&bench)[0]), (54, 10));
        let data = bench.machine.space.load(context, 4).unwrap();
        assert_eq!(
            bench.machine.space.load(data, 1),
            Ok(10),
            "the pointer follows"
        );
        assert_eq!(bench.ok(id::xdp_adjust_head, [context, delta(-226)]), 0);
        assert_eq!(packet(&bench).len(), 280);
        for too_far in [-1, 267, i32::MIN, i32::MAX] {
            let args = [context, delta(too_far)];
            assert_eq!(
                bench.errno(id::xdp_adjust_head, args),
                Errno::EINVAL,
                "{too_far}"
            );
        }
        assert_eq!(bench.ok(id::xdp_adjust_head, [context, 266]), 0);
        assert_eq!(bench.ok(id::xdp_get_buff_len, [context]), 14);
    }

    #[test]
    fn metadata_moves_along() {
        let (mut bench, context) = bench(64);
        assert_eq!(bench.ok(id::xdp_adjust_meta, [context, delta(-8)]), 0);
        let meta = bench.machine.space.load(context + 8, 4).unwrap();
        bench.machine.space.store(meta, 8, 0x0102_0304).unwrap();
        assert_eq!(bench.ok(id::xdp_adjust_head, [context, delta(-16)]), 0);
        let meta = bench.machine.space.load(context + 8, 4).unwrap();
        assert_eq!(bench.machine.space.load(meta, 8), Ok(0x0102_0304));
        assert_eq!(packet(&bench).len(), 80);
    }

    #[test]
    fn metadata_comes_in_words() {
        let (mut bench, context) = bench(64);
        for (by, want) in [
            (-3, Errno::EACCES),
            (-217, Errno::EINVAL),
            (1, Errno::EINVAL),
        ] {
            assert_eq!(bench.errno(id::xdp_adjust_meta, [context, delta(by)]), want);
        }
        assert_eq!(bench.ok(id::xdp_adjust_meta, [context, delta(-216)]), 0);
        assert_eq!(bench.ok(id::xdp_adjust_meta, [context, 216]), 0);
        assert_eq!(bench.ok(id::xdp_adjust_head, [context, 48]), 0);
        assert_eq!(
            bench.errno(id::xdp_adjust_meta, [context, delta(-256)]),
            Errno::EACCES
        );
    }

    #[test]
    fn the_tail_moves_within_the_page() {
        let (mut bench, context) = bench(64);
        assert_eq!(bench.ok(id::xdp_adjust_tail, [context, delta(-20)]), 0);
        assert_eq!(packet(&bench).len(), 44);
        assert_eq!(bench.ok(id::xdp_adjust_tail, [context, 20]), 0);
        assert_eq!(
            packet(&bench)[40..],
            [&[40, 41, 42, 43][..], &[0; 20]].concat()
        );
        assert_eq!(
            bench.errno(id::xdp_adjust_tail, [context, delta(-51)]),
            Errno::EINVAL
        );
        let room = 4096 - 256 - 320 - 64;
        assert_eq!(
            bench.errno(id::xdp_adjust_tail, [context, room + 1]),
            Errno::EINVAL
        );
        assert_eq!(bench.ok(id::xdp_adjust_tail, [context, room]), 0);
        assert_eq!(
            bench.errno(id::xdp_adjust_tail, [context, delta(i32::MIN)]),
            Errno::EINVAL
        );
    }

    #[test]
    fn fragments_shrink_first_and_grow_to_a_page() {
        let (mut bench, context) = bench(4000); // 3520 in the page, 480 beyond
        assert_eq!(bench.ok(id::xdp_get_buff_len, [context]), 4000);
        assert_eq!(
            bench.errno(id::xdp_adjust_tail, [context, 4096 - 479]),
            Errno::EINVAL
        );
        assert_eq!(bench.ok(id::xdp_adjust_tail, [context, 20]), 0);
        assert_eq!(
            packet(&bench)[3990..],
            [(150..160).collect::<Vec<u8>>(), vec![0; 20]].concat()
        );
        assert_eq!(bench.ok(id::xdp_adjust_tail, [context, delta(-510)]), 0);
        assert_eq!(bench.ok(id::xdp_get_buff_len, [context]), 3510);
        let placed = &bench.machine.current().unwrap().placed;
        assert!(placed.packet.as_ref().unwrap().frags.is_empty());
    }

    #[test]
    fn bytes_are_copied_across_fragments() {
        let (mut bench, context) = bench(4000);
        let buffer = bench.memory(&[0; 8]);
        assert_eq!(bench.ok(id::xdp_load_bytes, [context, 3516, buffer, 8]), 0);
        assert_eq!(
            bench.bytes(buffer, 8),
            [188, 189, 190, 191, 192, 193, 194, 195]
        );
        bench.machine.space.write(buffer, &[7; 8]).unwrap();
        assert_eq!(bench.ok(id::xdp_store_bytes, [context, 3516, buffer, 8]), 0);
        assert_eq!(
            packet(&bench)[3515..3525],
            [187, 7, 7, 7, 7, 7, 7, 7, 7, 196]
        );
        for (helper, offset, want) in [
            (id::xdp_load_bytes, 3993, Errno::EINVAL),
            (id::xdp_store_bytes, 3993, Errno::EINVAL),
            (id::xdp_load_bytes, 0x1_0000, Errno::EFAULT),
            (id::xdp_store_bytes, 0x1_0000, Errno::EFAULT),
        ] {
            assert_eq!(bench.errno(helper, [context, offset, buffer, 8]), want);
        }
        assert_eq!(bench.bytes(buffer, 8), [7; 8]);
    }
}
