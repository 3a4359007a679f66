//! Helpers that change a packet's size or protocol (`net/core/filter.c`).

use super::skb::{IPV4, IPV6, Skb};
use crate::util::Errno;
use crate::vm::events::{Checksum, ETH_HLEN, Headers, MAX_GROWN};
use crate::vm::machine::{Call, Returned};

/// Size difference of an IPv6 and an IPv4 header.
const DIFFERENCE: usize = 20;
/// `sizeof(struct iphdr)`.
const IPV4_HEADER: usize = 20;
/// `sizeof(struct ipv6hdr)`.
const IPV6_HEADER: usize = 40;
/// The largest change of a packet's room.
const MAX_ROOM: u32 = 0xfff;

/// Flags of `bpf_skb_adjust_room` (`BPF_F_ADJ_ROOM_*`).
mod room {
    pub const FIXED_GSO: u64 = 1 << 0;
    pub const ENCAP_L3_IPV4: u64 = 1 << 1;
    pub const ENCAP_L3_IPV6: u64 = 1 << 2;
    pub const ENCAP_L4_GRE: u64 = 1 << 3;
    pub const ENCAP_L4_UDP: u64 = 1 << 4;
    pub const NO_CSUM_RESET: u64 = 1 << 5;
    pub const ENCAP_L2_ETH: u64 = 1 << 6;
    pub const DECAP_L3_IPV4: u64 = 1 << 7;
    pub const DECAP_L3_IPV6: u64 = 1 << 8;
    /// Bit position of the inner link header's length.
    pub const ENCAP_L2_SHIFT: u32 = 56;
    pub const ENCAP_L3: u64 = ENCAP_L3_IPV4 | ENCAP_L3_IPV6;
    pub const DECAP_L3: u64 = DECAP_L3_IPV4 | DECAP_L3_IPV6;
    pub const ALL: u64 = FIXED_GSO
        | ENCAP_L3
        | ENCAP_L4_GRE
        | ENCAP_L4_UDP
        | ENCAP_L2_ETH
        | 0xff << ENCAP_L2_SHIFT
        | DECAP_L3
        | NO_CSUM_RESET;
}

/// `Ok`, or the errno that stopped the helper.
pub type Done = Result<(), Errno>;

/// The helper's return value; partial changes of the packet remain on an error.
fn returned(skb: Skb<'_>, done: Done) -> Returned {
    let committed = skb.commit();
    Ok(match done {
        Ok(()) if committed => 0,
        Ok(()) => Errno::ENOMEM.to_ret(),
        Err(errno) => errno.to_ret(),
    })
}

/// Inserts a zeroed header `off` bytes into the packet (`bpf_skb_net_hdr_push`).
pub fn push_header(skb: &mut Skb<'_>, off: usize, len: usize) -> Done {
    if !skb.push(len) {
        return Err(Errno::ENOMEM);
    }
    skb.copy_within(len, 0, off);
    skb.write(off, &vec![0; len]);
    move_headers(skb, |at| at.saturating_sub(len));
    Ok(())
}

/// Removes `len` bytes, `off` bytes into the packet (`bpf_skb_net_hdr_pop`).
pub fn pop_header(skb: &mut Skb<'_>, off: usize, len: usize) -> Done {
    if off + len > skb.len() {
        return Err(Errno::ENOMEM);
    }
    skb.subtract_from_checksum(off, len);
    skb.copy_within(0, len, off);
    skb.pull(len);
    move_headers(skb, |at| at + len);
    Ok(())
}

/// Moves the link and network header; the transport header only if it was at the network
/// header.
fn move_headers(skb: &mut Skb<'_>, moved: impl Fn(usize) -> usize) {
    let Headers {
        mac,
        network,
        transport,
        ..
    } = skb.headers;
    skb.headers.mac = moved(mac);
    skb.headers.network = moved(network);
    if transport == Some(network) {
        skb.headers.transport = Some(skb.headers.network);
    }
}

