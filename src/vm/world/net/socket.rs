//! Sockets of the mocked network.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use super::address;
use super::error::NetError;
use crate::spec::context::{Layout, Object};

/// `AF_INET`.
pub(in crate::vm) const AF_INET: u32 = 2;
/// `AF_INET6`.
pub(in crate::vm) const AF_INET6: u32 = 10;
/// `IPPROTO_TCP`.
pub(in crate::vm) const TCP: u32 = 6;
/// `IPPROTO_UDP`.
pub(in crate::vm) const UDP: u32 = 17;
/// `SOCK_STREAM`.
const SOCK_STREAM: u32 = 1;
/// `SOCK_DGRAM`.
const SOCK_DGRAM: u32 = 2;

/// Identifies a socket of the mocked network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketId(pub(super) u32);

/// The state of a socket (`BPF_TCP_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketState {
    /// `BPF_TCP_ESTABLISHED`; a connected datagram socket, too.
    Established = 1,
    /// `BPF_TCP_SYN_SENT`.
    SynSent = 2,
    /// `BPF_TCP_SYN_RECV`.
    SynRecv = 3,
    /// `BPF_TCP_FIN_WAIT1`.
    FinWait1 = 4,
    /// `BPF_TCP_FIN_WAIT2`.
    FinWait2 = 5,
    /// `BPF_TCP_TIME_WAIT`: not a full socket.
    TimeWait = 6,
    /// `BPF_TCP_CLOSE`; a datagram socket that is not connected.
    Close = 7,
    /// `BPF_TCP_CLOSE_WAIT`.
    CloseWait = 8,
    /// `BPF_TCP_LAST_ACK`.
    LastAck = 9,
    /// `BPF_TCP_LISTEN`.
    Listen = 10,
    /// `BPF_TCP_CLOSING`.
    Closing = 11,
    /// `BPF_TCP_NEW_SYN_RECV`: a request socket, not a full one.
    NewSynRecv = 12,
}

/// A cgroup and its ancestors: their ids, the root's first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestry(Vec<u64>);

impl Default for Ancestry {
    /// The root only, whose id is 1.
    fn default() -> Self {
        Self(vec![1])
    }
}

impl Ancestry {
    /// Ids from the root's to the cgroup's own.
    pub fn new(ids: impl Into<Vec<u64>>) -> Self {
        Self(ids.into())
    }

    /// The cgroup's own id; 0 if there is none.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.0.last().copied().unwrap_or(0)
    }

    /// Whether this id is the cgroup's or an ancestor's.
    #[must_use]
    pub fn has(&self, id: u64) -> bool {
        self.0.contains(&id)
    }

    /// The id of the ancestor at this level (the root is 0); 0 if the cgroup is not so deep.
    #[must_use]
    pub fn ancestor(&self, level: i32) -> u64 {
        let id = usize::try_from(level)
            .ok()
            .and_then(|level| self.0.get(level));
        id.copied().unwrap_or(0)
    }
}

/// A socket, with the contents of `struct sock` that programs see.
///
/// Created by [`Net::tcp`](super::Net::tcp), [`Net::udp`](super::Net::udp) or
/// [`Net::socket`](super::Net::socket).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Socket {
    id: SocketId,
    pub(in crate::vm) family: u32,
    pub(in crate::vm) kind: u32,
    pub(in crate::vm) protocol: u32,
    pub(in crate::vm) local: Option<SocketAddr>,
    pub(in crate::vm) remote: Option<SocketAddr>,
    pub(in crate::vm) state: u32,
    pub(in crate::vm) mark: u32,
    pub(in crate::vm) priority: u32,
    pub(in crate::vm) device: u32,
    pub(in crate::vm) rx_queue: i32,
    pub(in crate::vm) cookie: u64,
    pub(in crate::vm) uid: u32,
    pub(in crate::vm) classid: u32,
    pub(in crate::vm) cgroup: Ancestry,
    pub(in crate::vm) netns: Option<i32>,
    pub(in crate::vm) reuses_port: bool,
    pub(in crate::vm) callback_flags: u32,
    pub(in crate::vm) object: Option<u64>,
    /// `struct bpf_tcp_sock`, in the host's byte order.
    pub(in crate::vm) tcp: Vec<u8>,
    /// Options by level and name.
    pub(in crate::vm) options: BTreeMap<(i32, i32), Vec<u8>>,
}

impl Socket {
    pub(super) fn new(id: SocketId, cookie: u64, kind: u32, protocol: u32) -> Self {
        Self {
            id,
            family: AF_INET,
            kind,
            protocol,
            local: None,
            remote: None,
            state: SocketState::Close as u32,
            mark: 0,
            priority: 0,
            device: 0,
            rx_queue: -1,
            cookie,
            uid: 0,
            classid: 0,
            cgroup: Ancestry::default(),
            netns: None,
            reuses_port: false,
            callback_flags: 0,
            object: None,
            tcp: vec![0; tcp_layout().size as usize],
            options: BTreeMap::new(),
        }
    }

