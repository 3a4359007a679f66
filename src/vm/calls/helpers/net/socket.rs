//! Helpers that look up sockets, convert socket pointers and return a socket's owner
//! (`net/core/filter.c`).
//!
//! Sockets are those of [`Net`](crate::vm::world::Net). An event without one gets a socket as
//! in `BPF_PROG_TEST_RUN`: full, closed, without a protocol.

use std::net::SocketAddr;

use super::super::packet;
use crate::spec::ProgType;
use crate::util::Errno;
use crate::vm::machine::sockets::SocketRef;
use crate::vm::machine::{Call, HelperProblem, Returned};
use crate::vm::world::{AF_INET, Socket, SocketId, TCP, UDP};

/// The UID of a packet without a socket (`overflowuid`).
const OVERFLOW_UID: u64 = 65_534;

/// The socket in argument `n`.
pub fn at(call: &Call<'_>, n: usize) -> Result<SocketRef, HelperProblem> {
    let found = call.machine.socket_at(call.arg(n));
    found.ok_or_else(|| call.wrong(n, "a socket"))
}

/// Reads or changes the socket in argument `n`.
fn known<T>(
    call: &mut Call<'_>,
    n: usize,
    ask: impl FnOnce(&mut Socket) -> T,
) -> Result<T, HelperProblem> {
    let socket = at(call, n)?;
    let wrong = call.wrong(n, "a socket");
    call.machine.socket(socket).map(ask).ok_or(wrong)
}

/// Reads or changes the event's socket; `None` if there is none.
pub fn of_event<T>(call: &mut Call<'_>, ask: impl FnOnce(&mut Socket) -> T) -> Option<T> {
    let socket = call.machine.event_socket()?;
    call.machine.socket(socket).map(ask)
}

/// Source and destination of a `struct bpf_sock_tuple`.
fn tuple(bytes: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let port = |at: usize| match bytes.get(at..at + 2) {
        Some(&[high, low]) => Some(u16::from_be_bytes([high, low])),
        _ => None,
    };
    let end = |address: usize, len: usize, at: usize| {
        let bytes = bytes.get(address..address + len)?;
        let four = <[u8; 4]>::try_from(bytes).map(Into::into);
        let six = || <[u8; 16]>::try_from(bytes).map(Into::into);
        Some(SocketAddr::new(four.or_else(|_| six()).ok()?, port(at)?))
    };
    match bytes.len() {
        12 => Some((end(0, 4, 8)?, end(4, 4, 10)?)),
        36 => Some((end(0, 16, 32)?, end(16, 16, 34)?)),
        _ => None,
    }
}

/// The ingress device of the event's packet.
fn device(call: &Call<'_>) -> u32 {
    let field = |name| {
        let (block, at) = packet::field(call, name)?;
        u32::try_from(block.load(at, 4)?).ok()
    };
    let prog_type = call.machine.current().map(|current| current.prog_type);
    let name = match prog_type {
        Some(ProgType::Xdp) => "ingress_ifindex",
        _ => "ifindex",
    };
    field(name).unwrap_or(0)
}

/// Looks up a socket and acquires a reference: `(context, tuple, its size, namespace,
/// flags)`.
fn lookup(call: &mut Call<'_>, protocol: u32, wanted: fn(&Socket) -> bool) -> Returned {
    let bytes = call.read(2, call.size(3))?;
    let (namespace, flags) = (call.arg(4), call.arg(5));
    let Some((from, to)) = tuple(&bytes) else {
        return Ok(0);
    };
    // A negative 32-bit number selects the packet's own namespace.
    let low = call.arg_i32(4);
    let namespace = match low {
        ..0 => None,
        _ if i32::try_from(namespace).is_err() => return Ok(0),
        _ => Some(low),
    };
    if flags != 0 {
        return Ok(0);
    }
    let device = device(call);
    let net = call.machine.world.net();
    let found = net.find_socket(protocol, from, to, device, namespace);
    let found: Option<SocketId> = found.filter(|socket| wanted(socket)).map(Socket::id);
    match found {
        Some(id) => Ok(call.machine.acquire_socket(id)?),
        None => Ok(0),
    }
}

/// `bpf_sk_lookup_tcp`: looks up a full TCP socket.
pub fn sk_lookup_tcp(call: &mut Call<'_>) -> Returned {
    lookup(call, TCP, Socket::is_full)
}

