//! `bpf_lwt_push_encap`: adds the outer header of a lightweight tunnel
//! (`bpf_lwt_push_ip_encap`, `net/core/lwt_bpf.c`).

use super::seg6;
use super::skb::{IPV4, IPV6, Skb};
use crate::spec::ProgType;
use crate::util::Errno;
use crate::vm::events::checksum::{folded, partial};
use crate::vm::machine::{Call, Returned};

/// `BPF_LWT_ENCAP_SEG6`.
const SEG6: u32 = 0;
/// `BPF_LWT_ENCAP_SEG6_INLINE`.
const SEG6_INLINE: u32 = 1;
/// `BPF_LWT_ENCAP_IP`.
const IP: u32 = 2;
/// `LWT_BPF_MAX_HEADROOM`.
const MOST: usize = 256;
/// `IPPROTO_UDP`.
const UDP: u8 = 17;
/// Bytes of a UDP header.
const UDP_HEADER: usize = 8;

/// `bpf_lwt_in_push_encap`, `bpf_lwt_xmit_push_encap(context, type, header, its size)`.
pub fn push_encap(call: &mut Call<'_>) -> Returned {
    let (kind, size) = (call.arg_u32(2), call.size(4));
    let header = call.read(3, size)?.to_vec();
    let mut skb = Skb::of(call)?;
    let is_in = skb.prog_type == ProgType::LwtIn;
    match kind {
        SEG6 | SEG6_INLINE if is_in => {
            let done = seg6::push(&mut skb, kind == SEG6_INLINE, &header);
            skb.commit();
            match done {
                Ok(()) => seg6::next_hop(call, None),
                Err(errno) => Ok(errno.to_ret()),
            }
        }
        IP => {
            let done = push_ip(&mut skb, &header, is_in);
            skb.commit();
            Ok(done.map_or_else(Errno::to_ret, |()| 0))
        }
        _ => Ok(Errno::EINVAL.to_ret()),
    }
}

fn push_ip(skb: &mut Skb<'_>, header: &[u8], is_in: bool) -> Result<(), Errno> {
    let byte = |at: usize| header.get(at).copied().unwrap_or(0);
    if !(20..=MOST).contains(&header.len()) {
        return Err(Errno::EINVAL);
    }
    let (ip, protocol, network) = match byte(0) >> 4 {
        4 => (usize::from(byte(0) & 0xf) * 4, byte(9), IPV4),
        6 => (40, byte(6), IPV6),
        _ => return Err(Errno::EINVAL),
    };
    let is_udp = protocol == UDP;
    let needed = if is_udp { ip + UDP_HEADER } else { ip };
    if header.len() < needed {
        return Err(Errno::EINVAL);
    }
    if !skb.push(header.len()) {
        return Err(Errno::ENOMEM);
    }
    skb.write(0, header);
    if is_in {
        skb.add_to_checksum(0, header.len());
    }
    skb.headers.is_encapsulated = true;
    skb.headers.network = skb.data;
    if is_udp {
        skb.headers.transport = Some(skb.data + ip);
    }
    skb.clear_hash();
    skb.set_protocol(network);
    if network == IPV4 && header.get(10..12) == Some(&[0, 0]) {
        let sum = partial(header.get(..ip).unwrap_or_default(), 0);
        skb.write(10, &(!folded(sum)).to_le_bytes());
    }
    // The kernel allows only TCP GSO packets; here the type of a GSO packet is not known.
    if skb.is_gso() {
        return Err(Errno::ENOTSUPP);
    }
    Ok(())
}
