//! Helpers that convert a socket to a typed kernel pointer (`bpf_skc_to_*`,
//! `net/core/filter.c`).
//!
//! The object of a socket of [`Net`](crate::vm::world::Net) is the one that the test
//! [set](Socket::kernel_object), or is created from the kernel's types. Pointers to kernel
//! memory are returned unchanged.

use super::super::kernel::private_socket;
use super::socket;
use crate::vm::machine::{Call, HelperProblem, Returned};
use crate::vm::world::{AF_INET6, Socket, SocketState, TCP, UDP};

/// `AF_UNIX`.
const AF_UNIX: u32 = 1;
/// `SOCK_DGRAM`.
const DATAGRAM: u32 = 2;

/// The typed pointer if `is` holds for the socket; null otherwise.
fn cast(call: &mut Call<'_>, name: &str, is: fn(&Socket) -> bool) -> Returned {
    let address = call.arg(1);
    if address == 0 {
        return Ok(0);
    }
    let Ok(socket) = socket::at(call, 1) else {
        return Ok(address);
    };
    let found = call
        .machine
        .socket(socket)
        .map(|socket| (is(socket), socket.object));
    match found {
        Some((true, Some(object))) => Ok(object),
        Some((true, None)) => {
            let made = call.machine.typed_socket(socket, name);
            made.map_err(|error| {
                HelperProblem::Other(format!("the socket's struct {name}: {error}"))
            })
        }
        _ => Ok(0),
    }
}

/// `bpf_skc_to_tcp6_sock(socket)`: a full IPv6 TCP socket.
pub fn to_tcp6_sock(call: &mut Call<'_>) -> Returned {
    cast(call, "tcp6_sock", |socket| {
        socket.is_full() && socket.protocol == TCP && socket.family == AF_INET6
    })
}

/// `bpf_skc_to_tcp_sock(socket)`: a full TCP socket.
pub fn to_tcp_sock(call: &mut Call<'_>) -> Returned {
    cast(call, "tcp_sock", |socket| {
        socket.is_full() && socket.protocol == TCP
    })
}

/// `bpf_skc_to_tcp_timewait_sock(socket)`: a socket in TIME_WAIT.
pub fn to_tcp_timewait_sock(call: &mut Call<'_>) -> Returned {
    cast(call, "tcp_timewait_sock", |socket| {
        socket.protocol == TCP && socket.state == SocketState::TimeWait as u32
    })
}

/// `bpf_skc_to_tcp_request_sock(socket)`: a request socket (NEW_SYN_RECV).
pub fn to_tcp_request_sock(call: &mut Call<'_>) -> Returned {
    cast(call, "tcp_request_sock", |socket| {
        socket.protocol == TCP && socket.state == SocketState::NewSynRecv as u32
    })
}

/// `bpf_skc_to_udp6_sock(socket)`: an IPv6 UDP socket.
pub fn to_udp6_sock(call: &mut Call<'_>) -> Returned {
    cast(call, "udp6_sock", |socket| {
        let is_udp = socket.protocol == UDP && socket.kind == DATAGRAM;
        is_udp && socket.is_full() && socket.family == AF_INET6
    })
}

/// `bpf_skc_to_unix_sock(socket)`: a Unix socket.
pub fn to_unix_sock(call: &mut Call<'_>) -> Returned {
    cast(call, "unix_sock", |socket| {
        socket.is_full() && socket.family == AF_UNIX
    })
}

/// `bpf_skc_to_mptcp_sock(socket)`: always null, MPTCP is not mocked.
pub fn to_mptcp_sock(call: &mut Call<'_>) -> Returned {
    cast(call, "mptcp_sock", |_| false)
}

/// `bpf_sock_from_file(file)`: the `struct socket` in the file's private data.
pub fn sock_from_file(call: &mut Call<'_>) -> Returned {
    let file = call.arg(1);
    private_socket(call.machine, file)
}
