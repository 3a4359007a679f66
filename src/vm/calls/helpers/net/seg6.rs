//! Segment routing: helpers of `lwt_seg6local` programs, and the headers that
//! `bpf_lwt_push_encap` writes (`net/core/filter.c`, `net/ipv6/seg6_iptunnel.c`,
//! `net/ipv6/seg6_local.c`).

use std::net::Ipv6Addr;

use super::skb::{IPV6, Skb};
use crate::util::Errno;
use crate::vm::events::Segments;
use crate::vm::machine::{Call, HelperProblem, Returned};
use crate::vm::world::{MAIN_TABLE, RouteKind, Wanted};

/// Next-header values: routing, IPv6, no next header.
const ROUTING: u8 = 43;
const INNER_IPV6: u8 = 41;
const NONE: u8 = 59;
/// Extension headers: hop-by-hop and destination options, fragment, authentication.
const HOP_OPTIONS: u8 = 0;
const DESTINATION_OPTIONS: u8 = 60;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
/// Bytes of an IPv6 header.
const IPV6_HEADER: usize = 40;
/// Bytes of a segment routing header before its segments.
const SRH: usize = 8;
/// `IPV6_SRCRT_TYPE_4`.
const TYPE: u8 = 4;

/// Fields of a segment routing header.
mod field {
    pub const NEXT: usize = 0;
    pub const LEN: usize = 1;
    pub const TYPE: usize = 2;
    pub const LEFT: usize = 3;
    pub const FIRST: usize = 4;
    pub const FLAGS: usize = 5;
}

fn byte(bytes: &[u8], at: usize) -> usize {
    bytes.get(at).copied().unwrap_or(0).into()
}

/// Whether a segment routing header is valid (`seg6_validate_srh`). A reduced header may lack
/// the first segment.
fn is_valid(header: &[u8], reduced: bool) -> bool {
    let (left, first) = (byte(header, field::LEFT), byte(header, field::FIRST));
    let len = byte(header, field::LEN);
    if header.len() < SRH || byte(header, field::TYPE) != usize::from(TYPE) {
        return false;
    }
    if (len + 1) * 8 != header.len() {
        return false;
    }
    let fits = (reduced || left <= first) && first < len / 2 && left <= first + 1;
    let mut at = SRH + (first + 1) * 16;
    if !fits || at > header.len() {
        return false;
    }
    // The segments are followed by TLVs.
    while at < header.len() {
        if header.len() - at < 2 {
            return false;
        }
        at += 2 + byte(header, at + 1);
    }
    at == header.len()
}

/// Offset of the first header of this kind in the packet (`ipv6_find_hdr`).
fn find(skb: &Skb<'_>, wanted: u8) -> Result<usize, Errno> {
    let network = skb.headers.network.saturating_sub(skb.data);
    let ip = skb.read(network, IPV6_HEADER).ok_or(Errno::EBADMSG)?;
    let mut next = ip.get(6).copied().unwrap_or(NONE);
    let mut at = network + IPV6_HEADER;
    loop {
        let is_extension = matches!(
            next,
            HOP_OPTIONS | ROUTING | FRAGMENT | AUTHENTICATION | NONE | DESTINATION_OPTIONS
        );
        if !is_extension || next == NONE {
            return if next == wanted {
                Ok(at)
            } else {
                Err(Errno::ENOENT)
            };
        }
        let header = skb.read(at, 2).ok_or(Errno::EBADMSG)?;
        if next == wanted {
            return Ok(at);
        }
        let len = match next {
            FRAGMENT => 8,
            AUTHENTICATION => (byte(&header, 1) + 2) * 4,
            _ => (byte(&header, 1) + 1) * 8,
        };
        if at + len > skb.len() {
            return Err(Errno::EBADMSG);
        }
        next = header.first().copied().unwrap_or(NONE);
        at += len;
    }
}

/// The packet's segment routing header: length of segments and TLVs, and whether it is valid.
/// At program start it is: seg6local runs programs only on packets with a valid header.
fn segments(skb: &mut Skb<'_>) -> Option<(usize, bool)> {
    if skb.kern().segments == Segments::Unseen {
        update_state(skb);
    }
    match skb.kern().segments {
        Segments::Header { len, valid } => Some((len, valid)),
        Segments::Unseen | Segments::None => None,
    }
}

/// Parses the header (`bpf_update_srh_state`).
fn update_state(skb: &mut Skb<'_>) {
    let found = find(skb, ROUTING).ok().and_then(|at| skb.read(at, SRH));
    skb.kern().segments = match found {
        Some(header) if byte(&header, field::TYPE) == usize::from(TYPE) => Segments::Header {
            len: byte(&header, field::LEN) * 8,
            valid: true,
        },
        _ => Segments::None,
    };
}