/// `bpf_sk_lookup_udp`: looks up a UDP socket.
pub fn sk_lookup_udp(call: &mut Call<'_>) -> Returned {
    lookup(call, UDP, Socket::is_full)
}

/// `bpf_skc_lookup_tcp`: looks up a TCP socket, full or not.
pub fn skc_lookup_tcp(call: &mut Call<'_>) -> Returned {
    lookup(call, TCP, |_| true)
}

/// `bpf_sk_release(socket)`: releases a looked-up socket; the event's socket is not counted.
pub fn sk_release(call: &mut Call<'_>) -> Returned {
    if let SocketRef::World(id) = at(call, 1)?
        && !call.machine.release_socket(id)
        && call.machine.event_socket() != Some(SocketRef::World(id))
    {
        return Err(call.wrong(1, "a socket that was looked up and not released yet"));
    }
    Ok(0)
}

/// `bpf_sk_fullsock(socket)`: the same pointer if the socket is full, else null.
pub fn sk_fullsock(call: &mut Call<'_>) -> Returned {
    let full = known(call, 1, |socket| socket.is_full())?;
    Ok(if full { call.arg(1) } else { 0 })
}

/// `bpf_tcp_sock(socket)`: the `struct bpf_tcp_sock` of a full TCP socket.
pub fn tcp_sock(call: &mut Call<'_>) -> Returned {
    let socket = at(call, 1)?;
    let is_tcp = known(call, 1, |socket| socket.is_full() && socket.protocol == TCP)?;
    Ok(match is_tcp {
        true => call.machine.tcp_address(socket)?.unwrap_or(0),
        false => 0,
    })
}

/// `bpf_get_listener_sock(socket)`: the listener that accepted this connection, or the socket
/// itself if it listens.
pub fn get_listener_sock(call: &mut Call<'_>) -> Returned {
    let (listens, full, protocol, local, remote, namespace) = known(call, 1, |socket| {
        (
            socket.is_listener(),
            socket.is_full(),
            socket.protocol,
            socket.local,
            socket.remote,
            socket.netns,
        )
    })?;
    if listens {
        return Ok(call.arg(1));
    }
    let (Some(local), Some(remote), false) = (local, remote, full) else {
        return Ok(0);
    };
    let nobody = SocketAddr::new(remote.ip(), 0);
    let net = call.machine.world.net();
    let found = net.find_socket(protocol, nobody, local, 0, namespace);
    let found = found.filter(|socket| socket.is_listener()).map(Socket::id);
    Ok(match found {
        Some(id) => call.machine.socket_address(id)?.unwrap_or(0),
        None => 0,
    })
}

/// Whether the program type is `sk_lookup`.
fn looks_up(call: &Call<'_>) -> bool {
    let current = call.machine.current();
    current.is_some_and(|current| current.prog_type == ProgType::SkLookup)
}

/// `bpf_sk_assign(context, socket, flags)`: assigns the packet to a socket.
pub fn sk_assign(call: &mut Call<'_>) -> Returned {
    if looks_up(call) {
        return assign_looked_up(call);
    }
    let (sock, flags) = (call.arg(2), call.arg(3));
    if sock == 0 || flags != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let SocketRef::World(id) = at(call, 2)? else {
        return Ok(Errno::EOPNOTSUPP.to_ret());
    };
    let (hashed, namespace) = known(call, 2, |socket| (socket.is_hashed(), socket.netns))?;
    let current = call.machine.current();
    if !current.is_some_and(|current| current.placed.kern.at_ingress) || !hashed {
        return Ok(Errno::EOPNOTSUPP.to_ret());
    }
    if namespace.is_some() {
        return Ok(Errno::ENETUNREACH.to_ret());
    }
    call.machine.assign_socket(Some(id))?;
    Ok(0)
}

