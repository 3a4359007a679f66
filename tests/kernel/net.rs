//! Networking helpers compared with the running kernel: the same program on the same packet,
//! run with `BPF_PROG_TEST_RUN` and on each engine, has the same return value, packet, helper
//! results, memory and context fields. Skipped if programs can't be loaded.

use crate::shared::here;
use crate::shared::snippet;

use bpflab::compare::{Answer, Engine, Kernel, Ours, Subject, difference};
use bpflab::harness::EngineKind;
use bpflab::spec::context::{Arch, Mode, Yield, check, layout};
use bpflab::spec::{AttachType, ProgType};
use bpflab::vm::events::{Checksum, Event};

use ProgType::{CgroupSkb, LwtXmit, SchedCls, SocketFilter, Xdp};
use snippet::{Arg, Snippet};

/// An Ethernet frame with IPv4 and TCP, 64 bytes in all.
fn ipv4() -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    bytes.extend([0x45, 2, 0, 50, 0x12, 0x34, 0, 0, 64, 6, 0x54, 0x8e]);
    bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend([
        0, 80, 3, 231, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 1, 0, 0xab, 0xcd, 0, 0,
    ]);
    bytes.extend(54..64);
    bytes
}

/// An Ethernet frame with IPv6, 80 bytes in all.
fn ipv6() -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd];
    bytes.extend([0x60, 0x10, 0, 0, 0, 26, 17, 64]);
    bytes.extend(1..=32);
    bytes.extend([0, 53, 3, 231, 0, 26, 0xab, 0xcd]);
    bytes.extend(62..80);
    bytes
}

/// IPv4 after a VLAN tag.
fn tagged() -> Vec<u8> {
    let mut bytes = ipv4();
    bytes.splice(12..12, [0x81, 0, 0x20, 5]);
    bytes
}

/// IPv4 after two VLAN tags.
fn twice_tagged() -> Vec<u8> {
    let mut bytes = tagged();
    bytes.splice(12..12, [0x88, 0xa8, 0x30, 7]);
    bytes
}

fn n(number: i64) -> Arg {
    Arg::N(number)
}

fn m(len: usize) -> Arg {
    Arg::M(vec![0; len])
}

/// Context fields that helpers change.
const CHANGING: &[&str] = &[
    "len",
    "pkt_type",
    "protocol",
    "vlan_present",
    "vlan_tci",
    "vlan_proto",
    "gso_segs",
    "gso_size",
];

/// Compares a program on a packet on all engines and in the kernel.
#[track_caller]
fn same(name: &str, snippet: &Snippet, event: &Event) {
    let subject = Subject::new(snippet.build(1), event.clone());
    let answers: Vec<Answer> = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit]
        .map(|kind| {
            Ours::new(kind)
                .run(&subject)
                .unwrap_or_else(|error| panic!("{name}: {error}"))
        })
        .into();
    for answer in &answers[1..] {
        if let Some(difference) = difference(&answers[0], answer) {
            panic!("{name}: between engines: {difference}");
        }
    }
    let details = answers[0].details.as_ref().unwrap();
    assert_eq!(details.fault, None, "{name}");
    let kernel = Kernel
        .run(&subject)
        .unwrap_or_else(|error| panic!("{name}: in the kernel: {error}"));
    if let Some(difference) = difference(&answers[0], &kernel) {
        let difference: String = difference.to_string().chars().take(4000).collect();
        panic!("{name}: here and in the kernel: {difference}");
    }
}

fn tc() -> Snippet {
    Snippet::new(SchedCls)
}

