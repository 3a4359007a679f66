//! Cgroup hooks.

use super::*;

#[test]
fn a_sysctl_is_seen_and_changed() {
    let event = context(ProgType::CgroupSysctl).set("write", 1).unwrap();
    let sysctl = Sysctl::write("net/ipv4/tcp_mem", "1 2\n", "3 4");
    let event = event.with(|kern| kern.sysctl = Some(sysctl));
    let (mut bench, context) = on_context(ProgType::CgroupSysctl, event);
    let at = bench.memory(&[0xff; 20]);
    let read = |bench: &mut Bench, helper: HelperId, args: [u64; 2]| {
        let returned = bench
            .ok(helper, [context, at, args[0], args[1]])
            .cast_signed();
        (returned, bench.bytes(at, 6))
    };
    let name = id::sysctl_get_name;
    assert_eq!(read(&mut bench, name, [20, 0]), (16, b"net/ip".to_vec()));
    assert_eq!(read(&mut bench, name, [20, 1]), (7, b"tcp_me".to_vec()));
    assert_eq!(read(&mut bench, name, [4, 1]), (-7, b"tcp\0me".to_vec()));
    let current = id::sysctl_get_current_value;
    assert_eq!(
        read(&mut bench, current, [6, 0]),
        (4, b"1 2\n\0\0".to_vec())
    );
    assert_eq!(read(&mut bench, current, [4, 0]).0, -7);
    let new = id::sysctl_get_new_value;
    assert_eq!(read(&mut bench, new, [6, 0]), (3, b"3 4\0\0\0".to_vec()));
    let other = bench.memory(b"600");
    assert_eq!(bench.ok(id::sysctl_set_new_value, [context, other, 3]), 0);
    assert_eq!(read(&mut bench, new, [6, 0]), (3, b"600\0\0\0".to_vec()));
    let kern = &bench.machine.current().unwrap().placed.kern;
    let replaced = kern.sysctl.as_ref().unwrap().replaced.as_deref();
    assert_eq!(replaced, Some(&b"600"[..]));
}

#[test]
fn a_sysctl_that_is_read_has_no_new_value() {
    let read = Sysctl::read("kernel/hostname", "box\n");
    let event = context(ProgType::CgroupSysctl).with(|kern| kern.sysctl = Some(read));
    let (mut bench, context) = on_context(ProgType::CgroupSysctl, event);
    let at = bench.memory(&[0xff; 4]);
    assert_eq!(
        bench.errno(id::sysctl_get_new_value, [context, at, 4]),
        Errno::EINVAL
    );
    assert_eq!(bench.bytes(at, 4), [0; 4]);
    assert_eq!(
        bench.errno(id::sysctl_set_new_value, [context, at, 4]),
        Errno::EINVAL
    );
    let bare = super::context(ProgType::CgroupSysctl);
    let (mut bench, context) = on_context(ProgType::CgroupSysctl, bare);
    let at = bench.memory(&[0; 4]);
    let problem = bench
        .call(id::sysctl_get_current_value, [context, at, 4])
        .unwrap_err();
    assert!(problem.to_string().contains("Sysctl::read"), "{problem}");
}

#[test]
fn what_the_caller_gets() {
    let event = context(ProgType::CgroupSockopt)
        .set("retval", -1)
        .unwrap_or_else(|_| {
            context(ProgType::CgroupSockopt)
                .set("retval", u32::MAX)
                .unwrap()
        });
    let (mut bench, context) = on_context(ProgType::CgroupSockopt, event);
    assert_eq!(bench.ok(id::get_retval, []), u64::MAX);
    assert_eq!(bench.ok(id::set_retval, [5]), 0);
    assert_eq!(
        bench.machine.space.load(context + 36, 4),
        Ok(5),
        "the context's field"
    );
    let event = super::context(ProgType::CgroupSockAddr).with(|kern| kern.retval = -13);
    let (mut bench, _) = on_context(ProgType::CgroupSockAddr, event);
    assert_eq!(bench.errno(id::get_retval, []), Errno::EACCES);
    assert_eq!(bench.ok(id::set_retval, [(-1i64).cast_unsigned()]), 0);
    assert_eq!(bench.errno(id::get_retval, []), Errno::EPERM);
}

#[test]
fn a_socket_is_bound_before_it_connects() {
    let event = context(ProgType::CgroupSockAddr).set("family", 2).unwrap();
    let (mut bench, context) = on_context(ProgType::CgroupSockAddr, event);
    let mut address = vec![2, 0, 0, 0, 10, 0, 0, 5];
    address.resize(16, 0);
    let bind = |bench: &mut Bench, bytes: &[u8]| {
        let at = bench.memory(bytes);
        bench
            .ok(id::bind, [context, at, bytes.len() as u64])
            .cast_signed()
    };
    assert_eq!(bind(&mut bench, &[2]), -22);
    assert_eq!(bind(&mut bench, &address[..8]), -22);
    assert_eq!(bind(&mut bench, &[99, 0, 0, 0]), -97);
    assert_eq!(bind(&mut bench, &address), 0);
    let kern = &bench.machine.current().unwrap().placed.kern;
    assert_eq!(kern.bound, Some("10.0.0.5:0".parse().unwrap()));
}