/// `bpf_sk_lookup_assign(context, socket or null, flags)`: sets the result of the lookup.
/// Connected sockets are refused.
fn assign_looked_up(call: &mut Call<'_>) -> Returned {
    const REPLACE: u64 = 1;
    const NO_REUSEPORT: u64 = 2;
    let (sock, flags) = (call.arg(2), call.arg(3));
    if flags & !(REPLACE | NO_REUSEPORT) != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let mut chosen = None;
    if sock != 0 {
        let SocketRef::World(id) = at(call, 2)? else {
            return Ok(Errno::ESOCKTNOSUPPORT.to_ret());
        };
        let wanted = |name| {
            let (block, at) = packet::field(call, name)?;
            u32::try_from(block.load(at, 4)?).ok()
        };
        let (family, protocol) = (wanted("family"), wanted("protocol"));
        let (fits, its_family, its_protocol) = known(call, 2, |socket| {
            (socket.waits(), socket.family, socket.protocol)
        })?;
        if !fits {
            return Ok(Errno::ESOCKTNOSUPPORT.to_ret());
        }
        if Some(its_protocol) != protocol {
            return Ok(Errno::EPROTOTYPE.to_ret());
        }
        if Some(its_family) != family && its_family == AF_INET {
            return Ok(Errno::EAFNOSUPPORT.to_ret());
        }
        chosen = Some(id);
    }
    let is_set = call.machine.event_socket().is_some();
    if is_set && flags & REPLACE == 0 {
        return Ok(Errno::EEXIST.to_ret());
    }
    call.machine.assign_socket(chosen)?;
    // The context field that a test run returns.
    let cookie = of_event(call, |socket| socket.cookie).unwrap_or(0);
    if let Some((block, at)) = packet::field(call, "cookie") {
        // The field is in the context's layout.
        let _ = block.store(at, 8, cookie);
    }
    Ok(0)
}

/// Whether argument 1 is the hook's context and not a socket.
fn is_context(call: &Call<'_>) -> bool {
    let current = call.machine.current();
    current.is_some_and(|current| current.placed.r1() == call.arg(1))
}

/// `bpf_get_socket_cookie(context or socket)`: the socket's cookie; 0 without a socket.
pub fn get_socket_cookie(call: &mut Call<'_>) -> Returned {
    if call.arg(1) == 0 {
        return Ok(0);
    }
    match is_context(call) {
        true => Ok(of_event(call, |socket| socket.cookie).unwrap_or(0)),
        false => known(call, 1, |socket| socket.cookie),
    }
}

/// `bpf_get_socket_uid(context)`: the UID of the packet's socket.
pub fn get_socket_uid(call: &mut Call<'_>) -> Returned {
    let uid = of_event(call, |socket| socket.is_full().then_some(socket.uid));
    Ok(uid.flatten().map_or(OVERFLOW_UID, u64::from))
}

/// `bpf_get_netns_cookie(context or null)`: the cookie of the network namespace.
pub fn get_netns_cookie(call: &mut Call<'_>) -> Returned {
    Ok(call.machine.world.net().namespace_cookie())
}

/// `bpf_get_cgroup_classid(context)`: the class ID of the packet's cgroup. Without a socket
/// the kernel uses the current task's class ID; here it is 0.
pub fn get_cgroup_classid(call: &mut Call<'_>) -> Returned {
    let class = of_event(call, |socket| socket.classid);
    Ok(class.unwrap_or(0).into())
}

fn full<T: Default>(call: &mut Call<'_>, ask: impl FnOnce(&Socket) -> T) -> T {
    let told = of_event(call, |socket| socket.is_full().then(|| ask(socket)));
    told.flatten().unwrap_or_default()
}

/// `bpf_skb_cgroup_classid(context)`: the class ID of the packet's socket.
pub fn skb_cgroup_classid(call: &mut Call<'_>) -> Returned {
    Ok(full(call, |socket| socket.classid).into())
}

/// `bpf_skb_cgroup_id(context)`: the cgroup ID of the packet's socket.
pub fn skb_cgroup_id(call: &mut Call<'_>) -> Returned {
    Ok(full(call, |socket| socket.cgroup.id()))
}

/// `bpf_skb_ancestor_cgroup_id(context, level)`: the ID of an ancestor of that cgroup.
pub fn skb_ancestor_cgroup_id(call: &mut Call<'_>) -> Returned {
    let level = call.arg_i32(2);
    Ok(full(call, |socket| socket.cgroup.ancestor(level)))
}

/// `bpf_sk_cgroup_id(socket)`: the socket's cgroup ID.
pub fn sk_cgroup_id(call: &mut Call<'_>) -> Returned {
    known(call, 1, |socket| {
        if socket.is_full() {
            socket.cgroup.id()
        } else {
            0
        }
    })
}

/// `bpf_sk_ancestor_cgroup_id(socket, level)`: the ID of an ancestor of that cgroup.
pub fn sk_ancestor_cgroup_id(call: &mut Call<'_>) -> Returned {
    let level = call.arg_i32(2);
    known(call, 1, |socket| match socket.is_full() {
        true => socket.cgroup.ancestor(level),
        false => 0,
    })
}