    pub(super) fn tcp(id: SocketId, cookie: u64) -> Self {
        Self::new(id, cookie, SOCK_STREAM, TCP)
    }

    /// A socket outside of the mocked network, for a single event.
    pub(in crate::vm) fn made_up() -> Self {
        Self {
            family: 0,
            ..Self::new(SocketId(u32::MAX), 0x1000, 0, 0)
        }
    }

    pub(super) fn udp(id: SocketId, cookie: u64) -> Self {
        Self::new(id, cookie, SOCK_DGRAM, UDP)
    }

    /// The socket's id in its network.
    #[must_use]
    pub const fn id(&self) -> SocketId {
        self.id
    }

    fn join(&mut self, ours: SocketAddr, other: Option<SocketAddr>) -> Result<(), NetError> {
        if let Some(other) = other.filter(|other| other.is_ipv4() != ours.is_ipv4()) {
            return Err(NetError::Families {
                one: other.to_string(),
                other: ours.to_string(),
            });
        }
        self.family = if ours.is_ipv4() { AF_INET } else { AF_INET6 };
        Ok(())
    }

    /// Sets the local address and port: `10.0.0.1:80`, `[::]:53`.
    ///
    /// # Errors
    /// [`NetError::Endpoint`], or [`NetError::Families`] if the remote address is of the other
    /// family.
    pub fn local(&mut self, local: &str) -> Result<&mut Self, NetError> {
        let local = address::endpoint(local)?;
        self.join(local, self.remote)?;
        self.local = Some(local);
        Ok(self)
    }

    /// Sets the remote address and port. A closed socket becomes established.
    ///
    /// # Errors
    /// As for [`local`](Self::local).
    pub fn remote(&mut self, remote: &str) -> Result<&mut Self, NetError> {
        let remote = address::endpoint(remote)?;
        self.join(remote, self.local)?;
        self.remote = Some(remote);
        if self.state == SocketState::Close as u32 {
            self.state = SocketState::Established as u32;
        }
        Ok(self)
    }

    /// Sets the socket's state.
    pub fn state(&mut self, state: SocketState) -> &mut Self {
        self.state = state as u32;
        self
    }

    /// Sets the mark (`SO_MARK`).
    pub fn mark(&mut self, mark: u32) -> &mut Self {
        self.mark = mark;
        self
    }

    /// Sets the priority (`SO_PRIORITY`).
    pub fn priority(&mut self, priority: u32) -> &mut Self {
        self.priority = priority;
        self
    }

    /// Binds the socket to a device: packets from other devices don't find it.
    pub fn device(&mut self, index: u32) -> &mut Self {
        self.device = index;
        self
    }

    /// Sets the receive queue (`rx_queue_mapping`).
    pub fn rx_queue(&mut self, queue: i32) -> &mut Self {
        self.rx_queue = queue;
        self
    }

    /// Sets the cookie. By default sockets have 1, 2 and so on.
    pub fn cookie(&mut self, cookie: u64) -> &mut Self {
        self.cookie = cookie;
        self
    }

    /// Sets the owner's user id.
    pub fn uid(&mut self, uid: u32) -> &mut Self {
        self.uid = uid;
        self
    }

    /// Sets the class id of the socket's cgroup (`net_cls.classid`).
    pub fn classid(&mut self, classid: u32) -> &mut Self {
        self.classid = classid;
        self
    }

    /// Sets the socket's cgroup: ids from the root's to its own.
    pub fn cgroup(&mut self, ids: impl Into<Vec<u64>>) -> &mut Self {
        self.cgroup = Ancestry::new(ids);
        self
    }

    /// Moves the socket to another network namespace, which look-ups refer to by this id; -1 is
    /// the packet's own.
    pub fn netns(&mut self, id: i32) -> &mut Self {
        self.netns = (id >= 0).then_some(id);
        self
    }

    /// Makes the socket share its port (`SO_REUSEPORT`).
    pub fn reuse_port(&mut self) -> &mut Self {
        self.reuses_port = true;
        self
    }

    /// Sets a field of `struct bpf_tcp_sock` (and of `struct bpf_sock_ops`) by name:
    /// `snd_cwnd`, `srtt_us`, `bytes_acked`.
    ///
    /// # Errors
    /// [`NetError::TcpField`].
    pub fn tcp_field(&mut self, name: &str, value: u64) -> Result<&mut Self, NetError> {
        let found = tcp_layout().find(name);
        let (offset, size) = found.ok_or_else(|| NetError::TcpField(name.to_owned()))?;
        let bytes = value.to_ne_bytes();
        let low = if cfg!(target_endian = "big") {
            8 - size as usize
        } else {
            0
        };
        let from = bytes.iter().skip(low);
        let to = self
            .tcp
            .iter_mut()
            .skip(offset as usize)
            .take(size as usize);
        to.zip(from).for_each(|(to, from)| *to = *from);
        Ok(self)
    }