#[test]
fn packets_change_their_shape() {
    if here::kernel().is_none() {
        return;
    }
    let gso = |event: Event| {
        event
            .set("gso_size", 1000)
            .unwrap()
            .set("gso_segs", 3)
            .unwrap()
    };
    let packets = [
        ("IPv4", Event::packet(ipv4())),
        ("IPv6", Event::packet(ipv6())),
        ("tagged", Event::packet(tagged())),
        ("IPv4 of several", gso(Event::packet(ipv4()))),
    ];
    for (packet, event) in &packets {
        for (len, flags) in [
            (60, 0),
            (100, 0),
            (14, 0),
            (13, 0),
            (0, 0),
            (5000, 0),
            (17000, 0),
            (70, 1),
        ] {
            let snippet = tc()
                .call("bpf_skb_change_tail", [n(len), n(flags)])
                .see(CHANGING)
                .packet(56);
            same(
                &format!("change_tail {len} {flags} {packet}"),
                &snippet,
                event,
            );
            let snippet = tc()
                .call("bpf_skb_change_head", [n(len), n(flags)])
                .see(CHANGING)
                .packet(56);
            if len <= 100 {
                same(
                    &format!("change_head {len} {flags} {packet}"),
                    &snippet,
                    event,
                );
            }
        }
        for (protocol, flags) in [(0xdd86, 0), (0x0008, 0), (0x0608, 0), (0xdd86, 1)] {
            let snippet = tc()
                .call("bpf_skb_change_proto", [n(protocol), n(flags)])
                .see(CHANGING)
                .packet(56);
            same(
                &format!("change_proto {protocol:x} {flags} {packet}"),
                &snippet,
                event,
            );
        }
        for kind in [0, 1, 2, 3, 4, 7, -1] {
            let snippet = tc().call("bpf_skb_change_type", [n(kind)]).see(CHANGING);
            same(&format!("change_type {kind} {packet}"), &snippet, event);
        }
    }
}

#[test]
fn room_is_adjusted() {
    if here::kernel().is_none() {
        return;
    }
    let flags = [
        0,
        1,
        1 << 1,
        1 << 2,
        3 << 1,
        1 << 1 | 1 << 3,
        1 << 2 | 1 << 4,
        1 << 1 | 3 << 3,
        1 << 5,
        1 << 1 | 1 << 6 | 14 << 56,
        1 << 1 | 1 << 6 | 13 << 56,
        1 << 2 | 60 << 56,
        1 << 7,
        1 << 8,
        3 << 7,
        1 << 9,
    ];
    for (packet, bytes) in [("IPv4", ipv4()), ("IPv6", ipv6()), ("tagged", tagged())] {
        let event = Event::packet(bytes);
        for difference in [0, 20, 50, 4095, 4096, -8, -30, -31, -4096] {
            for mode in [0, 1, 2] {
                for flags in flags {
                    let snippet = tc()
                        .call("bpf_skb_adjust_room", [n(difference), n(mode), n(flags)])
                        .see(CHANGING)
                        .packet(48);
                    // If the kernel reallocates the packet's head, it treats an unset
                    // transport header as set, at an arbitrary offset.
                    let again = match difference {
                        ..=50 => snippet
                            .call("bpf_skb_adjust_room", [n(difference), n(mode), n(flags)])
                            .call("bpf_skb_change_tail", [n(40), n(0)])
                            .see(CHANGING),
                        _ => snippet,
                    };
                    let name = format!("adjust_room {difference} {mode} {flags:x} {packet}");
                    same(&name, &again, &event);
                }
            }
        }
    }
}

#[test]
fn tags_are_pushed_and_popped() {
    if here::kernel().is_none() {
        return;
    }
    let packets = [
        ("IPv4", ipv4()),
        ("tagged", tagged()),
        ("twice tagged", twice_tagged()),
        ("short", vec![0; 14]),
    ];
    let push = |snippet: Snippet, protocol, tci| {
        snippet
            .call("bpf_skb_vlan_push", [n(protocol), n(tci)])
            .see(CHANGING)
    };
    let pop = |snippet: Snippet| snippet.call("bpf_skb_vlan_pop", []).see(CHANGING);
    for (packet, bytes) in &packets {
        let event = Event::packet(bytes.clone());
        let same = |name: &str, snippet: Snippet| {
            let snippet = snippet.packet(16).packet(24);
            same(&format!("{name} {packet}"), &snippet, &event);
        };
        same("push", push(tc(), 0x0081, 0x2007));
        same("push any", push(tc(), 0x1234, 0x12345));
        same("push 2", push(push(tc(), 0x0081, 1), 0xa888, 2));
        same(
            "push 3",
            push(push(push(tc(), 0x0081, 1), 0xa888, 2), 0x0081, 3),
        );
        same("pop", pop(tc()));
        same("pop 2", pop(pop(tc())));
        same("pop 3", pop(pop(pop(tc()))));
        same("push pop", pop(push(tc(), 0x0081, 5)));
        same("push 2 pop", pop(push(push(tc(), 0x0081, 1), 0xa888, 2)));
        same("pop push 2", push(push(pop(tc()), 0x0081, 1), 0xa888, 2));
    }
}

