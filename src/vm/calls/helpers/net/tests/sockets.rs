//! Socket lookups and pointers to sockets.

use super::*;

fn tuple(from: ([u8; 4], u16), to: ([u8; 4], u16)) -> Vec<u8> {
    let ports = [from.1.to_be_bytes(), to.1.to_be_bytes()].concat();
    [from.0.to_vec(), to.0.to_vec(), ports].concat()
}

fn server(net: &mut Net) -> SocketId {
    let socket = net
        .tcp()
        .local("10.0.0.1:80")
        .unwrap()
        .state(SocketState::Listen);
    socket.mark(7).cookie(99).uid(33).cgroup([1, 20, 300]).id()
}

/// A machine with a looked-up listener and the socket's address.
fn looked_up() -> (Bench, u64, u64) {
    let (mut bench, context) = on_packet(ProgType::SchedCls, |net| {
        server(net);
    });
    let tuple = bench.memory(&tuple(([10, 0, 0, 2], 999), ([10, 0, 0, 1], 80)));
    let found = bench.ok(id::sk_lookup_tcp, [context, tuple, 12, u64::MAX, 0]);
    assert_ne!(found, 0);
    (bench, context, found)
}

#[test]
fn a_socket_is_looked_up_and_released() {
    let (mut bench, context, socket) = looked_up();
    let load = |bench: &Bench, at, size| bench.machine.space.load(socket + at, size);
    assert_eq!(load(&bench, 4, 4), Ok(2), "family");
    assert_eq!((load(&bench, 16, 4), load(&bench, 44, 4)), (Ok(7), Ok(80)));
    assert!(bench.machine.space.store(socket, 4, 1).is_err());
    assert_eq!(bench.machine.unreleased().len(), 1);
    let again = bench.memory(&tuple(([10, 0, 0, 2], 999), ([10, 0, 0, 1], 80)));
    let second = bench.ok(id::skc_lookup_tcp, [context, again, 12, u64::MAX, 0]);
    assert_eq!(second, socket, "one address for one socket");
    assert_eq!(bench.ok(id::sk_release, [socket]), 0);
    assert_eq!(bench.ok(id::sk_release, [socket]), 0);
    let problem = bench
        .call(id::sk_release, [socket])
        .unwrap_err()
        .to_string();
    assert!(problem.contains("not released yet"), "{problem}");
    assert_eq!(bench.machine.unreleased().len(), 0);
}

#[test]
fn look_ups_that_find_nothing() {
    let (mut bench, context, _) = looked_up();
    let at = bench.memory(&tuple(([10, 0, 0, 2], 999), ([10, 0, 0, 1], 80)));
    for args in [
        [context, at, 12, 5, 0],
        [context, at, 12, u64::MAX, 1],
        [context, at, 12, 1 << 40, 0],
        [context, at, 8, u64::MAX, 0],
        [context, at, 0, u64::MAX, 0],
    ] {
        assert_eq!(bench.ok(id::sk_lookup_tcp, args), 0, "{args:x?}");
    }
    assert_eq!(
        bench.ok(id::sk_lookup_udp, [context, at, 12, u64::MAX, 0]),
        0
    );
    assert!(
        bench
            .call(id::sk_lookup_tcp, [context, at, 36, 0, 0])
            .is_err()
    );
}

#[test]
fn pointers_become_others_where_the_socket_is_such() {
    let (mut bench, _, socket) = looked_up();
    let tcp = bench.ok(id::tcp_sock, [socket]);
    assert!(tcp != 0 && tcp != socket);
    assert_eq!(bench.ok(id::get_listener_sock, [socket]), socket);
    assert_eq!(
        bench.ok(id::sk_fullsock, [tcp]),
        tcp,
        "any view of it will do"
    );
    assert_eq!(bench.ok(id::skc_to_udp6_sock, [socket]), 0);
    assert_eq!(bench.ok(id::skc_to_mptcp_sock, [socket]), 0);
    let missing = bench
        .call(id::skc_to_tcp_sock, [socket])
        .unwrap_err()
        .to_string();
    assert!(missing.contains("tcp_sock"), "{missing}");
    let id = bench.machine.world.net().sockets().next().unwrap().id();
    bench
        .machine
        .world
        .net()
        .get_mut(id)
        .unwrap()
        .kernel_object(0x4242);
    assert_eq!(bench.ok(id::skc_to_tcp_sock, [socket]), 0x4242);
    assert_eq!(bench.ok(id::sk_cgroup_id, [socket]), 300);
    let ancestors = [0, 1, 3].map(|level| bench.ok(id::sk_ancestor_cgroup_id, [socket, level]));
    assert_eq!(ancestors, [1, 20, 0]);
    assert!(bench.call(id::sk_fullsock, [1 << 20]).is_err());
}

