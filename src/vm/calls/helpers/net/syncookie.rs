//! SYN cookies (`net/ipv4/syncookies.c`, `net/ipv6/syncookies.c`): a connection's addresses,
//! ports and sequence number, the minute and the segment size, encoded in a 32-bit sequence
//! number.
//!
//! Cookies have the kernel's layout but another hash. The kernel uses SipHash with two secret
//! keys, chosen when the first cookie is made. Here it is the generator of all random numbers
//! ([`Random`]) with [`Net::secret`](crate::vm::world::Net::secret) as its seed, so a test
//! always gets the same cookie.

use super::socket;
use crate::util::Errno;
use crate::vm::machine::{Call, HelperProblem, Returned};
use crate::vm::world::{AF_INET, AF_INET6, Random, TCP};

/// Bits of a cookie below the minute counter (`COOKIEBITS`).
const BITS: u32 = 24;
/// These bits.
const MASK: u32 = (1 << BITS) - 1;
/// Minutes for which a cookie is valid (`MAX_SYNCOOKIE_AGE`).
const AGE: u32 = 2;
/// Nanoseconds per unit of the minute counter.
const MINUTE: u64 = 60_000_000_000;
/// Segment sizes that a cookie can encode.
const SIZES_V4: [u16; 4] = [536, 1300, 1440, 1460];
const SIZES_V6: [u16; 4] = [1220, 1440, 1452, 8940];
/// Header lengths in bytes.
const TCP_HEADER: usize = 20;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;

/// A family's segment sizes, and the default for a SYN without an MSS option.
struct Family {
    sizes: [u16; 4],
    default: u16,
}

const V4: Family = Family {
    sizes: SIZES_V4,
    default: 536,
};
const V6: Family = Family {
    sizes: SIZES_V6,
    // The minimum MTU without both headers.
    default: 1280 - 20 - 40,
};

/// A parsed TCP header.
struct Header {
    source: [u8; 2],
    destination: [u8; 2],
    sequence: u32,
    acknowledged: u32,
    len: usize,
    flags: u8,
}

/// Bits of [`Header::flags`].
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

impl Header {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<TCP_HEADER>()?;
        let [a, b, c, d, e @ .., _, _, _, _, _, _] = *header;
        let [s0, s1, s2, s3, k0, k1, k2, k3, offset, flags] = e;
        Some(Self {
            source: [a, b],
            destination: [c, d],
            sequence: u32::from_be_bytes([s0, s1, s2, s3]),
            acknowledged: u32::from_be_bytes([k0, k1, k2, k3]),
            len: usize::from(offset >> 4) * 4,
            flags,
        })
    }

    /// The subset of these flags that are set.
    const fn has(&self, flags: u8) -> u8 {
        self.flags & flags
    }
}

/// The addresses of an IP header, and its family.
fn addresses(ip: &[u8]) -> Option<(&[u8], &'static Family)> {
    match ip.first().map(|byte| byte >> 4) {
        Some(4) => Some((ip.get(12..IPV4_HEADER)?, &V4)),
        Some(6) => Some((ip.get(8..IPV6_HEADER)?, &V6)),
        _ => None,
    }
}

/// Makes and checks cookies.
struct SynCookies {
    secret: u64,
    /// Minutes since boot.
    minute: u32,
}

impl SynCookies {
    fn of(call: &mut Call<'_>) -> Self {
        let minute = call.machine.world.clock().monotonic_ns() / MINUTE;
        Self {
            secret: call.machine.world.net().secret(),
            minute: u32::try_from(minute & u64::from(u32::MAX)).unwrap_or(0),
        }
    }

    /// Hashes a connection; `way` selects one of two hashes (`cookie_hash`).
    fn mix(&self, addresses: &[u8], tcp: &Header, count: u32, way: u64) -> u32 {
        let ports = [tcp.source, tcp.destination].concat();
        let count = count.to_le_bytes();
        let bytes = addresses.iter().chain(&ports).chain(&count);
        let start = Random::new(self.secret ^ way).next_u64();
        let mixed = bytes.fold(start, |mixed, byte| {
            Random::new(mixed ^ u64::from(*byte)).next_u64()
        });
        u32::try_from(mixed >> 32).unwrap_or(0)
    }

