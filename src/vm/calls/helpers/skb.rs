//! Helpers on the bytes of an `sk_buff` (`net/core/filter.c`), which is linear as in
//! `BPF_PROG_TEST_RUN`.

use super::checksum;
use super::packet::{self, Packet};
use crate::spec::ProgType;
use crate::util::Errno;
use crate::vm::events::Checksum;
use crate::vm::events::checksum::{add, partial, shifted};
use crate::vm::machine::{Call, HelperProblem, Returned};
use crate::vm::memory::AccessKind;
use crate::vm::world::Random;

/// `BPF_F_RECOMPUTE_CSUM`.
const RECOMPUTE_CSUM: u64 = 1;
/// `BPF_F_INVALIDATE_HASH`.
const INVALIDATE_HASH: u64 = 1 << 1;
/// `BPF_F_HDR_FIELD_MASK`: the size of a field in a header.
const HDR_FIELD_MASK: u64 = 0xf;
/// `BPF_F_PSEUDO_HDR`.
const PSEUDO_HDR: u64 = 1 << 4;
/// `BPF_F_MARK_MANGLED_0`.
const MARK_MANGLED_0: u64 = 1 << 5;
/// `BPF_F_MARK_ENFORCE`.
const MARK_ENFORCE: u64 = 1 << 6;
/// `BPF_F_IPV6`.
const IPV6: u64 = 1 << 7;
/// Replacement for a UDP checksum of 0 (`CSUM_MANGLED_0`).
const MANGLED_0: u16 = 0xffff;
/// Larger offsets are negative.
const INT_MAX: u32 = i32::MAX.cast_unsigned();
/// Upper bound of offsets relative to a header.
const MAX_HEADER: u32 = 0xffff;

/// Copies packet bytes to the program; zeros and `EFAULT` if there are none.
fn give(call: &mut Call<'_>, n: usize, len: usize, bytes: Option<Vec<u8>>) -> Returned {
    let (bytes, returned) = match bytes {
        Some(bytes) => (bytes, 0),
        None => (vec![0; len], Errno::EFAULT.to_ret()),
    };
    call.write(n, &bytes)?;
    Ok(returned)
}

/// `bpf_skb_load_bytes(context, offset, destination, size)`. The flow dissector has no
/// `sk_buff` in a test run, and so no bytes.
pub(super) fn load_bytes(call: &mut Call<'_>) -> Returned {
    let (offset, len) = (call.arg_u32(2), call.size(4));
    call.check(3, len, AccessKind::Write)?;
    let has_skb = packet::prog_type(call) != Some(ProgType::FlowDissector);
    let packet = packet::of(call)?;
    let bytes = match offset {
        0..=INT_MAX if has_skb => packet.read(offset as usize, len),
        _ => None,
    };
    give(call, 3, len, bytes)
}

/// `bpf_skb_load_bytes_relative(context, offset, destination, size, start header)`.
pub(super) fn load_bytes_relative(call: &mut Call<'_>) -> Returned {
    let (offset, len) = (call.arg_u32(2), call.size(4));
    call.check(3, len, AccessKind::Write)?;
    let header = call.arg_u32(5);
    let packet = packet::of(call)?;
    let start = packet.headers.and_then(|headers| match header {
        0 => Some(headers.mac),
        1 => Some(headers.network),
        _ => None,
    });
    let bytes = match (start, offset) {
        (Some(start), 0..=MAX_HEADER) => packet.read_linear(start + offset as usize, len),
        _ => None,
    };
    give(call, 3, len, bytes)
}

/// `bpf_skb_store_bytes(context, offset, source, size, flags)`.
pub(super) fn store_bytes(call: &mut Call<'_>) -> Returned {
    let (context, offset, len, flags) = (call.arg(1), call.arg_u32(2), call.size(4), call.arg(5));
    let bytes = call.read(3, len)?;
    let stored = store(call, 1, context, offset, &bytes, flags)?;
    Ok(stored.err().map_or(0, Errno::to_ret))
}