    /// Sets the kernel memory address of its `struct tcp_sock` (or `udp6_sock`, `unix_sock`, …),
    /// which `bpf_skc_to_tcp_sock` and its siblings return.
    pub fn kernel_object(&mut self, address: u64) -> &mut Self {
        self.object = Some(address);
        self
    }

    /// Sets an option like user space's `setsockopt`, without a check.
    pub fn option(&mut self, level: i32, name: i32, value: impl Into<Vec<u8>>) -> &mut Self {
        self.options.insert((level, name), value.into());
        self
    }

    /// The value of an option that the test or a program set.
    #[must_use]
    pub fn option_value(&self, level: i32, name: i32) -> Option<&[u8]> {
        self.options.get(&(level, name)).map(Vec::as_slice)
    }

    /// The local address.
    #[must_use]
    pub const fn local_address(&self) -> Option<SocketAddr> {
        self.local
    }

    /// The mark.
    #[must_use]
    pub const fn mark_value(&self) -> u32 {
        self.mark
    }

    /// The flags that `bpf_sock_ops_cb_flags_set` set.
    #[must_use]
    pub const fn callback_flags(&self) -> u32 {
        self.callback_flags
    }

    /// A field of `struct bpf_tcp_sock`.
    #[must_use]
    pub fn tcp_value(&self, name: &str) -> Option<u64> {
        let (offset, size) = tcp_layout().find(name)?;
        let bytes = self.tcp.get(offset as usize..(offset + size) as usize)?;
        Some(match *bytes {
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            _ => u64::from_ne_bytes(bytes.try_into().ok()?),
        })
    }

    /// Whether it is a full socket (`sk_fullsock`).
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.state != SocketState::TimeWait as u32 && self.state != SocketState::NewSynRecv as u32
    }

    /// Whether it is a listening TCP socket.
    #[must_use]
    pub const fn is_listener(&self) -> bool {
        self.state == SocketState::Listen as u32
    }

    /// Whether look-ups can find it (`!sk_unhashed`).
    pub(in crate::vm) const fn is_hashed(&self) -> bool {
        self.protocol != TCP || self.state != SocketState::Close as u32
    }

    /// Whether it takes packets from any peer: a listening TCP socket, an unconnected UDP
    /// socket, or one of another protocol.
    pub(in crate::vm) const fn waits(&self) -> bool {
        match self.protocol {
            TCP => self.is_listener(),
            UDP => self.state == SocketState::Close as u32,
            _ => true,
        }
    }

    /// How specifically it matches packets from `from` to `to`; `None` if it doesn't. A
    /// connection scores highest, then a bound address, then a bound device.
    pub(super) fn score(&self, to: SocketAddr, from: SocketAddr, device: u32) -> Option<u32> {
        let local = self.local?;
        let wildcard = local.ip().is_unspecified();
        // An IPv6 socket that is bound to `::` takes IPv4, too; `IPV6_V6ONLY` is not mocked.
        let family = local.is_ipv4() == to.is_ipv4() || wildcard && local.is_ipv6();
        if !family || local.port() != to.port() || !wildcard && local.ip() != to.ip() {
            return None;
        }
        let connected = match self.remote {
            Some(remote) if remote == from => 4,
            Some(_) => return None,
            None => 0,
        };
        let by_device = match self.device {
            0 => 0,
            own if own == device => 1,
            _ => return None,
        };
        self.is_hashed()
            .then_some(connected + 2 * u32::from(!wildcard) + by_device)
    }

    /// `struct bpf_sock`, in the host's byte order.
    pub(in crate::vm) fn sock_bytes(&self) -> Vec<u8> {
        let layout = Object::Socket.layout();
        let mut bytes = vec![0; layout.size as usize];
        let mut put = |name: &str, value: &[u8]| {
            if let Some((offset, _)) = layout.find(name) {
                let to = bytes.iter_mut().skip(offset as usize);
                to.zip(value).for_each(|(to, from)| *to = *from);
            }
        };
        for (name, value) in [
            ("bound_dev_if", self.device),
            ("family", self.family),
            ("type", self.kind),
            ("protocol", self.protocol),
            ("mark", self.mark),
            ("priority", self.priority),
            ("state", self.state),
            ("rx_queue_mapping", self.rx_queue.cast_unsigned()),
        ] {
            put(name, &value.to_ne_bytes());
        }
        let ends = [
            (self.local, "src_ip4", "src_ip6"),
            (self.remote, "dst_ip4", "dst_ip6"),
        ];
        for (end, four, six) in ends {
            match end.map(|end| end.ip()) {
                Some(IpAddr::V4(address)) => put(four, &address.octets()),
                Some(IpAddr::V6(address)) => put(six, &address.octets()),
                None => {}
            }
        }
        // `src_port` is in host byte order, `dst_port` in network byte order.
        let port = |end: Option<SocketAddr>| end.map_or(0, |end| end.port());
        put("src_port", &u32::from(port(self.local)).to_ne_bytes());
        put("dst_port", &port(self.remote).to_be_bytes());
        bytes
    }
}

fn tcp_layout() -> &'static Layout {
    Object::TcpSock.layout()
}
