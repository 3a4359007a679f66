//! Helpers on sockets (`net/core/filter.c`).
//!
//! The world has no sockets of its own. The one there is belongs to the packet, as
//! in `BPF_PROG_TEST_RUN`: a full socket, closed, of no protocol.

use super::call::{Call, Returned};
use crate::vm::fault::HelperProblem;

/// `(context, tuple, its size, namespace, flags)`: there is none to be found.
fn lookup(call: &Call<'_>) -> Returned {
    call.read(2, call.size(3))?;
    Ok(0)
}

pub(super) fn sk_lookup_tcp(call: &mut Call<'_>) -> Returned {
    lookup(call)
}

pub(super) fn sk_lookup_udp(call: &mut Call<'_>) -> Returned {
    lookup(call)
}

pub(super) fn skc_lookup_tcp(call: &mut Call<'_>) -> Returned {
    lookup(call)
}

/// The socket in argument 1.
fn socket(call: &Call<'_>) -> Result<u64, HelperProblem> {
    let current = call.machine.current();
    let socket = current.and_then(|current| current.placed.other("sk"));
    match socket {
        Some(socket) if socket.register() == call.arg(1) => Ok(socket.register()),
        _ => Err(call.wrong(1, "the packet's socket")),
    }
}

/// Sockets that were looked up are counted, the packet's is not.
pub(super) fn sk_release(call: &mut Call<'_>) -> Returned {
    socket(call).map(|_| 0)
}

pub(super) fn sk_fullsock(call: &mut Call<'_>) -> Returned {
    socket(call)
}

/// Its protocol is not TCP.
pub(super) fn tcp_sock(call: &mut Call<'_>) -> Returned {
    socket(call).map(|_| 0)
}

/// It does not listen.
pub(super) fn get_listener_sock(call: &mut Call<'_>) -> Returned {
    socket(call).map(|_| 0)
}

#[cfg(test)]
mod tests {
    use crate::spec::ProgType;
    use crate::spec::helpers::id;
    use crate::vm::events::Event;
    use crate::vm::helpers::testing::Bench;

    #[test]
    fn lookups_find_nothing() {
        let mut bench = Bench::new();
        let tuple = bench.memory(&[0; 12]);
        for helper in [id::sk_lookup_tcp, id::sk_lookup_udp, id::skc_lookup_tcp] {
            assert_eq!(bench.ok(helper, [0, tuple, 12, u64::MAX, 0]), 0);
            assert!(bench.call(helper, [0, tuple, 36, u64::MAX, 0]).is_err());
        }
    }

    #[test]
    fn the_packets_socket_is_full_closed_and_of_no_protocol() {
        let mut bytes = vec![0; 64];
        bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
        let mut bench = Bench::on(ProgType::SchedCls, &Event::packet(bytes));
        let placed = &bench.machine.current().unwrap().placed;
        let socket = placed.other("sk").unwrap().register();
        assert_eq!(bench.ok(id::sk_fullsock, [socket]), socket);
        for helper in [id::tcp_sock, id::get_listener_sock, id::sk_release] {
            assert_eq!(bench.ok(helper, [socket]), 0);
            assert!(bench.call(helper, [0]).is_err());
        }
    }
}
