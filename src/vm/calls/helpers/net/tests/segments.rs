//! Segment routing.

use super::*;

/// An IPv6 packet with a segment routing header of two segments, followed by 8 bytes.
fn routed() -> Event {
    let srh = [
        &[59, 5, 4, 1, 1, 0, 0, 0][..],
        &[1; 16],
        &[2; 16],
        &[5, 6, 0, 0, 0, 0, 0, 0],
    ];
    let packet = Packet::ethernet()
        .ipv6("fd00::1", "fd00::2")
        .ip_protocol(43);
    packet.payload(srh.concat()).event().unwrap()
}

fn bytes(bench: &Bench) -> Vec<u8> {
    let placed = &bench.machine.current().unwrap().placed;
    placed.packet_bytes(&bench.machine.space).unwrap()
}

#[test]
fn a_header_grows_and_stays_valid() {
    let (mut bench, context) = on_context(ProgType::LwtSeg6local, routed());
    bench.machine.world.net().route("fd00::/8").unwrap();
    let end = 40 + 8 + 32 + 8;
    assert_eq!(bench.ok(id::lwt_seg6_adjust_srh, [context, end, 8]), 0);
    let written = bench.memory(&[5, 6, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        bench.ok(id::lwt_seg6_store_bytes, [context, end, written, 8]),
        0
    );
    let table = bench.memory(&[254, 0, 0, 0]);
    assert_eq!(bench.ok(id::lwt_seg6_action, [context, 3, table, 4]), 0);
    let packet = bytes(&bench);
    assert_eq!((packet.len(), packet[5], packet[41]), (96, 56, 6));
    let flags = bench.memory(&[9]);
    assert_eq!(
        bench.ok(id::lwt_seg6_store_bytes, [context, 45, flags, 1]),
        0
    );
    for at in [0, 41, 50] {
        let args = [context, at, flags, 1];
        assert_eq!(
            bench.errno(id::lwt_seg6_store_bytes, args),
            Errno::EFAULT,
            "{at}"
        );
    }
    assert_eq!(
        bench.errno(id::lwt_seg6_adjust_srh, [context, 50, 8]),
        Errno::EFAULT
    );
    let next = bench.memory(&[0xff; 16]);
    assert_eq!(
        bench.errno(id::lwt_seg6_action, [context, 2, next, 16]),
        Errno::ENETUNREACH
    );
    assert_eq!(
        bench.errno(id::lwt_seg6_action, [context, 2, next, 4]),
        Errno::EINVAL
    );
    assert_eq!(
        bench.errno(id::lwt_seg6_action, [context, 99, next, 16]),
        Errno::EINVAL
    );
}

#[test]
fn a_broken_header_is_found_out() {
    let (mut bench, context) = on_context(ProgType::LwtSeg6local, routed());
    // A length that does not end at the header's end.
    assert_eq!(bench.ok(id::lwt_seg6_adjust_srh, [context, 88, 4]), 0);
    let next = bench.memory(&[0xfd; 16]);
    assert_eq!(
        bench.errno(id::lwt_seg6_action, [context, 2, next, 16]),
        Errno::EBADMSG
    );
    let plain = Packet::ethernet()
        .ipv6("fd00::1", "fd00::2")
        .udp(1, 2)
        .event()
        .unwrap();
    let (mut bench, context) = on_context(ProgType::LwtSeg6local, plain);
    assert_eq!(
        bench.errno(id::lwt_seg6_adjust_srh, [context, 40, 8]),
        Errno::EINVAL
    );
}

#[test]
fn headers_are_put_before_and_into_packets() {
    let srh = [&[0, 2, 4, 0, 0, 0, 0, 0][..], &[9; 16]].concat();
    for (kind, len, next) in [(1, 24, 17), (0, 64, 41)] {
        let plain = Packet::ethernet()
            .ipv6("fd00::1", "fd00::2")
            .udp(1, 2)
            .event()
            .unwrap();
        let (mut bench, context) = on_context(ProgType::LwtIn, plain);
        bench.machine.world.net().route("::/0").unwrap();
        let before = bytes(&bench).len();
        let at = bench.memory(&srh);
        assert_eq!(bench.ok(id::lwt_push_encap, [context, kind, at, 24]), 0);
        let packet = bytes(&bench);
        assert_eq!(
            (packet.len() - before, packet[6], packet[40]),
            (len, 43, next)
        );
        assert_eq!(packet[24..40], [9; 16], "to the first segment");
        let bad = bench.memory(&[0; 24]);
        let args = [context, kind, bad, 24];
        assert_eq!(bench.errno(id::lwt_push_encap, args), Errno::EINVAL);
    }
}