/// Overwrites bytes of a context's packet; `n` is the argument for errors.
pub(in crate::vm) fn store(
    call: &mut Call<'_>,
    n: usize,
    context: u64,
    offset: u32,
    bytes: &[u8],
    flags: u64,
) -> Result<Result<(), Errno>, HelperProblem> {
    if flags & !(RECOMPUTE_CSUM | INVALIDATE_HASH) != 0 {
        return Ok(Err(Errno::EINVAL));
    }
    let mut packet = packet::at(call, n, context)?;
    let before = packet.read(offset as usize, bytes.len());
    if offset > INT_MAX || packet.write(offset as usize, bytes).is_none() {
        return Ok(Err(Errno::EFAULT));
    }
    if let (Checksum::Complete(Some(sum)), Some(before)) = (&mut packet.kern.checksum, before)
        && flags & RECOMPUTE_CSUM != 0
    {
        let part = |bytes: &[u8]| shifted(partial(bytes, 0), offset as usize);
        *sum = add(add(*sum, !part(&before)), part(bytes));
    }
    if flags & INVALIDATE_HASH != 0 {
        store_hash(call, 0);
    }
    Ok(Ok(()))
}

/// `bpf_skb_pull_data(context, size)`: does nothing, since packets are linear here.
pub(super) fn pull_data(call: &mut Call<'_>) -> Returned {
    let len = call.size(2);
    let packet = packet::of(call)?;
    Ok(match len > packet.len() {
        true => Errno::ENOMEM.to_ret(),
        false => 0,
    })
}

/// `bpf_l3_csum_replace(context, offset, from, to, size)`: updates a checksum of the network
/// header.
pub(super) fn l3_csum_replace(call: &mut Call<'_>) -> Returned {
    match call.arg(5) {
        flags if flags & !HDR_FIELD_MASK != 0 => Ok(Errno::EINVAL.to_ret()),
        size => replace_checksum(call, |checksum, from, to, _| match size {
            0 if from == 0 => Some(checksum::moved(checksum, low32(to))),
            2 => Some(checksum::replaced16(checksum, low16(from), low16(to))),
            4 => Some(checksum::replaced(checksum, low32(from), low32(to))),
            _ => None,
        }),
    }
}

/// `bpf_l4_csum_replace(context, offset, from, to, flags)`: updates a checksum of the
/// transport header. With `CHECKSUM_PARTIAL` it covers only the pseudo header.
pub(super) fn l4_csum_replace(call: &mut Call<'_>) -> Returned {
    const KNOWN: u64 = HDR_FIELD_MASK | PSEUDO_HDR | MARK_MANGLED_0 | MARK_ENFORCE | IPV6;
    let flags = call.arg(5);
    if flags & !KNOWN != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let mangled = flags & MARK_MANGLED_0 != 0;
    let is_pseudo = flags & PSEUDO_HDR != 0;
    replace_checksum(call, |checksum, from, to, known| {
        if mangled && flags & MARK_ENFORCE == 0 && checksum == 0 {
            return Some(0);
        }
        // The values subtracted from and added to the sum.
        let (from, to) = match flags & HDR_FIELD_MASK {
            0 if from == 0 => (None, low32(to)),
            2 => (Some(low16(from).into()), low16(to).into()),
            4 => (Some(low32(from)), low32(to)),
            _ => return None,
        };
        let replaced = match (*known, from) {
            (Checksum::Partial, _) if !is_pseudo => checksum,
            (Checksum::Partial, from) => checksum::pseudo_replaced(checksum, from, to),
            (_, Some(from)) => checksum::replaced(checksum, from, to),
            (_, None) => checksum::moved(checksum, to),
        };
        if let Checksum::Complete(Some(sum)) = known
            && is_pseudo
            && (from.is_some() || flags & IPV6 == 0)
        {
            // The complete checksum changes in the opposite direction: the packet's sum stays
            // the same except for the pseudo header, which is not part of it.
            let moved = from.map_or(!*sum, |from| add(!*sum, !from));
            *sum = !add(moved, to);
        }
        match replaced {
            0 if mangled => Some(MANGLED_0),
            replaced => Some(replaced),
        }
    })
}