#[test]
fn checksums_are_kept() {
    if here::kernel().is_none() {
        return;
    }
    let word: Arg = [0x12, 0x34, 0x56, 0x78].into();
    for checksum in [Checksum::None, Checksum::Complete(None)] {
        let event = Event::packet(ipv4()).with(|kern| kern.checksum = checksum);
        let same = |name: &str, snippet: Snippet| {
            same(&format!("{name} {checksum:?}"), &snippet, &event);
        };
        for level in 0..5 {
            let ask = |snippet: Snippet, what| snippet.call("bpf_csum_level", [n(what)]);
            same("csum_level", ask(ask(ask(tc(), 1), level), 0));
            same("csum_level twice", ask(ask(ask(ask(tc(), 1), 1), level), 0));
        }
        let update = tc().call("bpf_csum_update", [n(0)]);
        same("csum_update", update);
        for offset in [20, 21, 40] {
            let store = tc().call("bpf_skb_store_bytes", [n(offset), word.clone(), n(4), n(1)]);
            same("store", store.packet(56));
        }
        // The complete checksum is right again after the header's checksum compensates the
        // change.
        let replace = tc()
            .call(
                "bpf_skb_store_bytes",
                [n(26), [11, 0, 0, 7].into(), n(4), n(0)],
            )
            .call(
                "bpf_l3_csum_replace",
                [n(24), n(0x0100_000a), n(0x0700_000b), n(4)],
            )
            .call(
                "bpf_l4_csum_replace",
                [n(50), n(0x0100_000a), n(0x0700_000b), n(0x14)],
            );
        same("address", replace.packet(56));
        same(
            "head",
            tc().call("bpf_skb_adjust_room", [n(20), n(0), n(0)])
                .packet(56),
        );
        same(
            "shrink",
            tc().call("bpf_skb_adjust_room", [n(-8), n(0), n(0)])
                .packet(40),
        );
        same("ecn", tc().call("bpf_skb_ecn_set_ce", []).packet(40));
    }
    let odd = Event::packet(ipv6()).with(|kern| kern.checksum = Checksum::Complete(None));
    same(
        "ecn v6",
        &tc().call("bpf_skb_ecn_set_ce", []).packet(40),
        &odd,
    );
    let difference = 0x0ff0_1234;
    let moved = tc().call("bpf_l4_csum_replace", [n(60), n(0), n(difference), n(0x90)]);
    same("by difference v6", &moved, &Event::packet(ipv6()));
}

#[test]
fn what_is_known_beside_the_packet() {
    if here::kernel().is_none() {
        return;
    }
    for (packet, bytes) in [("IPv4", ipv4()), ("IPv6", ipv6()), ("other", vec![0; 40])] {
        let event = Event::packet(bytes);
        let same =
            |name: &str, snippet: Snippet| same(&format!("{name} {packet}"), &snippet, &event);
        for (time, clock) in [(5, 0), (0, 0), (5, 1), (0, 1), (5, 2), (0, 2), (5, 3)] {
            let snippet = tc()
                .call("bpf_skb_set_tstamp", [n(time), n(clock)])
                .see(&["tstamp", "tstamp_type"]);
            same("set_tstamp", snippet);
        }
        same("get_route_realm", tc().call("bpf_get_route_realm", []));
        same(
            "ecn",
            tc().call("bpf_skb_ecn_set_ce", [])
                .call("bpf_skb_ecn_set_ce", [])
                .packet(32),
        );
    }
}

