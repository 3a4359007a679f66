//! Dynptrs as programs use them, in the checked interpreter where the verifier does not judge a
//! program.

use crate::shared;

use bpflab::vm::events::Event;
use bpflab::vm::{Outcome, Output};
use bpflab::{Object, Vm};

use shared::{Need, skip};

#[cfg(all(feature = "kernel", target_os = "linux"))]
use crate::shared::here;

fn vm() -> Vm {
    let object = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/objects/dynptrs.bpf.o");
    Vm::unverified(Object::open(object).unwrap()).unwrap()
}

fn traced(vm: &mut Vm, program: &str, args: [u64; 2]) -> Outcome {
    let event = vm.raw_tracepoint("sys_enter").unwrap();
    let event = event.set("args[0]", args[0]).unwrap();
    vm.run(program, &event.set("args[1]", args[1]).unwrap())
        .unwrap()
}

/// A program's return value, as an `int`.
fn returned(outcome: &Outcome, program: &str) -> i32 {
    outcome.returned(program).unwrap().cast_signed()
}

/// An IPv4 packet of this length and TTL.
fn ipv4(ttl: u8, len: usize) -> Vec<u8> {
    let mut packet = vec![0; len];
    packet[12..14].copy_from_slice(&[8, 0]);
    packet[14] = 0x45;
    packet[22] = ttl;
    packet
}

#[test]
fn a_record_is_as_long_as_the_program_says() {
    let mut vm = vm();
    let outcome = traced(&mut vm, "record", [12, 0x01020304]);
    assert_eq!(outcome.returned("record"), Some(0));
    let records: Vec<_> = outcome.records("records").collect();
    assert_eq!(records, [[12, 0, 0, 0, 4, 3, 2, 1, 0, 0, 0, 0]]);
    // The record is too short for the write: it is not submitted.
    let outcome = traced(&mut vm, "record", [7, 1]);
    assert_eq!(returned(&outcome, "record"), -7);
    assert!(outcome.outputs.is_empty() && outcome.unreleased.is_empty());
    let outcome = traced(&mut vm, "record", [3, 1]);
    assert_eq!(returned(&outcome, "record"), -1);
    // The record is too long for the buffer.
    let outcome = traced(&mut vm, "record", [5000, 1]);
    assert_eq!(returned(&outcome, "record"), -22);
    assert!(matches!(outcome.outputs[..], [Output::Lost { .. }]));
    assert!(outcome.unreleased.is_empty());
}

#[test]
fn memory_is_narrowed_filled_and_copied() {
    let mut vm = vm();
    let text = vm.world().user_cstr("/usr/bin/ls");
    let outcome = traced(&mut vm, "note", [text, 0]);
    assert_eq!(outcome.returned("note"), Some(12));
    let note = vm.map("notes").unwrap().get::<u32, [u8; 32]>(&0).unwrap();
    assert_eq!(&note.unwrap(), b"..../usr/bin/ls\0..../usr........");
    let long = vm.world().user_cstr("/usr/local/bin/something");
    assert_eq!(
        traced(&mut vm, "note", [long, 0]).returned("note"),
        Some(12)
    );
    let note = vm.map("notes").unwrap().get::<u32, [u8; 32]>(&0).unwrap();
    assert_eq!(&note.unwrap(), b"..../usr/local/\0..../usr........");
    let outcome = traced(&mut vm, "note", [16, 0]);
    assert_eq!(returned(&outcome, "note"), -14);
}

#[test]
fn a_packet_is_changed_in_place() {
    let mut vm = vm();
    let outcome = vm.run("forward", &Event::packet(ipv4(64, 60))).unwrap();
    assert_eq!(outcome.returned("forward"), Some(3), "XDP_TX");
    assert_eq!(outcome.packet.unwrap()[22], 63);
    let outcome = vm.run("forward", &Event::packet(ipv4(1, 60))).unwrap();
    assert_eq!(outcome.returned("forward"), Some(1), "XDP_DROP");
    let outcome = vm
        .run("forward", &Event::packet(&ipv4(64, 60)[..20]))
        .unwrap();
    assert_eq!(
        outcome.returned("forward"),
        Some(0),
        "shorter than its header"
    );
    let outcome = vm.run("forward", &Event::packet([0; 60])).unwrap();
    assert_eq!(outcome.returned("forward"), Some(2), "XDP_PASS");
}