/// Replaces the checksum at the offset in argument 2 by `replace(checksum, argument 3,
/// argument 4, state)`; `None` is `EINVAL`.
fn replace_checksum(
    call: &mut Call<'_>,
    replace: impl Fn(u16, u64, u64, &mut Checksum) -> Option<u16>,
) -> Returned {
    let (offset, from, to) = (call.arg_u32(2), call.arg(3), call.arg(4));
    let mut packet = packet::of(call)?;
    let bytes = match offset {
        0..=MAX_HEADER if offset.is_multiple_of(2) => packet.read(offset as usize, 2),
        _ => None,
    };
    let Some(&[low, high]) = bytes.as_deref() else {
        return Ok(Errno::EFAULT.to_ret());
    };
    let known = &mut packet.kern.checksum;
    let Some(checksum) = replace(u16::from_le_bytes([low, high]), from, to, known) else {
        return Ok(Errno::EINVAL.to_ret());
    };
    // The same bytes were read.
    let _ = packet.write(offset as usize, &checksum.to_le_bytes());
    Ok(0)
}

/// The low 32 bits, as the kernel casts to `__be32`.
const fn low32(number: u64) -> u32 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// The low 16 bits, as the kernel casts to `__be16`.
const fn low16(number: u64) -> u16 {
    let [a, b, ..] = number.to_le_bytes();
    u16::from_le_bytes([a, b])
}

/// `bpf_get_hash_recalc(context)`: the flow's hash, computed if there is none. The kernel
/// uses a key chosen at boot, bpflab none. Both directions of a flow have the same hash.
pub(super) fn get_hash_recalc(call: &mut Call<'_>) -> Returned {
    let known = packet::field(call, "hash").and_then(|(block, at)| block.load(at, 4));
    if let Some(hash @ 1..) = known {
        return Ok(hash);
    }
    let packet = packet::of(call)?;
    let mac = packet
        .headers
        .map_or(packet.range.data, |headers| headers.mac);
    let mixed = flow(&packet, mac);
    let mixed = mixed.iter().fold(0, |hash, byte| {
        Random::new(hash ^ u64::from(*byte)).next_u64()
    });
    let hash = low32(mixed).max(1);
    store_hash(call, hash);
    Ok(hash.into())
}

/// The identity of a flow: protocols, addresses and ports, the lower of a pair first, as far
/// as the packet has them.
fn flow(packet: &Packet<'_>, mac: usize) -> Vec<u8> {
    let part = |at: usize, len: usize| packet.read_linear(mac + at, len).unwrap_or_default();
    let pair = |at: usize, len: usize| {
        let (one, other) = (part(at, len), part(at + len, len));
        if one <= other {
            [one, other].concat()
        } else {
            [other, one].concat()
        }
    };
    let network = crate::vm::events::ETH_HLEN;
    let protocol = part(network - 2, 2);
    let (transport, addresses, behind) = match protocol.as_slice() {
        [0x08, 0x00] => {
            let words = part(network, 1).first().map_or(5, |byte| byte & 0xf);
            let end = network + usize::from(words) * 4;
            (part(network + 9, 1), pair(network + 12, 4), end)
        }
        [0x86, 0xdd] => (part(network + 6, 1), pair(network + 8, 16), network + 40),
        _ => return protocol,
    };
    let ports = match transport.first() {
        Some(6 | 17 | 33 | 132) => pair(behind, 2), // TCP, UDP, DCCP, SCTP
        _ => Vec::new(),
    };
    [protocol, transport, addresses, ports].concat()
}

pub(super) fn set_hash_invalid(call: &mut Call<'_>) -> Returned {
    with_hash(call, 0)
}

/// `bpf_set_hash(context, hash)`.
pub(super) fn set_hash(call: &mut Call<'_>) -> Returned {
    with_hash(call, call.arg_u32(2))
}

fn with_hash(call: &mut Call<'_>, hash: u32) -> Result<u64, HelperProblem> {
    packet::of(call)?;
    store_hash(call, hash);
    Ok(0)
}

