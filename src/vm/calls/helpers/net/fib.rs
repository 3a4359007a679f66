//! `bpf_fib_lookup` and `bpf_check_mtu` (`net/core/filter.c`), on the mocked routes,
//! neighbours and devices.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::super::packet;
use super::skb::Skb;
use crate::spec::ProgType;
use crate::util::Errno;
use crate::vm::machine::{Call, HelperProblem, Returned};
use crate::vm::world::{AF_INET, AF_INET6, MAIN_TABLE, Net, RouteKind, Wanted, bytes_of};

/// Result of a lookup (`BPF_FIB_LKUP_RET_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Success = 0,
    Blackhole = 1,
    Unreachable = 2,
    Prohibit = 3,
    NotForwarded = 4,
    ForwardingDisabled = 5,
    UnsupportedTunnel = 6,
    NoNeighbour = 7,
    FragmentationNeeded = 8,
    NoSourceAddress = 9,
}

/// Flags (`BPF_FIB_LOOKUP_*`).
mod flag {
    pub const DIRECT: u32 = 1 << 0;
    pub const OUTPUT: u32 = 1 << 1;
    pub const SKIP_NEIGH: u32 = 1 << 2;
    pub const TBID: u32 = 1 << 3;
    pub const SRC: u32 = 1 << 4;
    pub const MARK: u32 = 1 << 5;
    pub const ALL: u32 = DIRECT | OUTPUT | SKIP_NEIGH | TBID | SRC | MARK;
}

/// `struct bpf_fib_lookup`.
#[derive(Debug, Clone)]
struct Parameters([u8; Self::SIZE]);

impl Parameters {
    const SIZE: usize = 64;
    const FAMILY: usize = 0;
    /// Input: the packet's length. Output: the MTU.
    const TOTAL_LEN: usize = 6;
    const IFINDEX: usize = 8;
    /// Input: flow information. Output: the route's metric.
    const METRIC: usize = 12;
    const SOURCE: usize = 16;
    const DESTINATION: usize = 32;
    /// Input: the table's ID. Output: a VLAN tag, always 0.
    const TABLE: usize = 48;
    /// Input: the mark. Output: start of the hardware addresses.
    const MARK: usize = 52;
    const SOURCE_MAC: usize = 52;
    const DESTINATION_MAC: usize = 58;

    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let bytes = self
            .0
            .get(at..at + N)
            .and_then(|bytes| bytes.try_into().ok());
        bytes.unwrap_or([0; N])
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        let to = self.0.iter_mut().skip(at);
        to.zip(bytes).for_each(|(to, from)| *to = *from);
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.bytes(at))
    }

    fn total_len(&self) -> u32 {
        u16::from_ne_bytes(self.bytes(Self::TOTAL_LEN)).into()
    }

    fn put_mtu(&mut self, mtu: u32) {
        let [low, high, ..] = mtu.to_le_bytes();
        self.put(
            Self::TOTAL_LEN,
            &u16::from_le_bytes([low, high]).to_ne_bytes(),
        );
    }

    fn address(&self, at: usize, is_ipv4: bool) -> IpAddr {
        match is_ipv4 {
            true => Ipv4Addr::from(self.bytes::<4>(at)).into(),
            false => Ipv6Addr::from(self.bytes::<16>(at)).into(),
        }
    }

    /// Stores an address in the field for its family; an IPv4 address takes four bytes.
    fn put_address(&mut self, at: usize, address: IpAddr) {
        let bytes = bytes_of(address);
        let len = if address.is_ipv4() { 4 } else { 16 };
        self.put(at, bytes.get(..len).unwrap_or_default());
    }
}