#[test]
fn fragments_are_read_as_well() {
    let mut vm = vm();
    let mut packet = ipv4(64, 9000);
    packet[8999] = 77;
    let outcome = vm.run("last_byte", &Event::packet(packet)).unwrap();
    assert_eq!(outcome.returned("last_byte"), Some(77));
}

#[test]
fn who_only_looks_gets_a_dynptr_for_reading() {
    let mut vm = vm();
    let outcome = vm.run("look", &Event::packet([7; 60])).unwrap();
    assert_eq!(returned(&outcome, "look"), -22);
    assert_eq!(
        outcome.packet.unwrap(),
        [7; 60][14..],
        "the filter sees no Ethernet header"
    );
}

#[test]
fn a_tracing_program_reads_the_kernels_packet() {
    let mut vm = vm();
    let Ok(skb) = vm.world().kernel("struct sk_buff") else {
        skip(Need::Kernel, "no BTF of a kernel defines struct sk_buff");
        return;
    };
    let packet = vm.world().kernel_bytes(&ipv4(64, 60)).unwrap();
    let skb = skb.set("data", &packet).unwrap().set("len", 60).unwrap();
    let event = vm.raw_tracepoint("netif_receive_skb").unwrap();
    let event = event.set("args[0]", &skb).unwrap();
    let outcome = vm.run("ether_type", &event).unwrap();
    assert_eq!(outcome.printk().collect::<Vec<_>>(), ["800 of 60 bytes"]);
    // Bytes in fragments are not readable through `skb->data`.
    let skb = skb.set("data_len", 50).unwrap();
    let event = event.set("args[0]", &skb).unwrap();
    let outcome = vm.run("ether_type", &event).unwrap();
    assert_eq!(returned(&outcome, "ether_type"), -2);
}

/// Random packets: the kernel returns the same values and outputs.
#[test]
#[cfg(all(feature = "kernel", target_os = "linux"))]
fn the_kernel_does_the_same() {
    use bpflab::kernel::{LoadOptions, LoadedMaps, TestRun, load};
    use bpflab::vm::Random;

    if here::kernel().is_none() {
        return;
    }
    let mut vm = vm();
    let mut random = Random::new(5);
    for name in ["forward", "last_byte", "look"] {
        let program = vm.programs().find(|program| program.name == name);
        let program = program.unwrap().clone();
        let maps = LoadedMaps::create(&program.maps, program.btf.as_ref()).unwrap();
        let loaded = load(&program, &maps, &LoadOptions::default()).unwrap();
        let there = loaded.program.expect(&loaded.verdict.message);
        for _ in 0..200 {
            // Test runs of a socket filter refuse packets shorter than their headers.
            let (least, more) = match name {
                "last_byte" => (15, 6000),
                "look" => (34, 80),
                _ => (15, 80),
            };
            let len = least + random.next_u32() as usize % more;
            let ttl = random.next_u32().to_le_bytes()[0] % 4;
            let mut packet = ipv4(ttl, len.max(60));
            packet.truncate(len);
            if let Some(last) = packet.last_mut() {
                *last ^= random.next_u32().to_le_bytes()[0];
            }
            let wanted = there.test_run(&TestRun::packet(&packet)).unwrap();
            let outcome = vm.run(name, &Event::packet(packet.clone())).unwrap();
            assert_eq!(
                outcome.returned(name),
                Some(wanted.retval),
                "{name} {packet:x?}"
            );
            if name == "forward" {
                assert_eq!(outcome.packet.unwrap(), wanted.data, "{packet:x?}");
            }
        }
    }
}