/// Stores a hash in the context's field; 0 means none.
fn store_hash(call: &Call<'_>, hash: u32) {
    if let Some((block, at)) = packet::field(call, "hash") {
        // The field is in the context's layout.
        let _ = block.store(at, 4, hash.into());
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::spec::helpers::id;
    use crate::vm::events::Event;

    /// A TCP packet of 64 bytes; those after the IP header count up from 34.
    fn tcp() -> Vec<u8> {
        let mut bytes = vec![0; 12];
        bytes.extend([8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0, 64, 6, 0, 0]);
        bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend(34..64);
        bytes
    }

    fn bench(prog_type: ProgType) -> (Bench, u64) {
        let bench = Bench::on(prog_type, &Event::packet(tcp()));
        let context = bench.context();
        (bench, context)
    }

    fn word(bench: &mut Bench, at: u64) -> u16 {
        let context = bench.context();
        let to = bench.memory(&[0; 2]);
        assert_eq!(bench.ok(id::skb_load_bytes, [context, at, to, 2]), 0);
        u16::from_le_bytes(bench.bytes(to, 2).try_into().unwrap())
    }

    #[test]
    fn bytes_are_loaded_or_zeroed() {
        let (mut bench, context) = bench(ProgType::SchedCls);
        let to = bench.memory(&[0xff; 4]);
        assert_eq!(bench.ok(id::skb_load_bytes, [context, 60, to, 4]), 0);
        assert_eq!(bench.bytes(to, 4), [60, 61, 62, 63]);
        for at in [61, 64, 1 << 31, 0xffff_ffff] {
            let args = [context, at, to, 4];
            assert_eq!(bench.errno(id::skb_load_bytes, args), Errno::EFAULT);
            assert_eq!(bench.bytes(to, 4), [0; 4]);
        }
        assert!(bench.call(id::skb_load_bytes, [context, 0, to, 8]).is_err());
        assert!(bench.call(id::skb_load_bytes, [to, 0, to, 4]).is_err());
    }

    #[test]
    fn headers_are_found_whether_the_program_sees_them_or_not() {
        for prog_type in [ProgType::SchedCls, ProgType::CgroupSkb] {
            let (mut bench, context) = bench(prog_type);
            let to = bench.memory(&[0xff; 4]);
            for (at, header, want) in [(12, 0, [8, 0, 0x45, 0]), (0, 1, [0x45, 0, 0, 50])] {
                let args = [context, at, to, 4, header];
                assert_eq!(bench.ok(id::skb_load_bytes_relative, args), 0);
                assert_eq!(bench.bytes(to, 4), want);
            }
            for (at, header) in [(0, 2), (1 << 16, 0), (61, 0), (47, 1)] {
                let args = [context, at, to, 4, header];
                let errno = bench.errno(id::skb_load_bytes_relative, args);
                assert_eq!((errno, bench.bytes(to, 4)), (Errno::EFAULT, vec![0; 4]));
            }
        }
        let (mut bench, context) = bench(ProgType::FlowDissector);
        let to = bench.memory(&[0xff; 4]);
        assert_eq!(
            bench.errno(id::skb_load_bytes, [context, 0, to, 4]),
            Errno::EFAULT
        );
    }

    #[test]
    fn bytes_are_stored_within_the_packet() {
        let (mut bench, context) = bench(ProgType::SchedCls);
        let from = bench.memory(&[0xaa, 0xbb]);
        assert_eq!(bench.ok(id::set_hash, [context, 5]), 0);
        assert_eq!(bench.ok(id::skb_store_bytes, [context, 62, from, 2, 3]), 0);
        assert_eq!(bench.machine.packet_bytes(62, 2), Some(vec![0xaa, 0xbb]));
        assert_ne!(bench.ok(id::get_hash_recalc, [context]), 5, "invalidated");
        let errno = |bench: &mut Bench, at, flags| {
            bench.errno(id::skb_store_bytes, [context, at, from, 2, flags])
        };
        assert_eq!(errno(&mut bench, 63, 0), Errno::EFAULT);
        assert_eq!(errno(&mut bench, 1 << 31, 0), Errno::EFAULT);
        assert_eq!(errno(&mut bench, 0, 4), Errno::EINVAL);
    }

    #[test]
    fn pulling_more_than_there_is_fails() {
        let (mut bench, context) = bench(ProgType::SchedCls);
        assert_eq!(bench.ok(id::skb_pull_data, [context, 64]), 0);
        assert_eq!(bench.ok(id::skb_pull_data, [context, 0]), 0);
        assert_eq!(bench.errno(id::skb_pull_data, [context, 65]), Errno::ENOMEM);
        assert_eq!(bench.errno(id::csum_update, [context, 1]), Errno::ENOTSUPP);
    }

    /// Expected values are from Linux 6.18 with the same calls and packet.
    #[test]
    fn checksums_are_the_kernels() {
        let (mut bench, context) = bench(ProgType::SchedCls);
        for (args, want) in [
            ([24, 0x1234, 0x5678, 2], 0xbbbb),
            ([24, 0x1234_5678, 0x9abc_def0, 4], 0xaaba),
            ([24, 0, 0x9abc_def0, 0], 0x310d),
        ] {
            let [at, from, to, flags] = args;
            assert_eq!(
                bench.ok(id::l3_csum_replace, [context, at, from, to, flags]),
                0
            );
            assert_eq!(word(&mut bench, at), want, "{args:x?}");
        }
        for (args, want) in [
            ([40, 0x1234, 0x5678, 2 | 0x20], 0xe4e3),
            ([40, 0x1234, 0x5678, 2 | 0x60], 0xa09f),
            ([40, 0x1234, 0x5678, 4 | 0x10], 0x5c5b),
            ([40, 0, 0x5678_abcd, 0x10], 0x5a15),
        ] {
            let [at, from, to, flags] = args;
            assert_eq!(
                bench.ok(id::l4_csum_replace, [context, at, from, to, flags]),
                0
            );
            assert_eq!(word(&mut bench, at), want, "{args:x?}");
        }
        for (helper, args, want) in [
            (id::l3_csum_replace, [24, 1, 2, 0], Errno::EINVAL),
            (id::l3_csum_replace, [25, 0, 0, 2], Errno::EFAULT),
            (id::l3_csum_replace, [64, 0, 0, 2], Errno::EFAULT),
            (id::l3_csum_replace, [24, 0, 0, 3], Errno::EINVAL),
            (id::l3_csum_replace, [24, 0, 0, 16], Errno::EINVAL),
            (id::l4_csum_replace, [40, 0, 0, 0x100], Errno::EINVAL),
            (id::l4_csum_replace, [0x1_0000, 0, 0, 2], Errno::EFAULT),
        ] {
            let [at, from, to, flags] = args;
            assert_eq!(bench.errno(helper, [context, at, from, to, flags]), want);
        }
    }

    #[test]
    fn a_mangled_zero_stays_or_becomes_all_ones() {
        let (mut bench, context) = bench(ProgType::SchedCls);
        let zero = bench.memory(&[0; 2]);
        assert_eq!(bench.ok(id::skb_store_bytes, [context, 40, zero, 2, 0]), 0);
        let replace = |bench: &mut Bench, flags| {
            assert_eq!(bench.ok(id::l4_csum_replace, [context, 40, 1, 1, flags]), 0);
            word(bench, 40)
        };
        assert_eq!(replace(&mut bench, 2 | MARK_MANGLED_0), 0);
        assert_eq!(
            replace(&mut bench, 2 | MARK_MANGLED_0 | MARK_ENFORCE),
            0xffff
        );
    }

    #[test]
    fn a_flow_has_one_hash_in_both_directions() {
        let (mut bench, context) = bench(ProgType::SchedCls);
        let hash = bench.ok(id::get_hash_recalc, [context]);
        assert_ne!(hash, 0);
        assert_eq!(bench.machine.space.load(context + 68, 4), Ok(hash));
        let mut back = tcp();
        back[26..34].rotate_left(4);
        back[34..38].rotate_left(2);
        let mut back = Bench::on(ProgType::SchedCls, &Event::packet(back));
        let context = back.context();
        assert_eq!(back.ok(id::get_hash_recalc, [context]), hash);
        assert_eq!(back.ok(id::set_hash, [context, 77]), 0);
        assert_eq!(back.ok(id::get_hash_recalc, [context]), 77);
        assert_eq!(back.ok(id::set_hash_invalid, [context]), 0);
        assert_eq!(back.ok(id::get_hash_recalc, [context]), hash);
        let mut other = tcp();
        other[33] = 3;
        let mut other = Bench::on(ProgType::SchedCls, &Event::packet(other));
        let context = other.context();
        assert_ne!(other.ok(id::get_hash_recalc, [context]), hash);
    }
}
