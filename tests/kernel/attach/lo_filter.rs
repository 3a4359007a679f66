//! `examples/bpf/lo_filter.bpf.c` attached: whoever records `net:netif_receive_skb` gets the
//! loopback's packets and no others.

use std::net::UdpSocket;

use bpflab::kernel::LoadedMaps;
use bpflab::kernel::attach::{AttachPoint, attach};
use bpflab::kernel::perf::{EventSource, PerfSamples, SampleOptions};
use bpflab::kernel::tracefs::Tracefs;
use bpflab::{Object, Vm};

use super::rig::{is_there, loaded};

/// Lengths of packets that no others have. IP and UDP add 28 bytes.
const LENS: std::ops::Range<usize> = 20011..20021;
const HEADERS: usize = 28;

/// Sends packets that come in by a device, and waits for them.
fn send() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = receiver.local_addr().unwrap();
    for len in LENS {
        sender.send_to(&vec![0; len], to).unwrap();
        receiver.recv(&mut vec![0; LENS.end]).unwrap();
    }
}

#[test]
fn packets_of_the_loopback_pass() {
    if !is_there() {
        return;
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/bpf/lo_filter.bpf.o");
    let program = Object::open(path).unwrap().program("only_lo").unwrap();
    let maps = LoadedMaps::create(&program.maps, program.btf.as_ref()).unwrap();
    let only_lo = loaded(&program, &maps);
    let attachment = attach(&only_lo, &AttachPoint::of(&program).unwrap()).unwrap();

    // For all processes: a packet may come in while another one runs.
    let id = Tracefs::open().unwrap();
    let id = id.tracepoint_id("net", "netif_receive_skb").unwrap();
    let all = SampleOptions::default();
    let mut samples = PerfSamples::open(EventSource::Tracepoint(id), &all).unwrap();
    send();
    let mut passed = Vec::new();
    samples.drain(|sample| passed.push((sample.time, sample.raw.to_vec())));
    passed.sort();
    let lens = passed.iter().filter_map(|(_, record)| {
        let len = u32::from_ne_bytes(record[16..20].try_into().unwrap()) as usize;
        LENS.contains(&(len - HEADERS)).then_some(len - HEADERS)
    });
    assert_eq!(lens.collect::<Vec<_>>(), LENS.collect::<Vec<_>>());
    assert_eq!(attachment.missed().unwrap(), 0);

    // The same records, each on bpflab's engines.
    let mut vm = Vm::new(Object::open(path).unwrap()).unwrap();
    vm.attach_all().unwrap();
    for (_, record) in &passed {
        let place = u32::from_ne_bytes(record[20..24].try_into().unwrap());
        let (at, len) = ((place & 0xffff) as usize, (place >> 16) as usize);
        assert_eq!(&record[at..at + len], b"lo\0");
        let event = vm.tracepoint("net/netif_receive_skb").unwrap();
        let event = event.set("name", "lo").unwrap();
        assert!(vm.fire(event).unwrap().passed);
    }
}
