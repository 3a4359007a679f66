//! Helpers on mocked routes, sockets, options and hooks, which test runs in the kernel can't
//! cover. (`tests/kernel/net.rs` compares the other helpers with the kernel.)

mod cookies;
mod fib;
mod hooks;
mod messages;
mod options;
mod segments;
mod sockets;

use super::super::testing::Bench;
use crate::spec::ProgType;
use crate::spec::context::Arch;
use crate::spec::helpers::id;
use crate::util::{Errno, HelperId};
use crate::vm::events::{Checksum, Event, Packet, Sysctl, Tunnel, XfrmState};
use crate::vm::machine::Output;
use crate::vm::world::{Net, RouteKind, SocketId, SocketState};

fn packet() -> Packet {
    Packet::ethernet()
        .ipv4("10.0.0.2", "10.0.0.1")
        .tcp(999, 80)
        .payload([7; 20])
}

/// A machine with this network, running a program of this type on a packet.
fn on_packet(prog_type: ProgType, mock: impl FnOnce(&mut Net)) -> (Bench, u64) {
    let mut bench = Bench::on(prog_type, &packet().event().unwrap());
    mock(bench.machine.world.net());
    let context = bench.context();
    (bench, context)
}

/// A machine running a program of this type on a context.
fn on_context(prog_type: ProgType, event: Event) -> (Bench, u64) {
    let bench = Bench::on(prog_type, &event);
    let context = bench.context();
    (bench, context)
}

fn context(prog_type: ProgType) -> Event {
    Event::context(prog_type, Arch::HOST).unwrap()
}

#[test]
fn copies_are_recorded() {
    let (mut bench, context) = on_packet(ProgType::SchedCls, |net| {
        net.device(5, "five");
    });
    assert_eq!(bench.ok(id::clone_redirect, [context, 5, 1]), 0);
    let packet = packet().build().unwrap();
    let copy = Output::Clone {
        ifindex: 5,
        ingress: true,
        packet,
    };
    assert_eq!(bench.machine.take_outputs(), [copy]);
}

#[test]
fn what_a_packet_came_through() {
    let event = packet().event().unwrap().with(|kern| {
        kern.realm = 12;
        kern.checksum = Checksum::Unnecessary { level: 1 };
        kern.tunnel = Some(Tunnel {
            id: 5,
            source: std::array::from_fn(|at| if at < 4 { 1 } else { 0 }),
            options: vec![1, 2, 3, 4],
            ..Tunnel::default()
        });
        kern.xfrm = vec![XfrmState {
            reqid: 3,
            spi: 4,
            family: 2,
            source: [6; 16],
        }];
    });
    let (mut bench, context) = on_context(ProgType::SchedCls, event);
    let at = bench.memory(&[0xff; 44]);
    assert_eq!(bench.ok(id::get_route_realm, [context]), 12);
    assert_eq!(bench.ok(id::csum_level, [context, 0]), 1);
    assert_eq!(bench.ok(id::skb_get_tunnel_key, [context, at, 44, 0]), 0);
    assert_eq!(bench.bytes(at, 8), [5, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(bench.ok(id::skb_get_tunnel_opt, [context, at, 8]), 4);
    assert_eq!(bench.bytes(at, 8), [1, 2, 3, 4, 0, 0, 0, 0]);
    let set = bench.errno(id::skb_set_tunnel_opt, [context, at, 4]);
    assert_eq!(set, Errno::EINVAL, "a tunnel that it came through");
    assert_eq!(bench.ok(id::skb_get_xfrm_state, [context, 0, at, 28, 0]), 0);
    assert_eq!(
        bench.bytes(at, 20),
        [3, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 6, 6, 6, 6, 0, 0, 0, 0]
    );
    assert_eq!(
        bench.errno(id::skb_get_xfrm_state, [context, 1, at, 28, 0]),
        Errno::EINVAL
    );
}
