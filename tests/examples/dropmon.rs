//! `dropmon`: dropped packets by the place that dropped them.

use bpflab::harness::Interrupt;
use bpflab::util::Errno;
use bpflab::vm::Injection;
use bpflab::{Result, Vm};

use crate::engines::{on_every_engine, on_every_engine_with};

/// Places in a kernel's code.
const TCP_V4_RCV: u64 = 0xffff_ffff_81a0_1234;
const UDP_QUEUE_RCV: u64 = 0xffff_ffff_81b0_5678;

/// Reasons, by their numbers.
const NO_SOCKET: u64 = 3;
const CHECKSUM: u64 = 5;

fn drop_packet(vm: &mut Vm, location: u64, reason: u64) -> Result<()> {
    let event = vm.tracepoint("skb/kfree_skb")?;
    let event = event.set("location", location)?.set("reason", reason)?;
    vm.fire(event)?;
    Ok(())
}

/// How many drops are known of a place and reason.
fn drops(vm: &Vm, location: u64, reason: u64) -> Result<Option<u64>> {
    vm.map("drops")?.get(&[location, reason])
}

#[test]
fn drops_are_counted_by_place_and_reason() {
    on_every_engine("dropmon", |vm| {
        vm.attach_all()?;

        drop_packet(vm, TCP_V4_RCV, NO_SOCKET)?;
        drop_packet(vm, UDP_QUEUE_RCV, NO_SOCKET)?;
        drop_packet(vm, TCP_V4_RCV, NO_SOCKET)?;
        drop_packet(vm, TCP_V4_RCV, CHECKSUM)?;

        assert_eq!(drops(vm, TCP_V4_RCV, NO_SOCKET)?, Some(2));
        assert_eq!(drops(vm, UDP_QUEUE_RCV, NO_SOCKET)?, Some(1));
        assert_eq!(drops(vm, TCP_V4_RCV, CHECKSUM)?, Some(1));
        assert_eq!(drops(vm, UDP_QUEUE_RCV, CHECKSUM)?, None);
        assert_eq!(vm.map("drops")?.entries::<[u64; 2], u64>()?.len(), 3);
        Ok(())
    });
}

/// All CPUs count in the same place.
#[test]
fn drops_on_two_cpus_add_up() {
    on_every_engine("dropmon", |vm| {
        vm.attach_all()?;
        for cpu in [0, 1, 1] {
            vm.world().set_cpu(cpu);
            drop_packet(vm, TCP_V4_RCV, NO_SOCKET)?;
        }
        assert_eq!(drops(vm, TCP_V4_RCV, NO_SOCKET)?, Some(3));
        Ok(())
    });
}

#[test]
fn a_full_map_loses_new_places_and_says_how_many_drops() {
    on_every_engine_with(
        "dropmon",
        |object| {
            object.map_mut("drops")?.set_max_entries(2)?;
            Ok(())
        },
        |vm| {
            vm.attach_all()?;
            for location in [1, 2, 3, 4, 3, 1] {
                drop_packet(vm, location, NO_SOCKET)?;
            }
            // Places that are known go on counting.
            assert_eq!(drops(vm, 1, NO_SOCKET)?, Some(2));
            assert_eq!(drops(vm, 2, NO_SOCKET)?, Some(1));
            assert_eq!(drops(vm, 3, NO_SOCKET)?, None);
            assert_eq!(uncounted(vm)?, Some(3));
            Ok(())
        },
    );
}

/// Drops that no place was found for.
fn uncounted(vm: &Vm) -> Result<Option<u64>> {
    vm.map("dropmon.bss")?.get::<u32, u64>(&0)
}

/// Another CPU entered the place after this one had looked for it, and it was deleted
/// again before this one looked once more: the drop is not lost silently.
#[test]
fn a_place_that_comes_and_goes() {
    on_every_engine("dropmon", |vm| {
        vm.attach_all()?;
        vm.inject(Injection::map_update().error(Errno::EEXIST).nth(1))?;
        drop_packet(vm, TCP_V4_RCV, NO_SOCKET)?;
        assert_eq!(drops(vm, TCP_V4_RCV, NO_SOCKET)?, None);
        assert_eq!(uncounted(vm)?, Some(1));
        drop_packet(vm, TCP_V4_RCV, NO_SOCKET)?;
        assert_eq!(drops(vm, TCP_V4_RCV, NO_SOCKET)?, Some(1));
        Ok(())
    });
}

/// An interrupt drops a packet while the program runs on the same CPU: the kernel lets
/// no program on a tracepoint in again, so that drop is missed. A tool that needs each
/// of them must not count on tracepoints alone.
#[test]
fn a_drop_in_an_interrupt_is_missed() {
    on_every_engine("dropmon", |vm| {
        vm.attach_all()?;
        let event = vm.tracepoint("skb/kfree_skb")?;
        let inner = event.clone().set("location", UDP_QUEUE_RCV)?;
        let place = Interrupt::at_call("bpf_map_update_elem")?;
        vm.interrupt(place, inner);

        let outcome = vm.fire(event.set("location", TCP_V4_RCV)?)?;

        assert_eq!(outcome.missed_by("count_drop"), 1);
        assert_eq!(drops(vm, TCP_V4_RCV, 0)?, Some(1));
        assert_eq!(drops(vm, UDP_QUEUE_RCV, 0)?, None);
        Ok(())
    });
}
