//! `xdp_count`: packets and bytes by protocol.

use bpflab::vm::events::Event;
use bpflab::{Result, Vm};

use crate::engines::on_every_engine;

const ICMP: u32 = 1;
const TCP: u32 = 6;
const UDP: u32 = 17;
const ICMPV6: u32 = 58;
const NOT_IP: u32 = 256;
const XDP_PASS: u32 = 2;

const MACS: &str = "ffffffffffff 0200000000aa";
const IPV4_TCP: &str = "0800 45000028 00000000 40060000 7f000001 7f000001";
const IPV4_UDP: &str = "0800 45000028 00000000 40110000 7f000001 7f000001";
const IPV6_ICMP: &str = "86dd 60000000 0008 3a 40 \
    00000000000000000000000000000001 00000000000000000000000000000001";
const ARP: &str = "0806 0001 0800 06 04 0001 0200000000aa 0a000001 000000000000 0a000002";

/// A packet comes in; how many bytes it has.
fn receive(vm: &mut Vm, behind_macs: &str) -> Result<u64> {
    let packet = Event::packet_hex(&format!("{MACS} {behind_macs}"))?;
    let outcome = vm.fire(packet)?;
    assert_eq!(outcome.returned("count_packet"), Some(XDP_PASS));
    Ok(outcome.packet.map_or(0, |bytes| bytes.len() as u64))
}

/// Packets and bytes of a protocol, on all CPUs.
fn traffic(vm: &Vm, protocol: u32) -> Result<[u64; 2]> {
    let each_cpu = vm.map("traffic")?.get_per_cpu::<u32, [u64; 2]>(&protocol)?;
    let each_cpu = each_cpu.expect("a protocol below 257");
    Ok(each_cpu
        .iter()
        .fold([0; 2], |sum, cpu| [sum[0] + cpu[0], sum[1] + cpu[1]]))
}

#[test]
fn packets_count_by_the_protocol_in_their_ip_header() {
    on_every_engine("xdp_count", |vm| {
        vm.attach_all()?;
        let sizes = [
            receive(vm, IPV4_TCP)?,
            receive(vm, &format!("{IPV4_TCP} 00 01 02"))?,
        ];
        assert_eq!(sizes, [34, 37]);
        receive(vm, IPV4_UDP)?;
        receive(vm, IPV6_ICMP)?;
        receive(vm, ARP)?;
        assert_eq!(traffic(vm, TCP)?, [2, 34 + 37]);
        assert_eq!(traffic(vm, UDP)?, [1, 34]);
        assert_eq!(traffic(vm, ICMPV6)?, [1, 54]);
        assert_eq!(traffic(vm, NOT_IP)?, [1, 42]);
        assert_eq!(traffic(vm, ICMP)?, [0, 0]);
        Ok(())
    });
}

/// Up to two tags stand between the addresses and the protocol; behind a third the
/// program no longer looks.
#[test]
fn vlan_tags_are_skipped() {
    on_every_engine("xdp_count", |vm| {
        vm.attach_all()?;
        receive(vm, &format!("8100 0005 {IPV4_TCP}"))?;
        receive(vm, &format!("88a8 0005 8100 0006 {IPV4_UDP}"))?;
        receive(vm, &format!("8100 0005 8100 0006 8100 0007 {IPV4_UDP}"))?;
        assert_eq!(traffic(vm, TCP)?, [1, 38]);
        assert_eq!(traffic(vm, UDP)?, [1, 42]);
        assert_eq!(traffic(vm, NOT_IP)?[0], 1);
        Ok(())
    });
}

/// A packet that ends in the middle of a header is none of IP, wherever it ends.
#[test]
fn packets_that_are_cut_off_are_not_ip() {
    on_every_engine("xdp_count", |vm| {
        vm.attach_all()?;
        let whole = format!("{MACS}8100 0005{IPV6_ICMP}").replace(' ', "");
        let ends: Vec<_> = (14..58).collect();
        for end in &ends {
            let packet = Event::packet_hex(&whole[..2 * end])?;
            assert_eq!(vm.fire(packet)?.returned("count_packet"), Some(XDP_PASS));
        }
        let packets = ends.len() as u64;
        assert_eq!(
            traffic(vm, NOT_IP)?,
            [packets, ends.iter().sum::<usize>() as u64]
        );
        assert_eq!(traffic(vm, ICMPV6)?, [0, 0]);
        vm.fire(Event::packet_hex(&whole)?)?;
        assert_eq!(traffic(vm, ICMPV6)?, [1, 58]);
        Ok(())
    });
}

#[test]
fn each_cpu_counts_its_own() {
    on_every_engine("xdp_count", |vm| {
        vm.attach_all()?;
        for cpu in [0, 2, 2] {
            vm.world().set_cpu(cpu);
            receive(vm, IPV4_TCP)?;
        }
        let counts = vm.map("traffic")?.get_per_cpu::<u32, [u64; 2]>(&TCP)?;
        assert_eq!(counts, Some(vec![[1, 34], [0, 0], [2, 68], [0, 0]]));
        Ok(())
    });
}
