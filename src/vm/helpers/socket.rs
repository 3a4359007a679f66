//! Sockets (`net/core/filter.c`). The mocked world has none to find; the one socket
//! there is, behind `sk` of a packet's context, is what `BPF_PROG_TEST_RUN` makes:
//! a full socket of no protocol, in state `CLOSE`.

use super::super::fault::HelperProblem;
use super::super::memory::AccessKind;
use super::call::Call;

type Result = std::result::Result<u64, HelperProblem>;

/// Looks for a socket by its tuple: there is none.
pub(super) fn lookup(call: &mut Call<'_>) -> Result {
    let size = call.size(3);
    call.check(2, size, AccessKind::Read)?;
    Ok(0)
}

/// Gives a socket back: only one that a look-up found would count.
pub(super) fn release(call: &mut Call<'_>) -> Result {
    socket(call)?;
    Ok(0)
}

/// The socket itself: it is a full one (`sk_fullsock`, `include/net/sock.h`).
pub(super) fn fullsock(call: &mut Call<'_>) -> Result {
    socket(call)
}

/// The socket as one of TCP, which it is not; nor does it listen.
pub(super) fn none_such(call: &mut Call<'_>) -> Result {
    socket(call)?;
    Ok(0)
}

/// Argument 1, if it points to a socket or is null.
fn socket(call: &Call<'_>) -> Result {
    let socket = call.arg(1);
    let placed = call.machine.current().map(|current| &current.placed);
    let known = placed.and_then(|placed| placed.other("sk"));
    match known {
        _ if socket == 0 => Ok(0),
        Some(known) if known.register() == socket => Ok(socket),
        _ => Err(call.wrong(1, "a socket")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use crate::spec::ProgType;
    use crate::spec::helpers::id;
    use crate::vm::events::Event;

    #[test]
    fn a_packets_socket_is_full_and_not_of_tcp() {
        let mut bench = Bench::new();
        let event = Event::packet(vec![0; 64]);
        let placed = event
            .place(ProgType::SchedCls, &mut bench.machine.space)
            .unwrap();
        let socket = placed.other("sk").unwrap().register();
        bench.machine.enter(ProgType::SchedCls, placed);
        assert_eq!(bench.call(id::sk_fullsock, [socket]), Ok(socket));
        assert_eq!(bench.call(id::tcp_sock, [socket]), Ok(0));
        assert_eq!(bench.call(id::get_listener_sock, [socket]), Ok(0));
        assert_eq!(bench.call(id::sk_release, [0]), Ok(0));
        assert!(bench.call(id::sk_fullsock, [socket + 4]).is_err());
    }

    #[test]
    fn no_socket_is_found_for_a_readable_tuple() {
        let mut bench = Bench::new();
        let tuple = bench.memory(&[0; 12]);
        assert_eq!(bench.call(id::sk_lookup_tcp, [0, tuple, 12, 0, 0]), Ok(0));
        assert!(bench.call(id::sk_lookup_udp, [0, tuple, 36, 0, 0]).is_err());
    }
}
