//! Helpers on a packet's tunnel and IPsec state (`net/core/filter.c`).

use super::skb::Skb;
use crate::util::Errno;
use crate::vm::events::Tunnel;
use crate::vm::machine::{Call, Returned};
use crate::vm::memory::AccessKind;

/// `sizeof(struct bpf_tunnel_key)`.
const KEY: usize = 44;
/// Former sizes of the structure: up to the remote IPv4 address; the flow label and its
/// extension; the local address.
const FORMER_V4: usize = 8;
const FORMER: [usize; 3] = [22, 24, 28];
/// `BPF_F_TUNINFO_IPV6`.
const IPV6: u64 = 1 << 0;
/// `BPF_F_ZERO_CSUM_TX`.
const ZERO_CSUM: u64 = 1 << 1;
/// `BPF_F_DONT_FRAGMENT`.
const DONT_FRAGMENT: u64 = 1 << 2;
/// `BPF_F_SEQ_NUMBER`.
const SEQ_NUMBER: u64 = 1 << 3;
/// `BPF_F_NO_TUNNEL_KEY`.
const NO_KEY: u64 = 1 << 4;
/// `BPF_F_TUNINFO_FLAGS`.
const WITH_FLAGS: u64 = 1 << 4;
/// `IP_TUNNEL_OPTS_MAX`.
const MOST_OPTIONS: usize = 255;

/// Bits of [`Tunnel::flags`] in the host's order (`__IP_TUNNEL_*_BIT`).
mod bit {
    pub const CSUM: u16 = 1 << 0;
    pub const KEY: u16 = 1 << 2;
    pub const SEQ: u16 = 1 << 3;
    pub const DONT_FRAGMENT: u16 = 1 << 8;
    pub const NOCACHE: u16 = 1 << 13;
    /// Options are present: all kinds of options.
    pub const OPTIONS: u16 = 1 << 11 | 1 << 12 | 1 << 14 | 1 << 15;
}

/// A tunnel address with IPv4 in host order, as in the structure.
fn in_host_order(address: [u8; 16]) -> [u8; 16] {
    let mut bytes = address;
    if let Some(first) = bytes.first_chunk_mut::<4>() {
        *first = u32::from_be_bytes(*first).to_ne_bytes();
    }
    bytes.iter_mut().skip(4).for_each(|byte| *byte = 0);
    bytes
}

/// The `struct bpf_tunnel_key` of a tunnel.
fn key(tunnel: &Tunnel, flags: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(KEY);
    let [id @ .., _, _, _, _] = tunnel.id.to_le_bytes();
    bytes.extend(u32::from_le_bytes(id).to_ne_bytes());
    let (source, destination, label) = match tunnel.is_ipv6 {
        true => (tunnel.source, tunnel.destination, tunnel.label),
        false => (
            in_host_order(tunnel.source),
            in_host_order(tunnel.destination),
            0,
        ),
    };
    bytes.extend(source);
    bytes.extend([tunnel.tos, tunnel.ttl]);
    let shown = if flags & WITH_FLAGS != 0 {
        tunnel.flags
    } else {
        0
    };
    bytes.extend(shown.to_be_bytes());
    bytes.extend(label.to_ne_bytes());
    bytes.extend(destination);
    bytes
}

/// `bpf_skb_get_tunnel_key(context, key, its size, flags)`: reads the outer header's data.
pub fn get_key(call: &mut Call<'_>) -> Returned {
    let (size, flags) = (call.size(3), call.arg(4));
    call.check(2, size, AccessKind::Write)?;
    let tunnel = Skb::of(call)?.kern().tunnel.clone();
    let known = flags & !(IPV6 | WITH_FLAGS) == 0;
    let found = match tunnel.filter(|_| known) {
        None => Err(Errno::EINVAL),
        Some(tunnel) if tunnel.is_ipv6 != (flags & IPV6 != 0) => Err(Errno::EPROTO),
        Some(tunnel) => match size {
            KEY => Ok(key(&tunnel, flags)),
            FORMER_V4 if tunnel.is_ipv6 => Err(Errno::EINVAL),
            FORMER_V4 => Ok(key(&tunnel, flags)),
            size if FORMER.contains(&size) => Ok(key(&tunnel, flags)),
            _ => Err(Errno::EINVAL),
        },
    };
    let (mut bytes, returned) = match found {
        Ok(bytes) => (bytes, 0),
        Err(errno) => (Vec::new(), errno.to_ret()),
    };
    bytes.resize(size, 0);
    call.write(2, &bytes)?;
    Ok(returned)
}