/// `bpf_skb_fib_lookup`, `bpf_xdp_fib_lookup(context, parameters, their size, flags)`.
pub fn fib_lookup(call: &mut Call<'_>) -> Returned {
    let (size, flags) = (call.arg_i32(3), call.arg_u32(4));
    let known = usize::try_from(size).is_ok_and(|size| size >= Parameters::SIZE);
    if !known || flags & !flag::ALL != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let bytes = call.read(2, Parameters::SIZE)?;
    let Ok(bytes) = <[u8; Parameters::SIZE]>::try_from(bytes.as_slice()) else {
        return Ok(Errno::EINVAL.to_ret());
    };
    let mut parameters = Parameters(bytes);
    let is_xdp = packet::prog_type(call) == Some(ProgType::Xdp);
    let checks = is_xdp || parameters.total_len() != 0;
    let is_ipv4 = match u32::from(parameters.0[Parameters::FAMILY]) {
        AF_INET => true,
        AF_INET6 => false,
        _ => return Ok(Errno::EAFNOSUPPORT.to_ret()),
    };
    let len = if is_xdp { 0 } else { packet_len(call)? };
    let net = call.machine.world.net();
    let found = find(net, &mut parameters, flags, checks, is_ipv4);
    let found = match found {
        Ok(Found::Success) if !checks => Ok(against_device(net, &mut parameters, len)),
        found => found,
    };
    call.write(2, &parameters.0)?;
    Ok(found.map_or_else(Errno::to_ret, |found| found as u64))
}

/// The packet's length for the MTU check; 0 for GSO packets.
fn packet_len(call: &mut Call<'_>) -> Result<u32, HelperProblem> {
    let skb = Skb::of(call)?;
    // GSO packets are segmented to fit.
    let len = if skb.is_gso() { 0 } else { skb.len() };
    Ok(u32::try_from(len).unwrap_or(u32::MAX))
}

/// If the program gave no length, compares the actual length with the device's MTU and a VLAN
/// tag (`is_skb_forwardable`).
fn against_device(net: &Net, parameters: &mut Parameters, len: u32) -> Found {
    const TAG: u32 = 4;
    let Some(device) = net.find_device(parameters.word(Parameters::IFINDEX)) else {
        return Found::Success;
    };
    let (mtu, with_link) = device.mtus();
    parameters.put_mtu(mtu);
    match len > with_link + TAG {
        true => Found::FragmentationNeeded,
        false => Found::Success,
    }
}

fn find(
    net: &Net,
    parameters: &mut Parameters,
    flags: u32,
    checks: bool,
    is_ipv4: bool,
) -> Result<Found, Errno> {
    let has = |flag: u32| flags & flag != 0;
    let from = parameters.address(Parameters::SOURCE, is_ipv4);
    let to = parameters.address(Parameters::DESTINATION, is_ipv4);
    if is_link_local(from) || is_link_local(to) {
        return Ok(Found::NotForwarded);
    }
    let index = parameters.word(Parameters::IFINDEX);
    let device = net.find_device(index).ok_or(Errno::ENODEV)?;
    if !device.is_forwarding() {
        return Ok(Found::ForwardingDisabled);
    }
    let table = match has(flag::DIRECT) {
        true if has(flag::TBID) => {
            let table = parameters.word(Parameters::TABLE);
            parameters.put(Parameters::TABLE, &[0; 4]);
            Some(table)
        }
        true => Some(MAIN_TABLE),
        false => None,
    };
    let wanted = Wanted {
        to,
        table,
        mark: match has(flag::MARK) && !has(flag::DIRECT) {
            true => parameters.word(Parameters::MARK),
            false => 0,
        },
        device: has(flag::OUTPUT).then_some(index),
    };
    let Some((route, out)) = net.find_route(&wanted) else {
        return Ok(Found::NotForwarded);
    };
    match route.route_kind() {
        RouteKind::Unicast => {}
        RouteKind::Local => return Ok(Found::NotForwarded),
        RouteKind::Blackhole => return Ok(Found::Blackhole),
        RouteKind::Unreachable => return Ok(Found::Unreachable),
        RouteKind::Prohibit => return Ok(Found::Prohibit),
    }
    let device = net.find_device(out).ok_or(Errno::ENODEV)?;
    let mtu = route.path_mtu().unwrap_or(device.mtus().0);
    if checks && parameters.total_len() > mtu {
        parameters.put_mtu(mtu);
        return Ok(Found::FragmentationNeeded);
    }
    if route.is_encapsulated() {
        return Ok(Found::UnsupportedTunnel);
    }
    parameters.put(Parameters::METRIC, &route.priority().to_ne_bytes());
    parameters.put(Parameters::IFINDEX, &out.to_ne_bytes());
    if has(flag::SRC) {
        match route.preferred_source().or(device.address_like(to)) {
            Some(source) => parameters.put_address(Parameters::SOURCE, source),
            None if is_ipv4 => parameters.put_address(Parameters::SOURCE, from_nowhere()),
            None => return Ok(Found::NoSourceAddress),
        }
    }
    let hop = route.gateway().unwrap_or(to);
    parameters.put_address(Parameters::DESTINATION, hop);
    if is_ipv4 && hop.is_ipv6() {
        parameters.put(Parameters::FAMILY, &[AF_INET6.to_le_bytes()[0]]);
    }
    if !has(flag::SKIP_NEIGH) {
        let Some(mac) = net.find_neighbour(hop, out) else {
            return Ok(Found::NoNeighbour);
        };
        parameters.put(Parameters::DESTINATION_MAC, &mac);
        parameters.put(Parameters::SOURCE_MAC, &device.mac_bytes());
    }
    parameters.put(Parameters::TABLE, &[0; 4]);
    if checks {
        parameters.put_mtu(mtu);
    }
    Ok(Found::Success)
}

