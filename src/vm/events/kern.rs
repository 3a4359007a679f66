//! The kernel's side of a context: what `sk_buff`, `bpf_sysctl_kern`, `bpf_sock_ops_kern`
//! and their like hold beside the fields that programs see. Helpers read and change it.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};

use crate::vm::world::SocketId;

/// What an event brings along beside its context, and what programs made of it.
///
/// A test sets it before the event fires ([`Event::with`](super::Event::with)) and reads
/// it afterwards ([`Outcome::kern`](crate::vm::Outcome::kern)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kern {
    /// The socket that the event is about: `sk` of the context. Without one, types whose
    /// context always has a socket get one made up from their fields.
    pub socket: Option<SocketId>,
    /// What is known of a packet's checksum.
    pub checksum: Checksum,
    /// The tunnel that a packet came through, or shall go through
    /// (`bpf_skb_get_tunnel_key`, `bpf_skb_set_tunnel_key`).
    pub tunnel: Option<Tunnel>,
    /// Transformations that a packet went through, outermost first
    /// (`bpf_skb_get_xfrm_state`).
    pub xfrm: Vec<XfrmState>,
    /// Realm of the route that a packet takes (`bpf_get_route_realm`).
    pub realm: u32,
    /// Whether a tc program stands at ingress (`skb->tc_at_ingress`); a test run's does
    /// not.
    pub at_ingress: bool,
    /// What a cgroup hook's caller gets (`bpf_get_retval`, `bpf_set_retval`), negative
    /// for an errno.
    pub retval: i32,
    /// The sysctl that is read or written.
    pub sysctl: Option<Sysctl>,
    /// The headers of the SYN that a socket operation's connection began with: IP and
    /// TCP, as `TCP_SAVED_SYN` keeps them.
    pub syn: Vec<u8>,
    /// Bytes of TCP header options that a socket operation may still reserve or write
    /// (`remaining_opt_len`); at most 40.
    pub option_room: u32,
    /// What `bpf_msg_apply_bytes` asked for.
    pub apply_bytes: u32,
    /// What `bpf_msg_cork_bytes` asked for.
    pub cork_bytes: u32,
    /// The address that `bpf_bind` bound the socket to.
    pub bound: Option<SocketAddr>,
    /// What is known of an IPv6 packet's segment routing header.
    pub segments: Segments,
}

impl Kern {
    /// Nothing but the context.
    const NOTHING: Self = Self {
        socket: None,
        checksum: Checksum::None,
        tunnel: None,
        xfrm: Vec::new(),
        realm: 0,
        at_ingress: false,
        retval: 0,
        sysctl: None,
        syn: Vec::new(),
        option_room: 0,
        apply_bytes: 0,
        cork_bytes: 0,
        bound: None,
        segments: Segments::Unseen,
    };
}

impl Default for Kern {
    fn default() -> Self {
        Self::NOTHING
    }
}

/// A [`Kern`] that takes no memory until someone writes to it: most events have none, and
/// millions of them are placed.
#[derive(Debug, Clone, Default)]
pub struct KernSide(Option<Box<Kern>>);

impl Deref for KernSide {
    type Target = Kern;

    fn deref(&self) -> &Kern {
        static NOTHING: Kern = Kern::NOTHING;
        self.0.as_deref().unwrap_or(&NOTHING)
    }
}

impl DerefMut for KernSide {
    fn deref_mut(&mut self) -> &mut Kern {
        self.0.get_or_insert_default()
    }
}

/// One that was never written to is one that holds nothing.
impl PartialEq for KernSide {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for KernSide {}

/// What the kernel knows of a packet's checksum (`skb->ip_summed`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checksum {
    /// Nothing (`CHECKSUM_NONE`), as in a test run.
    #[default]
    None,
    /// It was found right, so many levels of encapsulation deep
    /// (`CHECKSUM_UNNECESSARY`, `csum_level`).
    Unnecessary {
        /// 0 to 3: checksums found right beyond the first.
        level: u8,
    },
    /// The sum of everything from the network header on (`CHECKSUM_COMPLETE`): `None`
    /// until the packet is placed, when it is computed.
    Complete(Option<u32>),
    /// The device is to add up what is behind the pseudo header (`CHECKSUM_PARTIAL`).
    Partial,
}

/// What is known of a segment routing header (`struct seg6_bpf_srh_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Segments {
    /// Nothing yet: the first helper that wants to know looks into the packet.
    #[default]
    Unseen,
    /// There is none.
    None,
    /// There is one.
    Header {
        /// Bytes of it behind its first 8.
        len: usize,
        /// Whether it makes sense, as far as is known: what a program changed is looked
        /// at again.
        valid: bool,
    },
}

/// A tunnel that a packet came through or goes through (`struct ip_tunnel_info`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tunnel {
    /// Its number: VNI, key.
    pub id: u64,
    /// The outer header's type of service.
    pub tos: u8,
    /// Its time to live.
    pub ttl: u8,
    /// Its flow label (IPv6).
    pub label: u32,
    /// `TUNNEL_*` as they stand in a header (`TUNNEL_CSUM` is 1, `TUNNEL_KEY` 4).
    pub flags: u16,
    /// Whether the outer header is IPv6.
    pub is_ipv6: bool,
    /// The outer source address in network order; IPv4 takes the first four bytes.
    pub source: [u8; 16],
    /// The outer destination address.
    pub destination: [u8; 16],
    /// The tunnel's options, as they stand in a header.
    pub options: Vec<u8>,
    /// Whether a program set it with `bpf_skb_set_tunnel_key`, for the way out.
    pub is_outgoing: bool,
}

/// A transformation that a packet went through (`struct xfrm_state`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct XfrmState {
    /// Number of the request.
    pub reqid: u32,
    /// Security parameter index in network order.
    pub spi: u32,
    /// `AF_INET` (2) or `AF_INET6` (10).
    pub family: u16,
    /// The source address in network order; IPv4 takes the first four bytes.
    pub source: [u8; 16],
}

/// A sysctl being read or written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sysctl {
    /// Its path below `/proc/sys`: `net/ipv4/tcp_mem`.
    pub name: String,
    /// Its value now, with the newline that reading it gives.
    pub current: Vec<u8>,
    /// What is being written, where it is written.
    pub new: Option<Vec<u8>>,
    /// What a program wants written instead (`bpf_sysctl_set_new_value`).
    pub replaced: Option<Vec<u8>>,
}

impl Sysctl {
    /// One that is read.
    pub fn read(name: impl Into<String>, current: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.into(),
            current: current.into(),
            ..Self::default()
        }
    }

    /// One that is written.
    pub fn write(
        name: impl Into<String>,
        current: impl Into<Vec<u8>>,
        new: impl Into<Vec<u8>>,
    ) -> Self {
        Self {
            new: Some(new.into()),
            ..Self::read(name, current)
        }
    }
}

/// Where the headers of a packet begin, in bytes from the start of its block, and
/// whether it is encapsulated already (`struct sk_buff`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Headers {
    /// The link layer's.
    pub mac: usize,
    /// The network layer's.
    pub network: usize,
    /// The transport layer's, once someone said where it is.
    pub transport: Option<usize>,
    /// Whether `bpf_skb_adjust_room` put an outer header before it.
    pub is_encapsulated: bool,
}