/// `bpf_skb_change_proto(context, protocol in network order, flags)`: changes IPv4 to IPv6 or
/// back; the program has to fill in the new header.
pub fn change_proto(call: &mut Call<'_>) -> Returned {
    let (wanted, flags) = (call.arg(2), call.arg(3));
    let [low, high, ..] = wanted.to_le_bytes();
    let mut skb = Skb::of(call)?;
    if flags != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let off = skb.link_header_len();
    let to = u16::from_be_bytes([low, high]);
    let done = match (skb.protocol(), to) {
        (IPV4, IPV6) => push_header(&mut skb, off, DIFFERENCE),
        (IPV6, IPV4) => pop_header(&mut skb, off, DIFFERENCE),
        _ => Err(Errno::ENOTSUPP),
    };
    if done.is_ok() {
        skb.set_protocol(to);
        skb.clear_hash();
    }
    returned(skb, done)
}

/// `bpf_skb_change_type(context, type)`: changes the packet type, `PACKET_HOST` to
/// `PACKET_OTHERHOST`.
pub fn change_type(call: &mut Call<'_>) -> Returned {
    const OTHERHOST: u32 = 3;
    let wanted = call.arg_u32(2);
    let skb = Skb::of(call)?;
    if skb.field("pkt_type") > OTHERHOST || wanted > OTHERHOST {
        return Ok(Errno::EINVAL.to_ret());
    }
    skb.set_field("pkt_type", wanted.into());
    Ok(0)
}

/// `bpf_skb_change_tail(context, length, flags)`: truncates the packet or appends zeros.
pub fn change_tail(call: &mut Call<'_>) -> Returned {
    let (len, flags) = (call.size(2), call.arg(3));
    let mut skb = Skb::of(call)?;
    let done = tail(&mut skb, len, flags);
    returned(skb, done)
}

fn tail(skb: &mut Skb<'_>, len: usize, flags: u64) -> Done {
    let behind = |header: usize| header.saturating_sub(skb.data);
    let network = behind(skb.headers.network);
    let least = match skb.headers.transport.map(behind) {
        Some(transport @ 1..) => transport,
        _ => network,
    };
    if flags != 0 || len > MAX_GROWN || len < least {
        return Err(Errno::EINVAL);
    }
    if skb.headers.is_encapsulated {
        return Err(Errno::ENOTSUPP);
    }
    if let (Checksum::Complete(_), true) = (skb.kern().checksum, len != skb.len()) {
        // The checksum is dropped, not recomputed (`__skb_trim_rcsum`, `__skb_grow_rcsum`).
        skb.kern().checksum = Checksum::None;
    }
    if !skb.resize(len) {
        return Err(Errno::ENOMEM);
    }
    if skb.is_gso() {
        skb.reset_gso();
    }
    Ok(())
}

/// `bpf_skb_change_head(context, length, flags)`: prepends zeros as a new link header.
pub fn change_head(call: &mut Call<'_>) -> Returned {
    let (len, flags) = (call.size(2), call.arg(3));
    let mut skb = Skb::of(call)?;
    let too_long = !skb.is_gso() && skb.len().saturating_add(len) > MAX_GROWN;
    if flags != 0 || too_long || skb.len() + len > u32::MAX as usize {
        return Ok(Errno::EINVAL.to_ret());
    }
    let done = if skb.push(len) {
        skb.write(0, &vec![0; len]);
        skb.headers.mac = skb.data;
        Ok(())
    } else {
        Err(Errno::ENOMEM)
    };
    returned(skb, done)
}

/// `bpf_skb_adjust_room(context, difference, mode, flags)`: adds or removes bytes after the
/// link header or the network header; for `sk_skb` programs at the start of the data
/// (`sk_skb_adjust_room`).
pub fn adjust_room(call: &mut Call<'_>) -> Returned {
    let (difference, mode, flags) = (call.arg_i32(2), call.arg_u32(3), call.arg(4));
    let mut skb = Skb::of(call)?;
    let done = match skb.prog_type {
        crate::spec::ProgType::SkSkb => stream_room(&mut skb, difference, mode, flags),
        _ => packet_room(&mut skb, difference, mode, flags),
    };
    returned(skb, done)
}

fn stream_room(skb: &mut Skb<'_>, difference: i32, mode: u32, flags: u64) -> Done {
    let len = difference.unsigned_abs();
    if flags != 0 || mode != 0 {
        return Err(Errno::EINVAL);
    }
    if len > MAX_ROOM {
        return Err(Errno::EFAULT);
    }
    let len = len as usize;
    let fits = match difference < 0 {
        true => skb.pull(len),
        false => skb.push(len) && skb.write(0, &vec![0; len]),
    };
    if fits { Ok(()) } else { Err(Errno::ENOMEM) }
}

