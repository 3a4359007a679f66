//! `lo_packets`: packets of the device `lo`, by a function whose symbol has a suffix.

use bpflab::vm::KernelObject;
use bpflab::{Result, Vm};

use crate::engines::{on_every_engine, on_every_engine_with};

/// The function, as kernels name it.
const RECEIVE: &str = "__netif_receive_skb_core.constprop.0";

/// A packet of a device.
fn packet(vm: &mut Vm, device: &str, len: u32) -> Result<KernelObject> {
    let skb = vm.world().kernel("sk_buff")?;
    Ok(skb.set("len", len)?.set("dev.name", device)?)
}

/// The function is called with the place of a pointer to the packet; the lines that this
/// gives.
fn receive(vm: &mut Vm, skb: &KernelObject) -> Result<Vec<String>> {
    let place = vm.world().kernel_bytes(&skb.address().to_le_bytes())?;
    let outcome = vm.fire(vm.kprobe(RECEIVE)?.arg(1, &place)?)?;
    Ok(outcome.printk().map(str::to_owned).collect())
}

#[test]
fn only_packets_of_lo_are_printed() {
    on_every_engine("lo_packets", |vm| {
        vm.attach_all()?;
        let skb = packet(vm, "lo", 84)?;
        let expected = format!("skb {:x} len 84", skb.address());
        assert_eq!(receive(vm, &skb)?, [expected]);
        // Names that begin or end like it.
        for device in ["eth0", "lo0", "l", "", "xlo"] {
            let skb = packet(vm, device, 84)?;
            assert!(receive(vm, &skb)?.is_empty(), "{device}");
        }
        Ok(())
    });
}

/// The pattern fits the function with each compiler's suffix and without, and no other.
#[test]
fn the_pattern_finds_the_function() {
    on_every_engine("lo_packets", |vm| {
        vm.attach_all()?;
        for (function, runs) in [
            ("__netif_receive_skb_core", 1),
            ("__netif_receive_skb_core.isra.0.constprop.1", 1),
            ("__netif_receive_skb", 0),
        ] {
            let outcome = vm.fire(vm.kprobe(function)?)?;
            assert_eq!(outcome.runs.len(), runs, "{function}");
        }
        Ok(())
    });
}

/// A wild pointer reads as nothing.
#[test]
fn a_pointer_that_leads_nowhere() {
    on_every_engine("lo_packets", |vm| {
        vm.attach_all()?;
        for place in [0, 0xdead_u64] {
            let outcome = vm.fire(vm.kprobe(RECEIVE)?.arg(1, place)?)?;
            assert_eq!(outcome.runs.len(), 1);
            assert_eq!(outcome.printk().count(), 0);
        }
        Ok(())
    });
}

/// For kernels without kprobe.multi: the loader sets the name.
#[test]
fn the_loader_chooses_the_function() {
    on_every_engine_with(
        "lo_packets",
        |object| {
            object.entry_mut("any")?.set_autoload(false);
            let one = object.entry_mut("one")?;
            one.set_autoload(true);
            one.set_attach_target("__netif_receive_skb_core.isra.0");
            Ok(())
        },
        |vm| {
            vm.attach_all()?;
            let skb = packet(vm, "lo", 1500)?;
            let place = vm.world().kernel_bytes(&skb.address().to_le_bytes())?;
            let event = vm.kprobe("__netif_receive_skb_core.isra.0")?;
            let outcome = vm.fire(event.arg(1, &place)?)?;
            let lines: Vec<_> = outcome.printk().collect();
            assert_eq!(lines, [format!("skb {:x} len 1500", skb.address())]);
            assert!(receive(vm, &skb)?.is_empty());
            Ok(())
        },
    );
}