/// Every load of the context that the kernel allows, by offset and size.
#[test]
fn parts_of_fields_are_loaded_alike() {
    if here::kernel().is_none() {
        return;
    }
    // Fields that depend on the machine, not on the packet.
    const MACHINES: &[&str] = &["napi_id", "hash", "ifindex", "ingress_ifindex"];
    let event = Event::packet(ipv4()).set("mark", 0x1234_5678).unwrap();
    let event = event.set("priority", 0x0102_0304).unwrap();
    let event = event.set("cb[1]", 0x0506_0708).unwrap();
    for prog_type in [SocketFilter, SchedCls, CgroupSkb, LwtXmit] {
        let layout = layout(prog_type.info().context, Arch::HOST).unwrap();
        let mut loads = Vec::new();
        for offset in 0..layout.size {
            let name = layout.at(offset).map_or("", |field| field.name);
            for size in [1, 2, 4, 8] {
                let gives = check(prog_type, None, Arch::HOST, offset, size, Mode::Read);
                if gives == Some(Yield::Scalar) && !MACHINES.contains(&name) {
                    loads.push((offset, size));
                }
            }
        }
        assert!(loads.len() > 100, "{prog_type:?}");
        // As many as fit into the program's log.
        for loads in loads.chunks(120) {
            let snippet = Snippet::new(prog_type);
            let snippet = match prog_type {
                SchedCls => snippet
                    .set("tc_index", 0x0102_0304)
                    .set("tc_classid", 0x0506_0708)
                    .set("queue_mapping", 0x0001_0005)
                    .call("bpf_skb_vlan_push", [n(0xa888), n(0x1fff)]),
                _ => snippet,
            };
            let load = |snippet: Snippet, (offset, size): &(u32, u32)| snippet.load(*offset, *size);
            let snippet = loads.iter().fold(snippet, load);
            same(
                &format!("loads {:?} of {prog_type:?}", loads[0]),
                &snippet,
                &event,
            );
        }
    }
    let several = Event::packet(ipv4()).set("gso_size", 0x1234).unwrap();
    let several = several.set("gso_segs", 0x0567).unwrap();
    let fields = [
        (164, 4),
        (164, 2),
        (166, 2),
        (167, 1),
        (176, 2),
        (178, 2),
        (177, 1),
    ];
    let snippet = fields
        .iter()
        .fold(tc(), |snippet, (at, size)| snippet.load(*at, *size));
    same("segments", &snippet, &several);
}

#[test]
fn tunnels_are_set_and_read_back() {
    if here::kernel().is_none() {
        return;
    }
    let event = Event::packet(ipv4());
    let mut key = [0; 44];
    key[..8].copy_from_slice(&[7, 0, 0, 0, 1, 2, 3, 4]);
    key[20..22].copy_from_slice(&[9, 64]);
    key[28..32].copy_from_slice(&[5, 6, 7, 8]);
    let mut labelled = key;
    labelled[24..28].copy_from_slice(&[0xff, 0xff, 0xff, 0xff]);
    let mut extended = key;
    extended[22] = 1;
    for (key, name) in [(key, "key"), (labelled, "label"), (extended, "extension")] {
        for size in [44, 28, 24, 22, 8, 12] {
            for set in [0, 1, 0x1e, 1 << 5] {
                for get in [0, 1, 1 << 4, 1 << 4 | 1, 2] {
                    let part = Arg::M(key[..size].to_vec());
                    let snippet = tc()
                        .call("bpf_skb_get_tunnel_key", [m(44), n(44), n(get)])
                        .call("bpf_skb_set_tunnel_key", [part, n(size as i64), n(set)])
                        .call("bpf_skb_get_tunnel_key", [m(size), n(size as i64), n(get)]);
                    same(&format!("{name} {size} {set:x} {get:x}"), &snippet, &event);
                }
            }
        }
    }
    let options = tc()
        .call("bpf_skb_get_tunnel_opt", [m(16), n(16)])
        .call("bpf_skb_set_tunnel_opt", [Arg::M(vec![3; 8]), n(8)])
        .call("bpf_skb_set_tunnel_key", [key.into(), n(44), n(0)])
        .call("bpf_skb_get_tunnel_opt", [m(16), n(16)])
        .call("bpf_skb_set_tunnel_opt", [Arg::M(vec![3; 8]), n(7)])
        .call("bpf_skb_set_tunnel_opt", [Arg::M(vec![3; 8]), n(8)])
        .call("bpf_skb_get_tunnel_opt", [m(16), n(16)])
        .call("bpf_skb_get_tunnel_opt", [m(4), n(4)])
        .call("bpf_skb_get_tunnel_key", [m(44), n(44), n(1 << 4)]);
    same("options", &options, &event);
    let xfrm = tc().call("bpf_skb_get_xfrm_state", [n(0), m(28), n(28), n(0)]);
    same("xfrm", &xfrm, &event);
}