#[test]
fn the_packets_socket_is_full_closed_and_of_no_protocol() {
    let (mut bench, context) = on_packet(ProgType::SchedCls, |_| {});
    let placed = &bench.machine.current().unwrap().placed;
    let socket = placed.other("sk").unwrap().register();
    assert_eq!(bench.ok(id::sk_fullsock, [socket]), socket);
    for helper in [id::tcp_sock, id::get_listener_sock, id::sk_release] {
        assert_eq!(bench.ok(helper, [socket]), 0);
        assert!(bench.call(helper, [0]).is_err());
    }
    assert_ne!(bench.ok(id::get_socket_cookie, [context]), 0);
    assert_eq!(bench.ok(id::get_socket_uid, [context]), 0);
    assert_eq!(bench.ok(id::get_netns_cookie, [context]), 1);
}

#[test]
fn an_event_may_be_about_a_socket_of_the_world() {
    let mut bench = Bench::new();
    let id = server(bench.machine.world.net());
    let event = packet()
        .event()
        .unwrap()
        .with(|kern| kern.socket = Some(id));
    let mut bench = bench.running(ProgType::CgroupSkb, &event);
    let context = bench.context();
    let sk = bench.machine.space.load(context + 168, 8).unwrap();
    assert_eq!(bench.machine.space.load(sk + 16, 4), Ok(7), "its mark");
    assert_eq!(bench.ok(id::get_socket_cookie, [context]), 99);
    assert_eq!(bench.ok(id::get_socket_uid, [context]), 33);
    assert_eq!(bench.ok(id::skb_cgroup_id, [context]), 300);
    assert_eq!(bench.ok(id::skb_ancestor_cgroup_id, [context, 1]), 20);
    assert_eq!(bench.ok(id::sk_release, [sk]), 0);
}

#[test]
fn a_packet_is_given_to_a_socket_at_ingress() {
    let (mut bench, context, socket) = looked_up();
    let assign = |bench: &mut Bench, args| bench.ok(id::sk_assign, args).cast_signed();
    assert_eq!(
        assign(&mut bench, [context, socket, 0]),
        -95,
        "not at ingress"
    );
    let (current, _) = bench.machine.current_mut().unwrap();
    current.placed.kern.at_ingress = true;
    assert_eq!(assign(&mut bench, [context, socket, 1]), -22);
    assert_eq!(assign(&mut bench, [context, 0, 0]), -22);
    assert_eq!(assign(&mut bench, [context, socket, 0]), 0);
    assert_eq!(bench.machine.space.load(context + 168, 8), Ok(socket));
}

#[test]
fn a_look_up_is_answered() {
    let event = context(ProgType::SkLookup);
    let event = event.set("family", 2).unwrap().set("protocol", 6).unwrap();
    let (mut bench, context) = on_context(ProgType::SkLookup, event);
    let net = bench.machine.world.net();
    let (server, connected) = (server(net), net.tcp().local("10.0.0.1:81").unwrap());
    let connected = connected.remote("10.0.0.2:5").unwrap().id();
    let udp = bench
        .machine
        .world
        .net()
        .udp()
        .local("10.0.0.1:80")
        .unwrap()
        .id();
    let mut at = |id| bench.machine.socket_address(id).unwrap().unwrap();
    let (server, connected, udp) = (at(server), at(connected), at(udp));
    let mut assign = |socket, flags| {
        bench
            .ok(id::sk_assign, [context, socket, flags])
            .cast_signed()
    };
    assert_eq!(assign(connected, 0), -94);
    assert_eq!(assign(udp, 0), -91);
    assert_eq!(assign(server, 4), -22);
    assert_eq!(assign(server, 0), 0);
    assert_eq!((assign(server, 0), assign(server, 1)), (-17, 0));
    assert_eq!(bench.machine.space.load(context, 8), Ok(server));
    let placed = &bench.machine.current().unwrap().placed;
    assert_eq!(
        placed.context_bytes(&bench.machine.space)[..8],
        99u64.to_le_bytes()
    );
    assert_eq!(bench.ok(id::sk_assign, [context, 0, 1]), 0);
    assert_eq!(bench.machine.space.load(context, 8), Ok(0));
}
