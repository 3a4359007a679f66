use super::super::super::helpers::testing::Bench;
use super::super::dynptr_probe as probe;
use super::*;
use crate::spec::ProgType;
use crate::vm::HelperProblem;
use crate::vm::events::Event;

const EINVAL: u64 = Errno::EINVAL.to_ret();
const ERANGE: u64 = Errno::ERANGE.to_ret();
const E2BIG: u64 = Errno::E2BIG.to_ret();

type Body = fn(&mut Call<'_>) -> Returned;

fn run<const N: usize>(bench: &mut Bench, body: Body, args: [u64; N]) -> u64 {
    bench.body(body, args).unwrap()
}

/// Makes a dynptr to these bytes; returns the dynptr's and the bytes' address.
fn local(bench: &mut Bench, bytes: &[u8]) -> (u64, u64) {
    let data = bench.memory(bytes);
    let pointer = bench.memory(&[0; 16]);
    let size = u32::try_from(bytes.len()).unwrap();
    let made = Dynptr::new(DynptrKind::Local, data, size);
    made.store(&bench.machine.space, pointer).unwrap();
    (pointer, data)
}

#[test]
fn a_dynptr_is_narrowed_and_cloned() {
    let mut bench = Bench::new();
    let (pointer, data) = local(&mut bench, &[0, 1, 2, 3, 4, 5, 6, 7]);
    let (other, null) = (bench.memory(&[9; 16]), bench.memory(&[0; 16]));
    let on = &mut bench;
    assert_eq!(run(on, adjust, [pointer, 2, 6]), 0);
    assert_eq!(run(on, size, [pointer]), 4);
    assert_eq!(run(on, slice, [pointer, 1, 0, 3]), data + 3);
    assert_eq!(run(on, slice, [pointer, 2, 0, 3]), 0);
    assert_eq!(run(on, adjust, [pointer, 3, 2]), EINVAL);
    assert_eq!(run(on, adjust, [pointer, 0, 5]), ERANGE);
    assert_eq!(run(on, adjust, [pointer, 5, 5]), ERANGE);
    assert_eq!(run(on, clone, [pointer, other]), 0);
    assert_eq!(run(on, adjust, [other, 4, 4]), 0);
    assert_eq!([run(on, size, [pointer]), run(on, size, [other])], [4, 0]);

    assert_eq!(run(on, clone, [null, other]), EINVAL);
    for (pointer, is_null_) in [(pointer, 0), (null, 1), (other, 1)] {
        assert_eq!(run(on, is_null, [pointer]), is_null_);
        assert_eq!(run(on, is_rdonly, [pointer]), 0);
    }
    assert_eq!(run(on, size, [null]), EINVAL);
    assert_eq!(run(on, adjust, [null, 0, 0]), EINVAL);
    assert_eq!(run(on, slice_rdwr, [null, 0, 0, 0]), 0);
}

#[test]
fn bytes_are_set_and_copied() {
    let mut bench = Bench::new();
    let (pointer, data) = local(&mut bench, &[0, 1, 2, 3, 4, 5, 6, 7]);
    let (other, to) = local(&mut bench, &[9; 4]);
    let null = bench.memory(&[0; 16]);
    let on = &mut bench;
    assert_eq!(run(on, copy, [other, 1, pointer, 5, 3]), 0);
    assert_eq!(on.bytes(to, 4), [9, 5, 6, 7]);
    assert_eq!(run(on, copy, [pointer, 1, pointer, 0, 5]), 0);
    assert_eq!(on.bytes(data, 8), [0, 0, 1, 2, 3, 4, 6, 7]);
    assert_eq!(run(on, copy, [other, 2, pointer, 0, 3]), E2BIG);
    assert_eq!(run(on, copy, [other, 2, pointer, 7, 2]), E2BIG);
    assert_eq!(run(on, copy, [null, 0, pointer, 0, 1]), EINVAL);
    assert_eq!(run(on, copy, [null, 0, null, 0, 1]), E2BIG);
    assert_eq!(run(on, copy, [null, 0, null, 0, 0]), 0);
    assert_eq!(run(on, memset, [other, 1, 2, 0x1ee]), 0);
    assert_eq!(on.bytes(to, 4), [9, 0xee, 0xee, 7]);
    assert_eq!(run(on, memset, [other, 1, 4, 0]), E2BIG);
    assert_eq!(run(on, memset, [null, 0, 1, 0]), E2BIG);
    let read_only = load_at(on, other).read_only();
    read_only.store(&on.machine.space, other).unwrap();
    assert_eq!(run(on, is_rdonly, [other]), 1);
    assert_eq!(run(on, memset, [other, 0, 1, 0]), EINVAL);
    assert_eq!(run(on, copy, [other, 0, pointer, 0, 1]), EINVAL);
    assert_eq!(run(on, slice_rdwr, [other, 0, 0, 1]), 0);
    assert_eq!(run(on, slice, [other, 0, 0, 1]), to);
}

fn load_at(bench: &Bench, at: u64) -> Dynptr {
    Dynptr::load(&bench.machine.space, at).unwrap()
}

#[test]
fn a_packet_is_read_in_place_and_by_copy() {
    let bytes: Vec<u8> = (0..=255).cycle().take(6000).collect();
    let mut bench = Bench::on(ProgType::Xdp, &Event::packet(bytes));
    let (context, pointer) = (bench.context(), bench.memory(&[9; 16]));
    let buffer = bench.memory(&[0; 16]);
    let on = &mut bench;
    assert_eq!(run(on, from_xdp, [context, 1, pointer]).cast_signed(), -22);
    assert_eq!(run(on, is_null, [pointer]), 1);
    assert_eq!(run(on, from_xdp, [context, 0, pointer]), 0);
    assert_eq!(run(on, size, [pointer]), 6000);
    let direct = run(on, slice_rdwr, [pointer, 14, buffer, 16]);
    assert_eq!(on.bytes(direct, 2), [14, 15]);
    on.machine.space.store(direct, 1, 0xaa).unwrap();
    assert_eq!(on.machine.packet_bytes(14, 1).unwrap(), [0xaa]);
    // Bytes in fragments are copied.
    let far = 5000u64;
    assert_eq!(run(on, slice, [pointer, far, buffer, 16]), buffer);
    assert_eq!(on.bytes(buffer, 1), [136]);
    assert_eq!(run(on, slice, [pointer, far, 0, 16]), 0);
    assert_eq!(run(on, slice, [pointer, 5990, buffer, 16]), 0);
    assert_eq!(run(on, memset, [pointer, 4000, 2000, 0x55]), 0);
    assert_eq!(run(on, slice, [pointer, far, buffer, 16]), buffer);
    assert_eq!(on.bytes(buffer, 16), [0x55; 16]);
}

#[test]
fn programs_that_only_read_packets_get_one_for_reading() {
    for (prog_type, read_only) in [(ProgType::SocketFilter, 1), (ProgType::SchedCls, 0)] {
        let mut bench = Bench::on(prog_type, &Event::packet([7; 60]));
        let (context, pointer) = (bench.context(), bench.memory(&[9; 16]));
        let on = &mut bench;
        assert_eq!(run(on, from_skb, [context, 0, pointer]), 0);
        assert_eq!(run(on, is_rdonly, [pointer]), read_only);
        assert_ne!(run(on, slice, [pointer, 0, 0, 14]), 0);
        let wrong = on.body(from_skb, [pointer, 0, pointer]).unwrap_err();
        assert!(matches!(wrong, HelperProblem::Argument { arg: 1, .. }));
    }
}

#[test]
fn strings_and_bytes_are_read_into_dynptrs() {
    let mut bench = Bench::new();
    let (pointer, data) = local(&mut bench, &[9; 8]);
    let user = bench.machine.world.user_cstr("text");
    let kernel = bench.memory(b"kern\0el!");
    let on = &mut bench;
    assert_eq!(
        run(on, probe::probe_read_user_str, [pointer, 1, 7, user]),
        5
    );
    assert_eq!(on.bytes(data, 8), b"\x09text\0\x09\x09");
    assert_eq!(
        run(on, probe::probe_read_kernel_str, [pointer, 0, 3, kernel]),
        3
    );
    assert_eq!(on.bytes(data, 3), b"ke\0");
    assert_eq!(
        run(on, probe::probe_read_kernel, [pointer, 0, 8, kernel]),
        0
    );
    assert_eq!(on.bytes(data, 8), b"kern\0el!");
    assert_eq!(
        run(on, probe::probe_read_user, [pointer, 7, 2, user]),
        E2BIG
    );
    let efault = Errno::EFAULT.to_ret();
    assert_eq!(run(on, probe::probe_read_user, [pointer, 0, 2, 16]), efault);
    assert_eq!(run(on, probe::copy_from_user, [pointer, 2, 2, user]), 0);
    assert_eq!(on.bytes(data, 4), b"kete");
    let user_str = probe::copy_from_user_str;
    assert_eq!(run(on, user_str, [pointer, 4, 4, user + 2]), 3);
    assert_eq!(on.bytes(data + 4, 4), b"xt\0!");
    let task = on.machine.world.task_address().unwrap();
    let of_task = probe::copy_from_user_task;
    assert_eq!(run(on, of_task, [pointer, 0, 2, user + 2, task]), 0);
    let of_task = probe::copy_from_user_task_str;
    assert_eq!(run(on, of_task, [pointer, 0, 8, user, task]), 5);
    assert_eq!(on.bytes(data, 5), b"text\0");
    assert!(on.body(of_task, [pointer, 0, 8, user, user]).is_err());
}

#[test]
fn metadata_lies_in_front_of_the_packet() {
    let event = Event::packet([7; 60]).metadata([1, 2, 3, 4]).unwrap();
    let mut bench = Bench::on(ProgType::SchedCls, &event);
    let (context, pointer) = (bench.context(), bench.memory(&[9; 16]));
    let on = &mut bench;
    assert_eq!(run(on, from_skb_meta, [context, 0, pointer]), 0);
    assert_eq!(run(on, size, [pointer]), 4);
    let found = run(on, slice_rdwr, [pointer, 1, 0, 3]);
    assert_eq!(on.bytes(found, 3), [2, 3, 4]);
    assert_eq!(run(on, memset, [pointer, 0, 2, 9]), 0);
    assert_eq!(on.bytes(found - 1, 4), [9, 9, 3, 4]);
}

#[test]
fn a_string_for_a_fragmented_packet_goes_piece_by_piece() {
    let mut bench = Bench::on(ProgType::Xdp, &Event::packet([7; 6000]));
    let (context, pointer) = (bench.context(), bench.memory(&[9; 16]));
    let user = bench.machine.world.user_cstr(&"x".repeat(600));
    let (to, on) = (bench.memory(&[0; 602]), &mut bench);
    assert_eq!(run(on, from_xdp, [context, 0, pointer]), 0);
    assert_eq!(
        run(on, probe::probe_read_user_str, [pointer, 5000, 700, user]),
        601
    );
    let read = crate::spec::helpers::id::dynptr_read;
    assert_eq!(on.ok(read, [to, 602, pointer, 5000, 0]), 0);
    let wanted = [vec![b'x'; 600], vec![0, 7]].concat();
    assert_eq!(on.bytes(to, 602), wanted);
}