    fn make(&self, addresses: &[u8], tcp: &Header, size: u32) -> u32 {
        let first = self.mix(addresses, tcp, 0, 0);
        let second = self.mix(addresses, tcp, self.minute, 1);
        first
            .wrapping_add(tcp.sequence)
            .wrapping_add(self.minute << BITS)
            .wrapping_add(second.wrapping_add(size) & MASK)
    }

    /// The index of the segment size in the cookie that an ACK returns; an arbitrary number
    /// for an invalid cookie.
    fn check(&self, addresses: &[u8], tcp: &Header) -> Option<u32> {
        let cookie = tcp.acknowledged.wrapping_sub(1);
        let first = self.mix(addresses, tcp, 0, 0);
        let sequence = tcp.sequence.wrapping_sub(1);
        let cookie = cookie.wrapping_sub(first.wrapping_add(sequence));
        let age = self.minute.wrapping_sub(cookie >> BITS) & (u32::MAX >> BITS);
        if age >= AGE {
            return None;
        }
        let second = self.mix(addresses, tcp, self.minute.wrapping_sub(age), 1);
        Some(cookie.wrapping_sub(second) & MASK)
    }
}

/// The segment size in a SYN's options (`tcp_parse_mss_option`).
fn named_size(tcp: &[u8]) -> Option<u16> {
    const SIZE: u8 = 2;
    let mut options = tcp.get(TCP_HEADER..)?;
    loop {
        let (&kind, rest) = options.split_first()?;
        match kind {
            0 => return None,
            1 => options = rest,
            _ => {
                let len = usize::from(*rest.first()?);
                let option = options.get(..len).filter(|_| len >= 2)?;
                if let (SIZE, &[_, 4, high, low]) = (kind, option) {
                    let size = u16::from_be_bytes([high, low]);
                    return (size != 0).then_some(size);
                }
                options = options.get(len..)?;
            }
        }
    }
}

/// A cookie for a SYN, with its segment size in the upper bits.
fn cookie(call: &mut Call<'_>, ip: &[u8], tcp: &[u8]) -> Result<u64, Errno> {
    let (addresses, family) = addresses(ip).ok_or(Errno::EPROTONOSUPPORT)?;
    let header = Header::parse(tcp).ok_or(Errno::EINVAL)?;
    let named = named_size(tcp).unwrap_or(family.default);
    let numbered = (0u32..).zip(family.sizes);
    let fitting = numbered.filter(|(number, size)| *number == 0 || named >= *size);
    let (number, size) = fitting.last().unwrap_or_default();
    let cookie = SynCookies::of(call).make(addresses, &header, number);
    Ok(u64::from(cookie) | u64::from(size) << 32)
}

/// Whether an ACK returns a valid cookie.
fn is_good(call: &mut Call<'_>, ip: &[u8], tcp: &[u8]) -> bool {
    let parts = addresses(ip).zip(Header::parse(tcp));
    let Some(((addresses, family), header)) = parts else {
        return false;
    };
    let number = SynCookies::of(call).check(addresses, &header);
    number.is_some_and(|number| (number as usize) < family.sizes.len())
}

/// `(IP header, TCP header, its size)`.
fn raw_generate(call: &mut Call<'_>, ip_len: usize) -> Returned {
    let ip = call.read(1, ip_len)?;
    let tcp = call.read(2, call.size(3))?;
    let header = Header::parse(&tcp).filter(|header| header.len == tcp.len());
    if header.is_none() {
        return Ok(Errno::EINVAL.to_ret());
    }
    let ip = of_version(&ip);
    Ok(cookie(call, &ip, &tcp).unwrap_or_else(Errno::to_ret))
}

/// These helpers ignore the header's version field and use the version in their name.
fn of_version(ip: &[u8]) -> Vec<u8> {
    let mut ip = ip.to_vec();
    let version = if ip.len() == IPV4_HEADER { 0x45 } else { 0x60 };
    if let Some(first) = ip.first_mut() {
        *first = version;
    }
    ip
}

/// `bpf_tcp_raw_gen_syncookie_ipv4(IPv4 header, TCP header, its size)`: a cookie for a SYN.
pub fn raw_generate_v4(call: &mut Call<'_>) -> Returned {
    raw_generate(call, IPV4_HEADER)
}