#[test]
fn look_ups_in_an_empty_network_fail_alike() {
    if here::kernel().is_none() {
        return;
    }
    let event = Event::packet(ipv4());
    let fib = |family: u8, ifindex: u8| {
        let mut parameters = vec![0; 64];
        (parameters[0], parameters[8]) = (family, ifindex);
        parameters[32..36].copy_from_slice(&[10, 0, 0, 2]);
        Arg::M(parameters)
    };
    for prog_type in [SchedCls, Xdp] {
        for (parameters, size, flags) in [
            (fib(2, 200), 64, 0),
            (fib(2, 200), 63, 0),
            (fib(2, 200), 64, 1 << 6),
            (fib(1, 1), 64, 0),
            (fib(10, 200), 64, 0),
        ] {
            let snippet =
                Snippet::new(prog_type).call("bpf_fib_lookup", [parameters, n(size), n(flags)]);
            same(
                &format!("fib {prog_type:?} {size} {flags}"),
                &snippet,
                &event,
            );
        }
        for (index, difference, flags) in [
            (0, 0, 0),
            (1, 65_486, 0),
            (1, 65_487, 0),
            (1, -100, 0),
            (200, 0, 0),
            (0, 0, 1),
            (0, 0, 2),
            (0, 1, 1),
        ] {
            for len in [0u32, 65_536, 65_537] {
                let snippet = Snippet::new(prog_type).call(
                    "bpf_check_mtu",
                    [n(index), len.to_ne_bytes().into(), n(difference), n(flags)],
                );
                let name = format!("check_mtu {prog_type:?} {index} {difference} {flags} {len}");
                same(&name, &snippet, &event);
            }
        }
    }
    for prog_type in [SchedCls, CgroupSkb] {
        for helper in ["bpf_skb_cgroup_id", "bpf_skb_ecn_set_ce"] {
            same(helper, &Snippet::new(prog_type).call(helper, []), &event);
        }
        let ancestors = [-1, 0, 1, 9]
            .into_iter()
            .fold(Snippet::new(prog_type), |snippet, level| {
                snippet.call("bpf_skb_ancestor_cgroup_id", [n(level)])
            });
        same("ancestors", &ancestors, &event);
        same(
            "uid",
            &Snippet::new(prog_type).call("bpf_get_socket_uid", []),
            &event,
        );
    }
    let classes = tc()
        .call("bpf_get_cgroup_classid", [])
        .call("bpf_skb_cgroup_classid", [])
        .call("bpf_clone_redirect", [n(200), n(0)])
        .call("bpf_clone_redirect", [n(1), n(2)]);
    same("classes", &classes, &event);
}

