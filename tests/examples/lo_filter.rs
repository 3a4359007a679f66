//! `lo_filter`: only packets of the loopback device go on.

use bpflab::vm::Injection;
use bpflab::{Object, Result, Vm};

use crate::engines::on_every_engine;

#[test]
fn only_lo_passes() -> Result<()> {
    let object = Object::open("examples/bpf/lo_filter.bpf.o")?;
    let mut vm = Vm::new(object)?;
    vm.attach_all()?;

    let event = vm.tracepoint("net/netif_receive_skb")?.set("name", "lo")?;
    let outcome = vm.fire(event)?;
    assert_eq!(outcome.returned("only_lo"), Some(1));
    assert!(outcome.passed);

    let event = vm
        .tracepoint("net/netif_receive_skb")?
        .set("name", "eth0")?;
    let outcome = vm.fire(event)?;
    assert_eq!(outcome.returned("only_lo"), Some(0));
    assert!(!outcome.passed);
    Ok(())
}

/// Whether the event of a packet that came in by this device goes on to who records it.
fn passes(vm: &mut Vm, device: &str) -> Result<bool> {
    let event = vm.tracepoint("net/netif_receive_skb")?;
    let event = event.set("name", device)?.set("len", 84)?;
    let outcome = vm.fire(event)?;
    let returned = outcome.returned("only_lo");
    assert_eq!(returned, Some(u32::from(outcome.passed)));
    Ok(outcome.passed)
}

/// Names that a careless comparison takes for it.
#[test]
fn names_like_lo_do_not_pass() {
    on_every_engine("lo_filter", |vm| {
        vm.attach_all()?;
        for device in [
            "",
            "l",
            "o",
            "ol",
            "lo0",
            "lo.5",
            "lon",
            "LO",
            "loop-of-15-char",
        ] {
            assert!(!passes(vm, device)?, "{device:?}");
        }
        // What came before has left nothing behind.
        assert!(passes(vm, "lo")?);
        Ok(())
    });
}

/// A name that can't be read is not "lo": what the buffer held before does not matter.
#[test]
fn a_name_that_cannot_be_read_does_not_pass() {
    on_every_engine("lo_filter", |vm| {
        vm.attach_all()?;
        vm.inject(Injection::probe_read().nth(2))?;
        assert!(passes(vm, "lo")?);
        assert!(!passes(vm, "lo")?);
        assert!(passes(vm, "lo")?);
        Ok(())
    });
}

/// Where the filter is detached, every event passes. Who never attached it gets an error: a
/// test that forgets to attach must not pass.
#[test]
fn without_the_filter_all_pass() {
    on_every_engine("lo_filter", |vm| {
        let event = vm.tracepoint("net/netif_receive_skb")?;
        assert!(vm.fire(event).is_err());
        vm.attach_all()?;
        assert!(!passes(vm, "eth0")?);
        vm.detach("only_lo")?;
        let event = vm
            .tracepoint("net/netif_receive_skb")?
            .set("name", "eth0")?;
        assert!(vm.fire(event)?.passed);
        Ok(())
    });
}

/// The kernel ANDs what all programs on a tracepoint return: a second tool there can't
/// bring back what the filter dropped.
#[test]
fn all_programs_on_the_tracepoint_must_agree() {
    on_every_engine("lo_filter", |vm| {
        // The same program once more, as another tool would load it.
        vm.load(Object::open("examples/bpf/lo_filter.bpf.o")?)?;
        vm.attach_all()?;
        for (device, expected) in [("lo", true), ("eth0", false)] {
            let event = vm
                .tracepoint("net/netif_receive_skb")?
                .set("name", device)?;
            let outcome = vm.fire(event)?;
            assert_eq!(outcome.runs.len(), 2);
            assert_eq!(outcome.passed, expected, "{device}");
        }
        Ok(())
    });
}
