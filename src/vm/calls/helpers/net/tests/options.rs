//! Options of sockets and of TCP headers.

use super::*;

const SOL_SOCKET: u64 = 1;
const SOL_TCP: u64 = 6;

fn sock_ops() -> (Bench, u64) {
    on_context(ProgType::SockOps, context(ProgType::SockOps))
}

fn set(bench: &mut Bench, level: u64, name: u64, value: &[u8]) -> i64 {
    let (context, at) = (bench.context(), bench.memory(value));
    let len = value.len() as u64;
    bench
        .ok(id::setsockopt, [context, level, name, at, len])
        .cast_signed()
}

fn get(bench: &mut Bench, level: u64, name: u64, len: usize) -> (i64, Vec<u8>) {
    let (context, at) = (bench.context(), bench.memory(&vec![0xff; len]));
    let returned = bench.ok(id::getsockopt, [context, level, name, at, len as u64]);
    (returned.cast_signed(), bench.bytes(at, len))
}

#[test]
fn what_is_set_is_got() {
    let (mut bench, _) = sock_ops();
    let bench = &mut bench;
    assert_eq!(
        set(bench, SOL_SOCKET, 36, &9u32.to_ne_bytes()),
        0,
        "SO_MARK"
    );
    assert_eq!(
        get(bench, SOL_SOCKET, 36, 4),
        (0, 9u32.to_ne_bytes().to_vec())
    );
    assert_eq!(set(bench, SOL_SOCKET, 36, &[1, 2]), -22);
    assert_eq!(set(bench, SOL_SOCKET, 1, &[0; 4]), -22, "SO_DEBUG");
    assert_eq!(get(bench, SOL_SOCKET, 1, 4), (-22, vec![0; 4]));
    assert_eq!(set(bench, 99, 1, &[0; 4]), -22);
    assert_eq!(get(bench, SOL_TCP, 13, 8), (0, b"cubic\0\0\0".to_vec()));
    assert_eq!(set(bench, SOL_TCP, 13, b"reno\0"), 0);
    assert_eq!(get(bench, SOL_TCP, 13, 3), (0, b"re\0".to_vec()));
    assert_eq!(set(bench, SOL_TCP, 13, b"cdg"), -524);
    assert_eq!(set(bench, SOL_TCP, 1001, &[0; 4]), -22, "no window of 0");
    assert_eq!(set(bench, SOL_TCP, 1001, &10u32.to_ne_bytes()), 0);
    let sk = bench.machine.space.load(bench.context() + 184, 8).unwrap();
    let tcp = bench.ok(id::tcp_sock, [sk]);
    assert_eq!(bench.machine.space.load(tcp, 4), Ok(10), "snd_cwnd");
}

#[test]
fn callbacks_are_asked_for() {
    let (mut bench, context) = sock_ops();
    assert_eq!(bench.ok(id::sock_ops_cb_flags_set, [context, 5]), 0);
    assert_eq!(bench.ok(id::sock_ops_cb_flags_set, [context, 0x83]), 0x80);
    assert_eq!(bench.machine.space.load(context + 84, 4), Ok(3));
    assert_eq!(get(&mut bench, SOL_TCP, 1008, 4), (0, vec![3, 0, 0, 0]));
}

#[test]
fn header_options_are_searched_and_written() {
    const LEN_CB: u32 = 14;
    const WRITE_CB: u32 = 15;
    let mut header = vec![0; 20];
    header[12] = 0x70;
    header.extend([1, 2, 4, 5, 0xb4, 254, 4, 0xab]);
    let event = |op: u32| {
        let event = context(ProgType::SockOps).set("op", op).unwrap();
        event.with(|kern| kern.option_room = 6)
    };
    let read = event(13).data(header.clone()).unwrap();
    let (mut bench, context) = on_context(ProgType::SockOps, read);
    let load = |bench: &mut Bench, wanted: &[u8]| {
        let at = bench.memory(wanted);
        let len = wanted.len() as u64;
        let returned = bench
            .ok(id::load_hdr_opt, [context, at, len, 0])
            .cast_signed();
        (returned, bench.bytes(at, wanted.len()))
    };
    assert_eq!(load(&mut bench, &[2, 0, 0, 0]), (4, vec![2, 4, 5, 0xb4]));
    assert_eq!(load(&mut bench, &[2, 0, 0]), (-28, vec![2, 4, 5]));
    assert_eq!(load(&mut bench, &[3, 0]).0, -14, "the last one is cut off");
    assert_eq!(load(&mut bench, &[254, 4, 0xab, 0]).0, -14);
    assert_eq!(load(&mut bench, &[1, 0]).0, -22);
    assert_eq!(
        bench.errno(id::reserve_hdr_opt, [context, 4, 0]),
        Errno::EPERM
    );

    let (mut bench, context) = on_context(ProgType::SockOps, event(LEN_CB));
    assert_eq!(bench.ok(id::reserve_hdr_opt, [context, 4, 0]), 0);
    assert_eq!(
        bench.errno(id::reserve_hdr_opt, [context, 4, 0]),
        Errno::ENOSPC
    );
    assert_eq!(
        bench.errno(id::reserve_hdr_opt, [context, 1, 0]),
        Errno::EINVAL
    );

    header.truncate(24);
    header[20..].copy_from_slice(&[1, 3, 3, 7]);
    let write = event(WRITE_CB).data(header).unwrap();
    let (mut bench, context) = on_context(ProgType::SockOps, write);
    let store = |bench: &mut Bench, option: &[u8]| {
        let at = bench.memory(option);
        let len = option.len() as u64;
        bench
            .ok(id::store_hdr_opt, [context, at, len, 0])
            .cast_signed()
    };
    assert_eq!(store(&mut bench, &[3, 3, 1]), -17);
    assert_eq!(store(&mut bench, &[8, 7, 1, 2, 3, 4, 5]), -28);
    assert_eq!(store(&mut bench, &[254, 4, 9, 9]), 0);
    assert_eq!(
        (
            store(&mut bench, &[254, 4, 9, 9]),
            store(&mut bench, &[4, 2])
        ),
        (-28, 0)
    );
    let placed = &bench.machine.current().unwrap().placed;
    let written = placed.packet_bytes(&bench.machine.space).unwrap();
    assert_eq!(written[20..], [1, 3, 3, 7, 254, 4, 9, 9, 4, 2]);
}

#[test]
fn the_syn_is_kept() {
    let syn = Packet::ethernet()
        .ipv4("10.0.0.2", "10.0.0.1")
        .tcp(5, 80)
        .tcp_flags("S");
    let syn = syn.tcp_options(&[2, 4, 5, 0xb4]).build().unwrap();
    let event = context(ProgType::SockOps).with(|kern| kern.syn = syn[14..].to_vec());
    let (mut bench, context) = on_context(ProgType::SockOps, event);
    assert_eq!(get(&mut bench, SOL_TCP, 1005, 30).0, 24);
    let (returned, bytes) = get(&mut bench, SOL_TCP, 1006, 60);
    assert_eq!((returned, &bytes[..44]), (44, &syn[14..]));
    assert_eq!(get(&mut bench, SOL_TCP, 1006, 8).0, -28);
    assert_eq!(get(&mut bench, SOL_TCP, 1007, 60).0, -2, "no link header");
    let at = bench.memory(&[2, 0, 0, 0]);
    assert_eq!(bench.ok(id::load_hdr_opt, [context, at, 4, 1]), 4);
}