/// Encapsulation headers before IP packets.
#[test]
fn tunnels_put_headers_before_packets() {
    if here::kernel().is_none() {
        return;
    }
    let event = Event::packet(ipv4());
    let outer = |version: u8, protocol: u8, len: usize| {
        let mut header = vec![0; len];
        header[0] = version;
        let at = if version >> 4 == 4 { 9 } else { 6 };
        header[at] = protocol;
        Arg::M(header)
    };
    for (kind, version, protocol, len) in [
        (2, 0x45, 4, 20),
        (2, 0x46, 4, 20),
        (2, 0x45, 17, 28),
        (2, 0x45, 17, 24),
        (2, 0x60, 4, 40),
        (2, 0x60, 4, 32),
        (2, 0x60, 17, 48),
        (2, 0x50, 4, 40),
        (1, 0x45, 4, 24),
        (0, 0x45, 4, 24),
        (3, 0x45, 4, 24),
    ] {
        let snippet = Snippet::new(LwtXmit)
            .call(
                "bpf_lwt_push_encap",
                [n(kind), outer(version, protocol, len), n(len as i64)],
            )
            .see(CHANGING)
            .packet(48)
            .call("bpf_skb_change_tail", [n(30), n(0)]);
        same(
            &format!("push_encap {kind} {version:x} {protocol} {len}"),
            &snippet,
            &event,
        );
    }
}

#[test]
fn raw_cookies_have_the_kernels_errors() {
    if here::kernel().is_none() {
        return;
    }
    let ip = |len: usize| Arg::M(vec![0x45; len]);
    let tcp = |len: usize, words: u8| {
        let mut header = vec![0; len];
        header[12] = words << 4;
        Arg::M(header)
    };
    let event = Event::packet(ipv4());
    for (helper, len) in [
        ("bpf_tcp_raw_gen_syncookie_ipv4", 20),
        ("bpf_tcp_raw_gen_syncookie_ipv6", 40),
    ] {
        for (size, words) in [(20, 6), (16, 4), (24, 5), (20, 0)] {
            let args = [tcp(size, words), n(size as i64)];
            let snippet = tc()
                .asm("r9 = r10\nr9 += -512")
                .on_memory(ip(len), helper, args);
            same(&format!("{helper} {size} {words}"), &snippet, &event);
        }
    }
    for (helper, len) in [
        ("bpf_tcp_raw_check_syncookie_ipv4", 20),
        ("bpf_tcp_raw_check_syncookie_ipv6", 40),
    ] {
        let snippet = tc()
            .asm("r9 = r10\nr9 += -512")
            .on_memory(ip(len), helper, [tcp(20, 5)]);
        same(helper, &snippet, &event);
    }
}

#[test]
fn an_sk_lookup_sees_its_fields() {
    if here::kernel().is_none() {
        return;
    }
    let fields = [
        "family",
        "protocol",
        "remote_ip4",
        "remote_port",
        "local_ip4",
        "local_port",
    ];
    let event = Event::context(ProgType::SkLookup, Arch::HOST).unwrap();
    let event = event.set("family", 2).unwrap().set("protocol", 6).unwrap();
    let event = event
        .set("remote_ip4", 0x0100_000a)
        .unwrap()
        .set("local_port", 80)
        .unwrap();
    let event = event
        .set("remote_port", 0x1234)
        .unwrap()
        .set("local_ip4", 7)
        .unwrap();
    let snippet = Snippet::new(ProgType::SkLookup)
        .attached(AttachType::SkLookup)
        .see(&fields);
    let none = snippet
        .call("bpf_sk_assign", [n(0), n(0)])
        .call("bpf_sk_assign", [n(0), n(4)])
        .call("bpf_sk_assign", [n(0), n(3)]);
    same("sk_lookup", &none, &event);
}

/// A dissector writes flow keys, and loads bytes outside the packet.
#[test]
fn a_flow_dissector_sees_the_packet() {
    if here::kernel().is_none() {
        return;
    }
    let snippet = Snippet::new(ProgType::FlowDissector)
        .asm("r1 = *(u64 *)(r6 + 144)\nr2 = *(u16 *)(r1 + 0)\n*(u64 *)(r7 + 1000) = r2")
        .asm("r2 = *(u16 *)(r1 + 10)\n*(u64 *)(r7 + 1008) = r2\n*(u16 *)(r1 + 12) = 7")
        .call("bpf_skb_load_bytes", [n(0), m(8), n(8)])
        .packet(40);
    same("dissector", &snippet, &Event::packet(ipv4()));
}