/// `bpf_skb_set_tunnel_key(context, key, its size, flags)`: sets the tunnel to send through.
pub fn set_key(call: &mut Call<'_>) -> Returned {
    const KNOWN: u64 = IPV6 | ZERO_CSUM | DONT_FRAGMENT | SEQ_NUMBER | NO_KEY;
    /// `IPV6_FLOWLABEL_MASK`.
    const LABEL: u32 = 0x000f_ffff;
    let (size, flags) = (call.size(3), call.arg(4));
    let mut from = call.read(2, size)?;
    let known_size = size == KEY || size == FORMER_V4 || FORMER.contains(&size);
    if flags & !KNOWN != 0 || !known_size {
        return Ok(Errno::EINVAL.to_ret());
    }
    from.resize(KEY, 0);
    let part = |at: usize| {
        let bytes = from
            .get(at..at + 16)
            .and_then(|bytes| bytes.try_into().ok());
        bytes.unwrap_or([0; 16])
    };
    let word = |at: usize| {
        let bytes = from.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        u32::from_ne_bytes(bytes.unwrap_or_default())
    };
    let is_ipv6 = flags & IPV6 != 0;
    let extension = from.get(22..24) != Some(&[0, 0]);
    if extension || !is_ipv6 && word(24) != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let address = |at| match is_ipv6 {
        true => part(at),
        false => in_host_order(part(at)),
    };
    let mut set = bit::NOCACHE;
    for (wanted, bit) in [
        (flags & DONT_FRAGMENT != 0, bit::DONT_FRAGMENT),
        (flags & ZERO_CSUM == 0, bit::CSUM),
        (flags & SEQ_NUMBER != 0, bit::SEQ),
        (flags & NO_KEY == 0, bit::KEY),
    ] {
        if wanted {
            set |= bit;
        }
    }
    let tunnel = Tunnel {
        id: word(0).into(),
        tos: from.get(20).copied().unwrap_or(0),
        ttl: from.get(21).copied().unwrap_or(0),
        label: if is_ipv6 { word(24) & LABEL } else { 0 },
        flags: set,
        is_ipv6,
        // The remote address is the destination.
        destination: address(4),
        source: address(28),
        options: Vec::new(),
        is_outgoing: true,
    };
    Skb::of(call)?.kern().tunnel = Some(tunnel);
    Ok(0)
}

/// `bpf_skb_get_tunnel_opt(context, options, their size)`: reads the outer header's options.
pub fn get_options(call: &mut Call<'_>) -> Returned {
    let size = call.size(3);
    call.check(2, size, AccessKind::Write)?;
    let tunnel = Skb::of(call)?.kern().tunnel.clone();
    let present = |tunnel: &Tunnel| !tunnel.options.is_empty() || tunnel.flags & bit::OPTIONS != 0;
    let found = match tunnel.filter(present).map(|tunnel| tunnel.options) {
        Some(options) if size < options.len() => Err(Errno::ENOMEM),
        Some(options) => Ok(options),
        None => Err(Errno::ENOENT),
    };
    let (mut bytes, returned) = match found {
        Ok(options) => {
            let len = options.len() as u64;
            (options, len)
        }
        Err(errno) => (Vec::new(), errno.to_ret()),
    };
    bytes.resize(size, 0);
    call.write(2, &bytes)?;
    Ok(returned)
}

/// `bpf_skb_set_tunnel_opt(context, options, their size)`: sets the options of the outgoing
/// tunnel.
pub fn set_options(call: &mut Call<'_>) -> Returned {
    let size = call.size(3);
    let options = call.read(2, size)?.to_vec();
    let mut skb = Skb::of(call)?;
    let outgoing = skb
        .kern()
        .tunnel
        .as_mut()
        .filter(|tunnel| tunnel.is_outgoing);
    Ok(match outgoing {
        Some(_) if !size.is_multiple_of(4) => Errno::EINVAL.to_ret(),
        Some(_) if size > MOST_OPTIONS => Errno::ENOMEM.to_ret(),
        Some(tunnel) => {
            tunnel.options = options;
            tunnel.flags |= bit::OPTIONS;
            0
        }
        None => Errno::EINVAL.to_ret(),
    })
}

/// `bpf_skb_get_xfrm_state(context, index, state, its size, flags)`: reads an IPsec state.
pub fn get_xfrm_state(call: &mut Call<'_>) -> Returned {
    /// `sizeof(struct bpf_xfrm_state)`.
    const SIZE: usize = 28;
    /// `AF_INET6`.
    const INET6: u16 = 10;
    let (index, size, flags) = (call.size(2), call.size(4), call.arg(5));
    call.check(3, size, AccessKind::Write)?;
    let state = Skb::of(call)?.kern().xfrm.get(index).cloned();
    let state = state.filter(|_| flags == 0 && size == SIZE);
    let (mut bytes, returned) = match state {
        Some(state) => {
            let mut bytes = Vec::with_capacity(SIZE);
            bytes.extend(state.reqid.to_ne_bytes());
            // In network order already.
            bytes.extend(state.spi.to_ne_bytes());
            bytes.extend(state.family.to_ne_bytes());
            bytes.extend([0; 2]);
            let len = if state.family == INET6 { 16 } else { 4 };
            bytes.extend(state.source.iter().take(len));
            (bytes, 0)
        }
        None => (Vec::new(), Errno::EINVAL.to_ret()),
    };
    bytes.resize(size, 0);
    call.write(3, &bytes)?;
    Ok(returned)
}
