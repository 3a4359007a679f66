//! Routes.

use super::*;

const SKIP_NEIGH: u64 = 1 << 2;

fn parameters(family: u8, destination: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    (bytes[0], bytes[8]) = (family, 2);
    bytes[32..32 + destination.len()].copy_from_slice(destination);
    bytes
}

fn mock(net: &mut Net) {
    net.device(2, "in");
    let out = net.device(3, "out").mtu(1400).address("10.9.0.1").unwrap();
    out.mac("02:00:00:00:00:33").unwrap();
    net.device(4, "still").forwards(false);
    net.route("10.0.0.0/8")
        .unwrap()
        .dev(3)
        .via("10.9.0.9")
        .unwrap()
        .metric(5);
    net.route("10.7.0.0/16").unwrap().dev(3).encapsulated();
    net.route("10.6.0.0/16").unwrap().dev(3).mtu(900);
    net.route("172.16.0.0/12")
        .unwrap()
        .kind(RouteKind::Prohibit);
    net.route("192.0.2.0/24")
        .unwrap()
        .kind(RouteKind::Blackhole);
    net.route("198.51.100.0/24")
        .unwrap()
        .kind(RouteKind::Unreachable);
    net.route("203.0.113.0/24").unwrap().kind(RouteKind::Local);
    net.route("10.0.0.0/8").unwrap().dev(2).table(100);
    net.route("fd00::/8").unwrap().dev(3);
    net.route("10.5.0.0/16")
        .unwrap()
        .dev(3)
        .via("fd00::9")
        .unwrap();
    net.neighbour("10.9.0.9", 3, "02:00:00:00:00:99").unwrap();
    net.neighbour("fd00::9", 3, "02:00:00:00:00:98").unwrap();
}

/// The return value of a lookup and the parameters after it.
fn look_up(prog_type: ProgType, bytes: &[u8], flags: u64) -> (u64, Vec<u8>) {
    let (mut bench, context) = on_packet(prog_type, mock);
    let at = bench.memory(bytes);
    let found = bench.ok(id::fib_lookup, [context, at, 64, flags]);
    (found, bench.bytes(at, 64))
}

#[test]
fn a_route_leads_to_a_neighbour() {
    let (found, after) = look_up(ProgType::Xdp, &parameters(2, &[10, 1, 2, 3]), 0);
    assert_eq!(found, 0);
    assert_eq!(
        (after[8], after[12], &after[32..36]),
        (3, 5, &[10, 9, 0, 9][..])
    );
    assert_eq!(after[52..64], [2, 0, 0, 0, 0, 0x33, 2, 0, 0, 0, 0, 0x99]);
    assert_eq!(u16::from_ne_bytes([after[6], after[7]]), 1400);
    let (found, after) = look_up(ProgType::SchedCls, &parameters(2, &[10, 5, 0, 1]), 0);
    assert_eq!(
        (found, after[0], after[32]),
        (0, 10, 0xfd),
        "a gateway of the other family"
    );
}

#[test]
fn every_result() {
    let ask = |to: [u8; 4], flags| look_up(ProgType::Xdp, &parameters(2, &to), flags).0;
    assert_eq!(ask([192, 0, 2, 1], 0), 1);
    assert_eq!(ask([198, 51, 100, 1], 0), 2);
    assert_eq!(ask([172, 16, 0, 1], 0), 3);
    assert_eq!((ask([203, 0, 113, 1], 0), ask([1, 1, 1, 1], 0)), (4, 4));
    assert_eq!(ask([10, 7, 0, 1], 0), 6);
    assert_eq!(
        (ask([10, 6, 0, 1], 0), ask([10, 6, 0, 1], SKIP_NEIGH)),
        (7, 0)
    );
    let mut still = parameters(2, &[10, 0, 0, 1]);
    still[8] = 4;
    assert_eq!(look_up(ProgType::Xdp, &still, 0).0, 5);
    let mut long = parameters(2, &[10, 6, 0, 1]);
    long[6..8].copy_from_slice(&901u16.to_ne_bytes());
    let (found, after) = look_up(ProgType::SchedCls, &long, SKIP_NEIGH);
    assert_eq!((found, u16::from_ne_bytes([after[6], after[7]])), (8, 900));
    let six = parameters(10, &[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
    assert_eq!(
        look_up(ProgType::Xdp, &six, SKIP_NEIGH | 1 << 4).0,
        9,
        "no source"
    );
    let local = parameters(10, &[0xfe, 0x80]);
    assert_eq!(look_up(ProgType::Xdp, &local, 0).0, 4);
}

#[test]
fn flags_choose_table_device_and_source() {
    const DIRECT: u64 = 1;
    const OUTPUT: u64 = 1 << 1;
    const TBID: u64 = 1 << 3;
    const SRC: u64 = 1 << 4;
    let mut by_table = parameters(2, &[10, 1, 0, 1]);
    by_table[48] = 100;
    let (found, after) = look_up(ProgType::Xdp, &by_table, DIRECT | TBID | SKIP_NEIGH);
    assert_eq!((found, after[8], after[48]), (0, 2, 0));
    let main = parameters(2, &[10, 1, 0, 1]);
    assert_eq!(
        look_up(ProgType::Xdp, &main, OUTPUT).0,
        4,
        "not out of device 2"
    );
    let (found, after) = look_up(ProgType::Xdp, &main, SRC);
    assert_eq!((found, &after[16..20]), (0, &[10, 9, 0, 1][..]));
}

#[test]
fn mtus_are_the_devices() {
    let (mut bench, context) = on_packet(ProgType::SchedCls, mock);
    let at = bench.memory(&1401u32.to_ne_bytes());
    assert_eq!(bench.ok(id::check_mtu, [context, 3, at, 0, 0]), 1);
    assert_eq!(bench.bytes(at, 4), 1400u32.to_ne_bytes());
    assert_eq!(bench.ok(id::check_mtu, [context, 3, at, 0, 0]), 0);
}
