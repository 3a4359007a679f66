//! Sockets built from the fields of a context, for events without a socket of the mocked
//! world.

use std::net::{IpAddr, SocketAddr};

use super::layout::Layout;
use crate::spec::{ContextKind, ProgType};
use crate::vm::world::{AF_INET, AF_INET6, Socket, TCP, UDP};

/// The socket of a context that always has one, built from the context's fields; `None` for
/// types whose context may have no socket.
pub(super) fn made_up(prog_type: ProgType, layout: &Layout, context: &[u8]) -> Option<Socket> {
    // `SOCK_STREAM`, `SOCK_DGRAM`, `BPF_TCP_ESTABLISHED`.
    const STREAM: u32 = 1;
    const DATAGRAM: u32 = 2;
    const ESTABLISHED: u32 = 1;
    let (kind, protocol) = match prog_type.info().context {
        // As in BPF_PROG_TEST_RUN: closed, without a protocol.
        ContextKind::SkBuff if prog_type != ProgType::SkSkb => (0, 0),
        ContextKind::SkReuseport => (DATAGRAM, UDP),
        ContextKind::SkBuff
        | ContextKind::SkMsg
        | ContextKind::Sock
        | ContextKind::SockOps
        | ContextKind::SockAddr
        | ContextKind::CgroupSockopt => (STREAM, TCP),
        _ => return None,
    };
    let mut socket = Socket::made_up();
    (socket.kind, socket.protocol) = (kind, protocol);
    let fields = Fields { layout, context };
    let given = |name: &str| fields.number(name).filter(|number| *number != 0);
    socket.family = given("family").unwrap_or(match socket.protocol {
        0 => 0,
        _ => AF_INET,
    });
    socket.kind = given("type").unwrap_or(socket.kind);
    socket.protocol = given("protocol")
        .filter(|_| !is_packet(prog_type))
        .unwrap_or(socket.protocol);
    socket.mark = given("mark").filter(|_| !is_packet(prog_type)).unwrap_or(0);
    socket.local = fields.end(
        socket.family,
        ["local_ip4", "src_ip4"],
        ["local_ip6", "src_ip6"],
        fields.local_port(),
    );
    socket.remote = fields.end(
        socket.family,
        ["remote_ip4", "dst_ip4"],
        ["remote_ip6", "dst_ip6"],
        fields.remote_port(),
    );
    let connected = matches!(
        prog_type,
        ProgType::SkSkb | ProgType::SkMsg | ProgType::SockOps
    );
    let state = if connected { Some(ESTABLISHED) } else { None };
    socket.state = given("state").or(state).unwrap_or(socket.state);
    Some(socket)
}

/// Whether `protocol` and `mark` of the context belong to the packet.
fn is_packet(prog_type: ProgType) -> bool {
    matches!(
        prog_type.info().context,
        ContextKind::SkBuff | ContextKind::SkReuseport
    )
}

/// The fields of a context.
struct Fields<'a> {
    layout: &'a Layout,
    context: &'a [u8],
}

impl Fields<'_> {
    fn bytes(&self, name: &str) -> Option<&[u8]> {
        let field = self
            .layout
            .fields
            .iter()
            .find(|field| field.is_named(name))?;
        let at = field.offset as usize;
        self.context.get(at..at + field.size() as usize)
    }

    fn number(&self, name: &str) -> Option<u32> {
        match *self.bytes(name)? {
            [a, b, c, d] => Some(u32::from_ne_bytes([a, b, c, d])),
            [a, b] => Some(u16::from_ne_bytes([a, b]).into()),
            _ => None,
        }
    }

    /// In host order in every context.
    fn local_port(&self) -> u16 {
        let port = self.number("local_port").or(self.number("src_port"));
        port.and_then(|port| u16::try_from(port).ok()).unwrap_or(0)
    }

    /// In network order: the last two bytes of a word, or the whole field.
    fn remote_port(&self) -> u16 {
        let bytes = self.bytes("remote_port").or(self.bytes("dst_port"));
        match bytes {
            Some(&[high, low] | &[_, _, high, low]) => u16::from_be_bytes([high, low]),
            _ => 0,
        }
    }

    fn end(&self, family: u32, four: [&str; 2], six: [&str; 2], port: u16) -> Option<SocketAddr> {
        let first = |names: [&str; 2]| names.into_iter().find_map(|name| self.bytes(name));
        let address: IpAddr = match family {
            AF_INET => <[u8; 4]>::try_from(first(four)?).ok()?.into(),
            AF_INET6 => <[u8; 16]>::try_from(first(six)?).ok()?.into(),
            _ => return None,
        };
        Some(SocketAddr::new(address, port))
    }
}
