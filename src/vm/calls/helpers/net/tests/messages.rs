//! Messages being sent to a socket.

use super::*;

fn message(bench: &Bench) -> Vec<u8> {
    let placed = &bench.machine.current().unwrap().placed;
    placed.packet_bytes(&bench.machine.space).unwrap()
}

#[test]
fn bytes_come_and_go() {
    let event = Event::packet(*b"0123456789");
    let (mut bench, context) = on_context(ProgType::SkMsg, event);
    let at = |bench: &Bench, offset| bench.machine.space.load(context + offset, 8).unwrap();
    assert_eq!(bench.ok(id::msg_pull_data, [context, 2, 5, 0]), 0);
    let (data, end) = (at(&bench, 0), at(&bench, 8));
    assert_eq!((end - data, bench.bytes(data, 3)), (3, b"234".to_vec()));
    assert_eq!(message(&bench), b"0123456789");
    assert_eq!(bench.ok(id::msg_push_data, [context, 4, 2, 0]), 0);
    assert_eq!(message(&bench), b"0123\x00\x00456789");
    assert_eq!(bench.machine.space.load(context + 68, 4), Ok(12), "size");
    assert_eq!(bench.ok(id::msg_pop_data, [context, 0, 6, 0]), 0);
    assert_eq!(message(&bench), b"456789");
    for (helper, args) in [
        (id::msg_pull_data, [3, 3, 0]),
        (id::msg_pull_data, [0, 7, 0]),
        (id::msg_pull_data, [0, 1, 1]),
        (id::msg_push_data, [7, 1, 0]),
        (id::msg_pop_data, [6, 1, 0]),
        (id::msg_pop_data, [5, 2, 0]),
    ] {
        let [a, b, c] = args;
        assert_eq!(
            bench.errno(helper, [context, a, b, c]),
            Errno::EINVAL,
            "{args:?}"
        );
    }
    assert_eq!(bench.ok(id::msg_apply_bytes, [context, 3]), 0);
    assert_eq!(bench.ok(id::msg_cork_bytes, [context, 4]), 0);
    let kern = &bench.machine.current().unwrap().placed.kern;
    assert_eq!((kern.apply_bytes, kern.cork_bytes), (3, 4));
}