/// Whether the packet has a valid header; a changed header is validated again
/// (`seg6_bpf_has_valid_srh`).
fn has_valid(skb: &mut Skb<'_>) -> bool {
    match segments(skb) {
        None => false,
        Some((_, true)) => true,
        Some((len, false)) => {
            let Ok(at) = find(skb, ROUTING) else {
                return false;
            };
            let Some(units) = u8::try_from(len / 8).ok().filter(|_| len.is_multiple_of(8)) else {
                return false;
            };
            skb.write(at + field::LEN, &[units]);
            let valid = skb
                .read(at, len + SRH)
                .is_some_and(|header| is_valid(&header, true));
            if valid {
                skb.kern().segments = Segments::Header { len, valid };
            }
            valid
        }
    }
}

/// Sets the payload length in the IPv6 header.
fn put_payload_len(skb: &Skb<'_>, at: usize) {
    let len = skb.len().saturating_sub(at + IPV6_HEADER);
    let len = u16::try_from(len).unwrap_or(u16::MAX);
    skb.write(at + 4, &len.to_be_bytes());
}

/// Adds a segment routing header to the packet: after its IPv6 header (inline), or with a new
/// outer IPv6 header (`bpf_push_seg6_encap`).
pub fn push(skb: &mut Skb<'_>, inline: bool, header: &[u8]) -> Result<(), Errno> {
    if !is_valid(header, false) {
        return Err(Errno::EINVAL);
    }
    if inline && skb.protocol() != IPV6 {
        return Err(Errno::EBADMSG);
    }
    let network = skb.headers.network.saturating_sub(skb.data);
    let ip = skb.read(network, IPV6_HEADER);
    let outer = if inline { 0 } else { IPV6_HEADER };
    if network != 0 || inline && ip.is_none() || !skb.push(header.len() + outer) {
        return Err(Errno::ENOMEM);
    }
    skb.headers.network = skb.data;
    let ip = ip.unwrap_or_default();
    let mut srh = header.to_vec();
    let first = SRH + byte(header, field::FIRST) * 16;
    let segment = header.get(first..first + 16).unwrap_or_default().to_vec();
    let mut new = match inline {
        true => ip.clone(),
        // The traffic class is that of the inner header; the source is the device's address.
        false => {
            let mut new = vec![0; IPV6_HEADER];
            if skb.protocol() == IPV6 {
                new.iter_mut()
                    .zip(&ip)
                    .take(4)
                    .for_each(|(to, from)| *to = *from);
            }
            new.splice(0..1, [0x60 | byte(&new, 0).to_le_bytes()[0] & 0xf]);
            let hops = if skb.protocol() == IPV6 {
                ip.get(7).copied()
            } else {
                None
            };
            new.splice(7..8, [hops.unwrap_or(64)]);
            skb.headers.is_encapsulated = true;
            new
        }
    };
    let next = if inline {
        byte(&ip, 6).to_le_bytes()[0]
    } else {
        INNER_IPV6
    };
    srh.splice(field::NEXT..=field::NEXT, [next]);
    if inline {
        srh.splice(
            SRH..SRH + 16,
            ip.get(24..40).unwrap_or_default().iter().copied(),
        );
    }
    new.splice(6..7, [ROUTING]);
    new.splice(24..40, segment);
    skb.write(0, &new);
    skb.write(IPV6_HEADER, &srh);
    put_payload_len(skb, 0);
    skb.add_to_checksum(0, IPV6_HEADER + srh.len());
    skb.headers.transport = Some(skb.data + IPV6_HEADER);
    Ok(())
}

/// Looks up the next hop: returns 0, or the reason why there is none (`seg6_lookup_nexthop`).
pub fn next_hop(call: &mut Call<'_>, to: Option<Ipv6Addr>) -> Returned {
    look_up(call, to, None)
}

fn look_up(call: &mut Call<'_>, to: Option<Ipv6Addr>, table: Option<u32>) -> Returned {
    let destination = {
        let skb = Skb::of(call)?;
        let network = skb.headers.network.saturating_sub(skb.data);
        let bytes = skb.read(network + 24, 16).unwrap_or_default();
        <[u8; 16]>::try_from(bytes).map(Ipv6Addr::from)
    };
    let to = to.or(destination.ok()).unwrap_or(Ipv6Addr::UNSPECIFIED);
    let wanted = Wanted {
        to: to.into(),
        table,
        mark: 0,
        device: None,
    };
    let found = call.machine.world.net().find_route(&wanted);
    let errno = match found.map(|(route, _)| route.route_kind()) {
        Some(RouteKind::Unicast | RouteKind::Local) => return Ok(0),
        Some(RouteKind::Blackhole) => Errno::EINVAL,
        Some(RouteKind::Prohibit) => Errno::EACCES,
        Some(RouteKind::Unreachable) | None => Errno::ENETUNREACH,
    };
    Ok(errno.to_ret())
}

