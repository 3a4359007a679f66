//! Kernel data outside the context that helpers read and change: what `sk_buff`,
//! `bpf_sysctl_kern`, `bpf_sock_ops_kern` and the like hold besides the fields that programs
//! see.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};

use crate::vm::world::SocketId;

/// Kernel data of an event outside its context, before and after programs ran.
///
/// A test sets it before the event fires ([`Event::with`](super::Event::with)) and reads
/// it afterwards ([`Outcome::kern`](crate::vm::Outcome::kern)).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kern {
    /// The event's socket: `sk` of the context. If `None`, program types whose context always
    /// has a socket get one built from the context's fields.
    pub socket: Option<SocketId>,
    /// The state of the packet's checksum.
    pub checksum: Checksum,
    /// The tunnel that a packet came through or will be sent through
    /// (`bpf_skb_get_tunnel_key`, `bpf_skb_set_tunnel_key`).
    pub tunnel: Option<Tunnel>,
    /// IPsec states of a packet, outermost first (`bpf_skb_get_xfrm_state`).
    pub xfrm: Vec<XfrmState>,
    /// Realm of the packet's route (`bpf_get_route_realm`).
    pub realm: u32,
    /// Whether a tc program runs at ingress (`skb->tc_at_ingress`); false in a test run.
    pub at_ingress: bool,
    /// Return value for a cgroup hook's caller (`bpf_get_retval`, `bpf_set_retval`), negative
    /// for an errno.
    pub retval: i32,
    /// The sysctl that is read or written.
    pub sysctl: Option<Sysctl>,
    /// The IP and TCP headers of the SYN that opened a socket operation's connection, as
    /// `TCP_SAVED_SYN` has them.
    pub syn: Vec<u8>,
    /// Bytes of TCP header options that a socket operation may still reserve or write
    /// (`remaining_opt_len`); at most 40.
    pub option_room: u32,
    /// Value passed to `bpf_msg_apply_bytes`.
    pub apply_bytes: u32,
    /// Value passed to `bpf_msg_cork_bytes`.
    pub cork_bytes: u32,
    /// The address that `bpf_bind` bound the socket to.
    pub bound: Option<SocketAddr>,
    /// The state of an IPv6 packet's segment routing header.
    pub segments: Segments,
}

impl Kern {
    /// The default values.
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

/// A [`Kern`] that is allocated on the first write. Most events have none, and millions of
/// events are placed.
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

/// Unwritten equals default.
impl PartialEq for KernSide {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for KernSide {}

/// State of a packet's checksum (`skb->ip_summed`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checksum {
    /// Unknown (`CHECKSUM_NONE`), as in a test run.
    #[default]
    None,
    /// Verified (`CHECKSUM_UNNECESSARY`, `csum_level`).
    Unnecessary {
        /// Number of further verified checksums in inner headers, 0 to 3.
        level: u8,
    },
    /// The sum of everything from the network header on (`CHECKSUM_COMPLETE`). `None`:
    /// computed when the packet is placed.
    Complete(Option<u32>),
    /// The device has to complete the checksum (`CHECKSUM_PARTIAL`).
    Partial,
}

/// State of a segment routing header (`struct seg6_bpf_srh_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Segments {
    /// Unknown: the first helper that needs it parses the packet.
    #[default]
    Unseen,
    /// The packet has none.
    None,
    /// The packet has one.
    Header {
        /// Its length after the first 8 bytes.
        len: usize,
        /// Whether it is valid; checked again after a program changed it.
        valid: bool,
    },
}

/// A tunnel that a packet came through or will be sent through (`struct ip_tunnel_info`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Tunnel {
    /// Tunnel ID: VNI, key.
    pub id: u64,
    /// TOS of the outer header.
    pub tos: u8,
    /// TTL of the outer header.
    pub ttl: u8,
    /// Flow label of the outer header (IPv6).
    pub label: u32,
    /// `TUNNEL_*` as in a packet header (`TUNNEL_CSUM` is 1, `TUNNEL_KEY` 4).
    pub flags: u16,
    /// Whether the outer header is IPv6.
    pub is_ipv6: bool,
    /// The outer source address in network order; IPv4 takes the first four bytes.
    pub source: [u8; 16],
    /// The outer destination address.
    pub destination: [u8; 16],
    /// The tunnel's options, as in a packet header.
    pub options: Vec<u8>,
    /// Whether a program set the tunnel for sending, with `bpf_skb_set_tunnel_key`.
    pub is_outgoing: bool,
}

/// An IPsec state of a packet (`struct xfrm_state`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct XfrmState {
    /// Request ID.
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
#[non_exhaustive]
pub struct Sysctl {
    /// Its path below `/proc/sys`: `net/ipv4/tcp_mem`.
    pub name: String,
    /// Its current value, with the newline that a read returns.
    pub current: Vec<u8>,
    /// The value being written; `None` for a read.
    pub new: Option<Vec<u8>>,
    /// The value that a program set instead (`bpf_sysctl_set_new_value`).
    pub replaced: Option<Vec<u8>>,
}

impl Sysctl {
    /// A sysctl that is read.
    pub fn read(name: impl Into<String>, current: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.into(),
            current: current.into(),
            ..Self::default()
        }
    }

    /// A sysctl that is written.
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

/// Offsets of a packet's headers, in bytes from the start of its block, and whether it is
/// encapsulated (`struct sk_buff`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Headers {
    /// The link-layer header.
    pub mac: usize,
    /// The network header.
    pub network: usize,
    /// The transport header; `None` until its offset is set.
    pub transport: Option<usize>,
    /// Whether `bpf_skb_adjust_room` added an outer header.
    pub is_encapsulated: bool,
}
