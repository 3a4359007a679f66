//! Networking programs on a mocked network: sockets, routes and hooks, with the same results
//! on every engine. (`net_kernel` compares what test runs in the kernel support.)

use crate::shared::snippet;

use bpflab::harness::EngineKind;
use bpflab::program::Program;
use bpflab::spec::Arch;
use bpflab::spec::{AttachType, ProgType};
use bpflab::vm::events::{Event, Packet, Sysctl};
use bpflab::vm::world::{Net, SocketState};
use bpflab::vm::{Outcome, World};
use bpflab::{Vm, isa::assemble_with};
use std::sync::Arc;

use snippet::{Arg, Snippet};

/// Runs a program on every engine in a world with this network; returns the common outcome.
#[track_caller]
fn run(program: &Arc<Program>, event: &Event, mock: fn(&mut Net)) -> Outcome {
    let mut first: Option<Outcome> = None;
    for engine in [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit] {
        let mut world = World::default();
        mock(world.net());
        let mut vm = Vm::with_world(world);
        vm.set_engine(engine);
        let maps = program.maps.clone();
        let handles = vm
            .load_unverified_programs(&maps, vec![program.clone()])
            .unwrap();
        let verdict = &vm.verification(&program.name).unwrap().verdict;
        assert!(verdict.is_accepted(), "{}", verdict.message);
        let outcome = vm.run(handles[0], event).unwrap();
        match &first {
            Some(first) => assert_eq!(first, &outcome, "on {engine}"),
            None => first = Some(outcome),
        }
    }
    first.unwrap()
}

fn assembled(prog_type: ProgType, attach: Option<AttachType>, text: &str) -> Arc<Program> {
    let mut program = Program::new("test", prog_type, Vec::new());
    program.license = "GPL".into();
    program.expected_attach_type = attach;
    program.insns = assemble_with(text, &program).unwrap().slots;
    Arc::new(program)
}

fn packet() -> Event {
    let packet = Packet::ethernet().ipv4("10.0.0.2", "10.0.0.1").tcp(999, 80);
    packet.payload("hello").event().unwrap()
}

fn web_server(net: &mut Net) {
    let server = net.tcp().local("10.0.0.1:80").unwrap();
    server.state(SocketState::Listen).mark(0x77).cookie(99);
}

/// Looks up a socket by the packet's addresses, reads its mark, releases it.
const LOOK_UP: &str = "
    r6 = r1
    *(u32 *)(r10 - 16) = 0x0200000a
    *(u32 *)(r10 - 12) = 0x0100000a
    *(u32 *)(r10 - 8) = 0x5000e703
    r2 = r10
    r2 += -16
    r3 = 12
    r4 = -1
    r5 = 0
    call bpf_sk_lookup_tcp
    r7 = 0
    if r0 == 0 goto out
    r7 = *(u32 *)(r0 + 16)
    r8 = *(u32 *)(r0 + 44)
    r7 += r8
    r1 = r0
    call bpf_sk_release
    out: r0 = r7
    exit";

#[test]
fn a_socket_is_found_and_read_on_every_engine() {
    let program = assembled(ProgType::SchedCls, None, LOOK_UP);
    let outcome = run(&program, &packet(), web_server);
    assert_eq!(outcome.returned("test"), Some(0x77 + 80));
    assert!(outcome.unreleased.is_empty());
    assert_eq!(run(&program, &packet(), |_| {}).returned("test"), Some(0));
}

/// Looks up the listener and assigns it; reads `sk` of the context before and after.
const ASSIGN: &str = "
    r6 = r1
    r7 = 0
    r1 = *(u64 *)(r6 + 0)
    if r1 != 0 goto out
    r7 = 1
    r1 = r6
    r2 = 0
    r3 = 0
    call bpf_sk_assign
    if r0 != 0 goto out
    r1 = *(u64 *)(r6 + 0)
    if r1 != 0 goto out
    r7 = 2
    out: r0 = 1
    if r7 == 2 goto fine
    r0 = 0
    fine: exit";

#[test]
fn a_look_up_without_a_socket() {
    let event = Event::context(ProgType::SkLookup, Arch::HOST).unwrap();
    let event = event.set("family", 2).unwrap().set("protocol", 6).unwrap();
    let program = assembled(ProgType::SkLookup, Some(AttachType::SkLookup), ASSIGN);
    let outcome = run(&program, &event, web_server);
    assert_eq!(
        (outcome.returned("test"), outcome.field("cookie")),
        (Some(1), Some(0))
    );
}

