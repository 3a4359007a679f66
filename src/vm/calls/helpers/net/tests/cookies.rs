//! SYN cookies.

use super::*;

/// Headers of a SYN, or of the ACK that returns a cookie: IP, TCP.
fn headers(flags: &str, sequence: u32, acknowledged: u32) -> (Vec<u8>, Vec<u8>) {
    let bytes = Packet::ethernet().ipv4("10.0.0.2", "10.0.0.1").tcp(5, 80);
    let bytes = bytes.tcp_flags(flags).tcp_numbers(sequence, acknowledged);
    let bytes = bytes.tcp_options(&[2, 4, 5, 0xb4]).build().unwrap();
    (bytes[14..34].to_vec(), bytes[34..].to_vec())
}

#[test]
fn a_cookie_comes_back() {
    let (mut bench, _) = on_packet(ProgType::Xdp, |_| {});
    let (ip, syn) = headers("S", 1000, 0);
    let (ip, at) = (bench.memory(&ip), bench.memory(&syn));
    let made = bench.ok(id::tcp_raw_gen_syncookie_ipv4, [ip, at, 24]);
    assert_eq!(made >> 32, 1460);
    let cookie = u32::try_from(made & 0xffff_ffff).unwrap();
    let check = |bench: &mut Bench, sequence, acknowledged| {
        let (_, ack) = headers("A", sequence, acknowledged);
        let ack = bench.memory(&ack);
        bench
            .ok(id::tcp_raw_check_syncookie_ipv4, [ip, ack])
            .cast_signed()
    };
    assert_eq!(check(&mut bench, 1001, cookie.wrapping_add(1)), 0);
    assert_eq!(check(&mut bench, 1001, cookie.wrapping_add(2)), -13);
    assert_eq!(check(&mut bench, 1010, cookie.wrapping_add(1)), -13);
    let minute = std::time::Duration::from_secs(60);
    bench.machine.world.clock().advance(minute);
    assert_eq!(
        check(&mut bench, 1001, cookie.wrapping_add(1)),
        0,
        "a minute is fine"
    );
    bench.machine.world.clock().advance(minute);
    assert_eq!(
        check(&mut bench, 1001, cookie.wrapping_add(1)),
        -13,
        "two are not"
    );
    bench.machine.world.net().set_secret(1);
    let other = bench.ok(id::tcp_raw_gen_syncookie_ipv4, [ip, at, 24]);
    assert_ne!(made, other);
}

#[test]
fn listeners_make_and_check_them() {
    let (mut bench, context) = on_packet(ProgType::Xdp, |net| {
        net.tcp()
            .local("10.0.0.1:80")
            .unwrap()
            .state(SocketState::Listen);
    });
    let tuple = [&[10, 0, 0, 2, 10, 0, 0, 1][..], &[0, 5, 0, 80]].concat();
    let tuple = bench.memory(&tuple);
    let sk = bench.ok(id::sk_lookup_tcp, [context, tuple, 12, u64::MAX, 0]);
    let (ip, syn) = headers("S", 1000, 0);
    let (ip, syn) = (bench.memory(&ip), bench.memory(&syn));
    let made = bench.ok(id::tcp_gen_syncookie, [sk, ip, 20, syn, 24]);
    let cookie = u32::try_from(made & 0xffff_ffff).unwrap();
    let (_, ack) = headers("A", 1001, cookie.wrapping_add(1));
    let ack = bench.memory(&ack);
    assert_eq!(bench.ok(id::tcp_check_syncookie, [sk, ip, 20, ack, 24]), 0);
    let errno = |bench: &mut Bench, helper, tcp| bench.errno(helper, [sk, ip, 20, tcp, 24]);
    assert_eq!(
        errno(&mut bench, id::tcp_check_syncookie, syn),
        Errno::ENOENT
    );
    assert_eq!(errno(&mut bench, id::tcp_gen_syncookie, ack), Errno::EINVAL);
    bench.machine.world.net().set_syncookies(false);
    assert_eq!(errno(&mut bench, id::tcp_gen_syncookie, syn), Errno::ENOENT);
    assert_eq!(
        errno(&mut bench, id::tcp_check_syncookie, ack),
        Errno::EINVAL
    );
}