/// `bpf_lwt_seg6_store_bytes(context, offset, bytes, their size)`: writes the header's flags,
/// tag or TLVs.
pub fn store_bytes(call: &mut Call<'_>) -> Returned {
    let (at, len) = (call.size(2), call.size(4));
    let bytes = call.read(3, len)?;
    let mut skb = Skb::of(call)?;
    let (Some((behind, _)), Ok(header)) = (segments(&mut skb), find(&skb, ROUTING)) else {
        return Ok(Errno::EINVAL.to_ret());
    };
    let first = byte(&skb.read(header, SRH).unwrap_or_default(), field::FIRST);
    let values = header + (first + 1) * 16;
    let end = header + SRH + behind;
    if at >= values && at + len <= end {
        skb.kern().segments = Segments::Header {
            len: behind,
            valid: false,
        };
    } else if at < header + field::FLAGS || at + len > header + SRH {
        return Ok(Errno::EFAULT.to_ret());
    }
    Ok(match skb.write(at, &bytes) {
        true => 0,
        false => Errno::EFAULT.to_ret(),
    })
}

/// `bpf_lwt_seg6_adjust_srh(context, offset, difference)`: grows or shrinks the TLVs.
pub fn adjust(call: &mut Call<'_>) -> Returned {
    let (at, difference) = (call.size(2), call.arg_i32(3));
    let mut skb = Skb::of(call)?;
    let (Some((behind, _)), Ok(header)) = (segments(&mut skb), find(&skb, ROUTING)) else {
        return Ok(Errno::EINVAL.to_ret());
    };
    let first = byte(&skb.read(header, SRH).unwrap_or_default(), field::FIRST);
    let values = header + SRH + (first + 1) * 16;
    let end = header + SRH + behind;
    let len = difference.unsigned_abs() as usize;
    if !(values..=end).contains(&at) || difference < 0 && at + len > end {
        return Ok(Errno::EFAULT.to_ret());
    }
    let done = match difference > 0 {
        true => super::shape::push_header(&mut skb, at, len),
        false => super::shape::pop_header(&mut skb, at, len),
    };
    if let Err(errno) = done {
        return Ok(errno.to_ret());
    }
    put_payload_len(&skb, 0);
    let len = if difference > 0 {
        behind + len
    } else {
        behind - len
    };
    skb.kern().segments = Segments::Header { len, valid: false };
    skb.commit();
    Ok(0)
}

/// Actions (`SEG6_LOCAL_ACTION_*`).
const END_X: u32 = 2;
const END_T: u32 = 3;
const END_DT6: u32 = 7;
const END_B6: u32 = 9;
const END_B6_ENCAP: u32 = 10;

/// `bpf_lwt_seg6_action(context, action, parameter, its size)`.
pub fn action(call: &mut Call<'_>) -> Returned {
    let (action, size) = (call.arg_u32(2), call.size(4));
    let parameter = call.read(3, size)?.to_vec();
    let table = parameter
        .first_chunk()
        .map_or(0, |bytes| u32::from_ne_bytes(*bytes));
    let table = (table != 0).then_some(table).or(Some(MAIN_TABLE));
    match action {
        END_X | END_T | END_DT6 => {
            let valid = valid_now(call)?;
            let wanted = if action == END_X { 16 } else { 4 };
            if !valid {
                return Ok(Errno::EBADMSG.to_ret());
            }
            if size != wanted {
                return Ok(Errno::EINVAL.to_ret());
            }
        }
        END_B6 | END_B6_ENCAP => {
            let mut skb = Skb::of(call)?;
            let broken = segments(&mut skb).is_some() && !has_valid(&mut skb);
            let pushed = match broken {
                true => Err(Errno::EBADMSG),
                false => push(&mut skb, action == END_B6, &parameter),
            };
            if pushed.is_ok() {
                update_state(&mut skb);
            }
            skb.commit();
            return match pushed {
                Ok(()) => next_hop(call, None),
                Err(errno) => Ok(errno.to_ret()),
            };
        }
        _ => return Ok(Errno::EINVAL.to_ret()),
    }
    match action {
        END_X => {
            let to = <[u8; 16]>::try_from(parameter).unwrap_or_default();
            next_hop(call, Some(to.into()))
        }
        END_T => look_up(call, None, table),
        _ => {
            let mut skb = Skb::of(call)?;
            let Ok(at) = find(&skb, INNER_IPV6) else {
                return Ok(Errno::EBADMSG.to_ret());
            };
            skb.subtract_from_checksum(0, at);
            if !skb.pull(at) {
                return Ok(Errno::EBADMSG.to_ret());
            }
            skb.headers.network = skb.data;
            skb.headers.transport = Some(skb.data);
            skb.headers.is_encapsulated = false;
            update_state(&mut skb);
            skb.commit();
            look_up(call, None, table)
        }
    }
}

fn valid_now(call: &mut Call<'_>) -> Result<bool, HelperProblem> {
    let mut skb = Skb::of(call)?;
    Ok(has_valid(&mut skb))
}
