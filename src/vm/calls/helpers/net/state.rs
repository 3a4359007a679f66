//! Helpers on kernel data of a packet: checksum, time stamp, congestion mark, route realm
//! (`net/core/filter.c`).

use super::super::checksum::add16;
use super::skb::{IPV4, IPV6, Skb};
use crate::util::Errno;
use crate::vm::events::checksum::add;
use crate::vm::events::{Checksum, ETH_HLEN};
use crate::vm::machine::{Call, Returned};

/// `bpf_csum_update(context, partial sum)`: adds to a complete checksum, if there is one.
pub fn csum_update(call: &mut Call<'_>) -> Returned {
    let part = call.arg_u32(2);
    let mut skb = Skb::of(call)?;
    Ok(match skb.kern().checksum {
        Checksum::Complete(Some(sum)) => {
            let sum = add(sum, part);
            skb.kern().checksum = Checksum::Complete(Some(sum));
            sum.into()
        }
        _ => Errno::ENOTSUPP.to_ret(),
    })
}

/// `bpf_csum_level(context, operation)`: reads or changes the number of verified checksums.
pub fn csum_level(call: &mut Call<'_>) -> Returned {
    const QUERY: u64 = 0;
    const INC: u64 = 1;
    const DEC: u64 = 2;
    const RESET: u64 = 3;
    /// `SKB_MAX_CSUM_LEVEL`.
    const MOST: u8 = 3;
    let what = call.arg(2);
    let mut skb = Skb::of(call)?;
    let known = skb.kern().checksum;
    let becomes = match (what, known) {
        (QUERY, Checksum::Unnecessary { level }) => return Ok(level.into()),
        (QUERY, _) => return Ok(Errno::EACCES.to_ret()),
        (INC, Checksum::Unnecessary { level }) => Checksum::Unnecessary {
            level: MOST.min(level + 1),
        },
        (INC, Checksum::None) => Checksum::Unnecessary { level: 0 },
        (DEC, Checksum::Unnecessary { level: 0 }) => Checksum::None,
        (DEC, Checksum::Unnecessary { level }) => Checksum::Unnecessary { level: level - 1 },
        (RESET, Checksum::Unnecessary { .. }) => Checksum::None,
        (INC | DEC | RESET, other) => other,
        _ => return Ok(Errno::EINVAL.to_ret()),
    };
    skb.kern().checksum = becomes;
    Ok(0)
}

/// `bpf_skb_set_tstamp(context, time, clock)`: sets the delivery time.
pub fn set_tstamp(call: &mut Call<'_>) -> Returned {
    // `BPF_SKB_CLOCK_…`; 0 is the real-time clock.
    const MONOTONIC: u32 = 1;
    const TAI: u32 = 2;
    let (time, clock) = (call.arg(2), call.arg_u32(3));
    let skb = Skb::of(call)?;
    if !matches!(skb.protocol(), IPV4 | IPV6) {
        return Ok(Errno::EOPNOTSUPP.to_ret());
    }
    if clock > TAI || matches!(clock, MONOTONIC | TAI) && time == 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    skb.set_field("tstamp", time);
    skb.set_field("tstamp_type", clock.into());
    Ok(0)
}

/// The protocol after VLAN tags in the packet (`skb_protocol`, `vlan_get_protocol`).
fn inner_protocol(skb: &Skb<'_>) -> u16 {
    let mut protocol = skb.protocol();
    let mut at = ETH_HLEN;
    while matches!(protocol, 0x8100 | 0x88a8) {
        match skb.read(at, 4).as_deref() {
            Some(&[_, _, high, low]) => protocol = u16::from_be_bytes([high, low]),
            _ => return 0,
        }
        at += 4;
    }
    protocol
}

/// `bpf_skb_ecn_set_ce(context)`: sets the ECN mark Congestion Experienced; returns 1 if it
/// is set.
pub fn ecn_set_ce(call: &mut Call<'_>) -> Returned {
    const CE: u8 = 3;
    let mut skb = Skb::of(call)?;
    let Some(at) = skb.headers.network.checked_sub(skb.data) else {
        return Ok(0);
    };
    let marked = match inner_protocol(&skb) {
        IPV4 => {
            let Some(header) = skb.read(at, 20) else {
                return Ok(0);
            };
            let (Some(&tos), Some(&[high, low])) = (header.get(1), header.get(10..12)) else {
                return Ok(0);
            };
            // 01, 10, 11 and 00 for a sender without ECN, ECT(1), ECT(0), CE.
            let ecn = (tos.wrapping_add(1)) & CE;
            if ecn & 2 == 0 {
                return Ok(u64::from(ecn == 0));
            }
            let check = u16::from_be_bytes([high, low]);
            let check = add16(check, 0xfffb + u16::from(ecn));
            skb.write(at + 1, &[tos | CE]) && skb.write(at + 10, &check.to_be_bytes())
        }
        IPV6 => {
            let header = skb.read(at, 40).unwrap_or_default();
            let Some(&from @ [a, b, c, d]) = header.first_chunk() else {
                return Ok(0);
            };
            // The traffic class spans the first two bytes.
            if b >> 4 & CE == 0 {
                return Ok(0);
            }
            let to = [a, b | CE << 4, c, d];
            let written = skb.write(at, &to);
            if let Checksum::Complete(Some(sum)) = skb.kern().checksum {
                let sum = add(add(sum, !u32::from_le_bytes(from)), u32::from_le_bytes(to));
                skb.kern().checksum = Checksum::Complete(Some(sum));
            }
            written
        }
        _ => false,
    };
    Ok(marked.into())
}

/// `bpf_get_route_realm(context)`: the realm of the packet's route.
pub fn get_route_realm(call: &mut Call<'_>) -> Returned {
    Ok(Skb::of(call)?.kern().realm.into())
}