fn packet_room(skb: &mut Skb<'_>, difference: i32, mode: u32, flags: u64) -> Done {
    const NET: u32 = 0;
    const MAC: u32 = 1;
    let shrinks = difference < 0;
    let len = difference.unsigned_abs();
    if flags & !room::ALL != 0 {
        return Err(Errno::EINVAL);
    }
    if len > MAX_ROOM {
        return Err(Errno::EFAULT);
    }
    let len = len as usize;
    let header = match skb.protocol() {
        IPV4 => IPV4_HEADER,
        IPV6 => IPV6_HEADER,
        _ => return Err(Errno::ENOTSUPP),
    };
    let off = match mode {
        NET => skb.link_header_len() + header,
        MAC => skb.link_header_len(),
        _ => return Err(Errno::ENOTSUPP),
    };
    let least = match flags & room::DECAP_L3 {
        0 => header,
        _ if !shrinks => return Err(Errno::EINVAL),
        room::DECAP_L3_IPV4 => IPV4_HEADER,
        room::DECAP_L3_IPV6 => IPV6_HEADER,
        _ => return Err(Errno::EINVAL),
    };
    let after_link = skb.end.saturating_sub(skb.headers.network);
    let too_short = len >= after_link || after_link - len < least;
    let too_long = skb.len() + len > MAX_GROWN && !skb.is_gso();
    if if shrinks { too_short } else { too_long } {
        return Err(Errno::ENOTSUPP);
    }
    match shrinks {
        true => shrink(skb, off, len, flags)?,
        false => grow(skb, off, len, flags)?,
    }
    if flags & room::NO_CSUM_RESET == 0 {
        skb.reset_unnecessary();
    }
    Ok(())
}

/// Adds bytes (`bpf_skb_net_grow`). A GSO packet may be UDP or TCP: the test's fields don't
/// say which, so the rule for TCP applies.
fn grow(skb: &mut Skb<'_>, off: usize, len: usize, flags: u64) -> Done {
    let encapsulates = flags & room::ENCAP_L3 != 0;
    let inner_link = usize::try_from(flags >> room::ENCAP_L2_SHIFT).unwrap_or(0);
    let both = |pair: u64| flags & pair == pair;
    if encapsulates {
        if both(room::ENCAP_L3)
            || both(room::ENCAP_L4_GRE | room::ENCAP_L4_UDP)
            || both(room::ENCAP_L2_ETH) && inner_link < ETH_HLEN
        {
            return Err(Errno::EINVAL);
        }
        if skb.headers.is_encapsulated {
            return Err(Errno::EALREADY);
        }
        if inner_link > len {
            return Err(Errno::EINVAL);
        }
    }
    let link = skb.link_header_len();
    push_header(skb, off, len)?;
    if encapsulates {
        skb.headers.is_encapsulated = true;
        skb.headers.network = skb.data + link;
        let outer = match flags & room::ENCAP_L3_IPV6 {
            0 => (IPV4, IPV4_HEADER),
            _ => (IPV6, IPV6_HEADER),
        };
        if flags & (room::ENCAP_L4_GRE | room::ENCAP_L4_UDP) != 0 {
            skb.headers.transport = Some(skb.data + link + outer.1);
        }
        skb.set_protocol(outer.0);
    }
    if skb.is_gso() {
        skb.set_field("gso_segs", 0);
        if flags & room::FIXED_GSO == 0 {
            let size = (skb.field("gso_size") as usize).saturating_sub(len);
            skb.set_field("gso_size", size as u64);
        }
    }
    Ok(())
}

fn shrink(skb: &mut Skb<'_>, off: usize, len: usize, flags: u64) -> Done {
    if flags & !(room::FIXED_GSO | room::DECAP_L3 | room::NO_CSUM_RESET) != 0 {
        return Err(Errno::EINVAL);
    }
    pop_header(skb, off, len)?;
    match (skb.protocol(), flags & room::DECAP_L3) {
        (IPV4, room::DECAP_L3_IPV6) => skb.set_protocol(IPV6),
        (IPV6, room::DECAP_L3_IPV4) => skb.set_protocol(IPV4),
        _ => {}
    }
    if skb.is_gso() {
        skb.set_field("gso_segs", 0);
        if flags & room::FIXED_GSO == 0 {
            skb.set_field("gso_size", u64::from(skb.field("gso_size")) + len as u64);
        }
    }
    Ok(())
}