/// `bpf_tcp_raw_gen_syncookie_ipv6(IPv6 header, TCP header, its size)`: a cookie for a SYN.
pub fn raw_generate_v6(call: &mut Call<'_>) -> Returned {
    raw_generate(call, IPV6_HEADER)
}

fn raw_check(call: &mut Call<'_>, ip_len: usize) -> Returned {
    let ip = of_version(&call.read(1, ip_len)?);
    let tcp = call.read(2, TCP_HEADER)?;
    Ok(match is_good(call, &ip, &tcp) {
        true => 0,
        false => Errno::EACCES.to_ret(),
    })
}

/// `bpf_tcp_raw_check_syncookie_ipv4(IPv4 header, TCP header)`: checks the cookie in an ACK.
pub fn raw_check_v4(call: &mut Call<'_>) -> Returned {
    raw_check(call, IPV4_HEADER)
}

/// `bpf_tcp_raw_check_syncookie_ipv6(IPv6 header, TCP header)`: checks the cookie in an ACK.
pub fn raw_check_v6(call: &mut Call<'_>) -> Returned {
    raw_check(call, IPV6_HEADER)
}

/// IP and TCP header of a valid call of the two helpers on a listener.
type Headers = Result<(Vec<u8>, Vec<u8>), Errno>;

/// The headers in `(socket, IP header, its size, TCP header, its size)`.
fn headers(
    call: &mut Call<'_>,
    off: Errno,
    flags: impl Fn(&Header) -> Result<(), Errno>,
) -> Result<Headers, HelperProblem> {
    let (ip, tcp) = (call.read(2, call.size(3))?, call.read(4, call.size(5))?);
    let socket = socket::at(call, 1)?;
    let listens = call.machine.socket(socket).map(|socket| {
        (
            socket.is_listener() && socket.protocol == TCP,
            socket.family,
        )
    });
    let on = call.machine.world.net().has_syncookies();
    let headers = || {
        let header = Header::parse(&tcp).ok_or(Errno::EINVAL)?;
        let (true, family) = listens.ok_or(Errno::EINVAL)? else {
            return Err(Errno::EINVAL);
        };
        if !on {
            return Err(off);
        }
        flags(&header)?;
        if ip.len() < IPV4_HEADER {
            return Err(Errno::EINVAL);
        }
        // An IPv6 socket also accepts IPv4.
        match ip.first().map_or(0, |byte| byte >> 4) {
            4 if matches!(family, AF_INET | AF_INET6) => {}
            6 if ip.len() < IPV6_HEADER || family != AF_INET6 => return Err(Errno::EINVAL),
            6 => {}
            _ => return Err(Errno::EPROTONOSUPPORT),
        }
        Ok((ip.to_vec(), tcp.to_vec()))
    };
    Ok(headers())
}

/// `bpf_tcp_gen_syncookie`: a cookie for the SYN that a listener received.
pub fn generate(call: &mut Call<'_>) -> Returned {
    let size = call.size(5);
    let found = headers(call, Errno::ENOENT, |header| {
        let asks = header.has(SYN) != 0 && header.has(ACK | FIN | RST) == 0;
        if asks && header.len == size {
            Ok(())
        } else {
            Err(Errno::EINVAL)
        }
    })?;
    let made = match found {
        Ok((ip, tcp)) => cookie(call, &ip, &tcp),
        Err(errno) => Err(errno),
    };
    Ok(made.unwrap_or_else(Errno::to_ret))
}

/// `bpf_tcp_check_syncookie`: checks the cookie in the ACK that a listener received. (The
/// kernel checks only if its queue has overflowed recently.)
pub fn check(call: &mut Call<'_>) -> Returned {
    let found = headers(call, Errno::EINVAL, |header| {
        let answers = header.has(ACK) != 0 && header.has(RST | SYN) == 0;
        if answers { Ok(()) } else { Err(Errno::ENOENT) }
    })?;
    Ok(match found {
        Ok((ip, tcp)) if is_good(call, &ip, &tcp) => 0,
        Ok(_) => Errno::ENOENT.to_ret(),
        Err(errno) => errno.to_ret(),
    })
}