/// The source address if a device has none.
fn from_nowhere() -> IpAddr {
    Ipv4Addr::UNSPECIFIED.into()
}

/// IPv6 addresses that are never forwarded (`rt6_need_strict`): link-local, multicast and
/// loopback.
fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => {
            address.is_unicast_link_local() || address.is_multicast() || address.is_loopback()
        }
    }
}

/// `bpf_skb_check_mtu`, `bpf_xdp_check_mtu(context, device or 0 for the packet's, length in
/// and MTU out, difference, flags)`.
pub fn check_mtu(call: &mut Call<'_>) -> Returned {
    const SEGMENTS: u64 = 1;
    const FRAGMENTATION_NEEDED: u64 = 1;
    let (index, difference, flags) = (call.arg_u32(2), call.arg_i32(4), call.arg(5));
    let given = call.read(3, 4)?;
    let given = given
        .first_chunk()
        .map_or(0, |bytes| u32::from_ne_bytes(*bytes));
    let is_xdp = packet::prog_type(call) == Some(ProgType::Xdp);
    let unknown = match is_xdp {
        true => flags != 0,
        false => flags & !SEGMENTS != 0 || flags & SEGMENTS != 0 && (difference != 0 || given != 0),
    };
    if unknown {
        return Ok(Errno::EINVAL.to_ret());
    }
    let name = if is_xdp { "ingress_ifindex" } else { "ifindex" };
    let own = packet::field(call, name).and_then(|(block, at)| block.load(at, 4));
    let own = own.and_then(|own| u32::try_from(own).ok()).unwrap_or(0);
    let (len, is_gso) = match is_xdp {
        true => (packet::of(call)?.linear_len(), false),
        false => {
            let skb = Skb::of(call)?;
            (skb.len(), skb.is_gso())
        }
    };
    let net = call.machine.world.net();
    let Some(device) = net.find_device(if index == 0 { own } else { index }) else {
        return Ok(Errno::ENODEV.to_ret());
    };
    let (mtu, with_link) = device.mtus();
    let len = match given {
        0 => u32::try_from(len).unwrap_or(u32::MAX),
        given => given.wrapping_add(with_link - mtu),
    };
    // The kernel adds signed 32-bit numbers.
    let len = len.cast_signed().wrapping_add(difference);
    let fits = len <= with_link.cast_signed();
    if !fits && is_gso && flags & SEGMENTS != 0 {
        // The kernel needs the offset of the transport header, which is not set.
        return Ok(Errno::EINVAL.to_ret());
    }
    call.write(3, &mtu.to_ne_bytes())?;
    Ok(match fits || is_gso {
        true => 0,
        false => FRAGMENTATION_NEEDED,
    })
}