/// Assigns the event's own socket.
#[test]
fn a_packet_is_given_to_its_socket_and_the_context_follows() {
    let text = "
        r6 = r1
        *(u32 *)(r10 - 16) = 0x0200000a
        *(u32 *)(r10 - 12) = 0x0100000a
        *(u32 *)(r10 - 8) = 0x5000e703
        r2 = r10
        r2 += -16
        r3 = 12
        r4 = -1
        r5 = 0
        call bpf_skc_lookup_tcp
        r9 = 0
        if r0 == 0 goto out
        r8 = r0
        r1 = r6
        r2 = r8
        r3 = 0
        call bpf_sk_assign
        r9 = r0
        r1 = r8
        call bpf_sk_release
        if r9 != 0 goto out
        r1 = *(u64 *)(r6 + 168)
        if r1 == 0 goto out
        call bpf_sk_fullsock
        if r0 == 0 goto out
        r9 = *(u32 *)(r0 + 16)
        out: r0 = r9
        exit";
    let program = assembled(ProgType::SchedCls, None, text);
    let event = packet().with(|kern| kern.at_ingress = true);
    let outcome = run(&program, &event, web_server);
    assert_eq!(
        outcome.returned("test"),
        Some(0x77),
        "the mark of the socket it was given"
    );
    assert!(outcome.kern.socket.is_some());
}

#[test]
fn an_address_is_rewritten() {
    let hook = AttachType::CgroupInet4Connect;
    let program = Snippet::new(ProgType::CgroupSockAddr)
        .attached(hook)
        .see(&["user_ip4", "user_port", "type", "protocol"])
        .set("user_ip4", 0x0100_007f)
        .set("user_port", 0x901f)
        .build(1);
    let event = Event::context(ProgType::CgroupSockAddr, Arch::HOST).unwrap();
    let event = event
        .set("user_ip4", 0x0200_000a)
        .unwrap()
        .set("family", 2)
        .unwrap();
    let outcome = run(&program, &event, |_| {});
    assert_eq!(outcome.field("user_ip4"), Some(0x0100_007f));
    assert_eq!(outcome.field("user_port"), Some(0x901f));
    assert_eq!(outcome.field("nothing"), None);
}

#[test]
fn a_socket_options_value_is_changed() {
    let text = "
        r2 = *(u64 *)(r1 + 8)
        r3 = *(u64 *)(r1 + 16)
        r4 = r2
        r4 += 4
        if r4 > r3 goto out
        *(u32 *)(r2 + 0) = 0x12345678
        *(u32 *)(r1 + 32) = 4
        *(u32 *)(r1 + 36) = 0
        out: r0 = 1
        exit";
    let hook = Some(AttachType::CgroupGetsockopt);
    let program = assembled(ProgType::CgroupSockopt, hook, text);
    let event = Event::context(ProgType::CgroupSockopt, Arch::HOST).unwrap();
    let event = event.set("optlen", 8).unwrap().data([0xff; 8]).unwrap();
    let outcome = run(&program, &event, |_| {});
    assert_eq!(outcome.field("optlen"), Some(4));
    let value = outcome.packet.unwrap();
    assert_eq!(value, [0x78, 0x56, 0x34, 0x12, 0xff, 0xff, 0xff, 0xff]);
}

#[test]
fn a_sysctl_is_written_differently() {
    let program = Snippet::new(ProgType::CgroupSysctl)
        .call(
            "bpf_sysctl_get_current_value",
            [Arg::M(vec![0; 8]), Arg::N(8)],
        )
        .call(
            "bpf_sysctl_set_new_value",
            [Arg::M(b"600".to_vec()), Arg::N(3)],
        )
        .see(&["write", "file_pos"])
        .build(1);
    let event = Event::context(ProgType::CgroupSysctl, Arch::HOST).unwrap();
    let sysctl = Sysctl::write("net/ipv4/tcp_mem", "1 2 3\n", "4 5 6");
    let event = event
        .set("write", 1)
        .unwrap()
        .with(|kern| kern.sysctl = Some(sysctl));
    let outcome = run(&program, &event, |_| {});
    let sysctl = outcome.kern.sysctl.as_ref().unwrap();
    assert_eq!(sysctl.replaced.as_deref(), Some(&b"600"[..]));
}

#[test]
fn packets_grow_on_every_engine() {
    let program = Snippet::new(ProgType::SchedCls)
        .call("bpf_skb_change_head", [Arg::N(8000), Arg::N(0)])
        .packet(16)
        .call("bpf_skb_change_tail", [Arg::N(16_000), Arg::N(0)])
        .call("bpf_skb_vlan_push", [Arg::N(0x81), Arg::N(7)])
        .call("bpf_skb_vlan_push", [Arg::N(0x81), Arg::N(8)])
        .packet(32)
        .see(&["len"])
        .build(0);
    let outcome = run(&program, &packet(), |_| {});
    assert_eq!(outcome.packet.unwrap().len(), 16_004);
    assert_eq!(outcome.context[..4], 16_004u32.to_ne_bytes());
}

#[test]
fn a_message_is_cut_on_every_engine() {
    let program = Snippet::new(ProgType::SkMsg)
        .packet(8)
        .call("bpf_msg_pull_data", [Arg::N(2), Arg::N(10), Arg::N(0)])
        .packet(8)
        .call("bpf_msg_pop_data", [Arg::N(0), Arg::N(2), Arg::N(0)])
        .see(&["size", "local_port"])
        .packet(8)
        .build(1);
    let event = Event::packet(*b"0123456789abcdef").set("local_port", 80);
    let outcome = run(&program, &event.unwrap(), |_| {});
    assert_eq!(outcome.packet.as_deref(), Some(&b"23456789abcdef"[..]));
}
