//! Code that other pages of the documentation show.

use bpflab::compare::replay::Replay;
use bpflab::harness::Interrupt;
use bpflab::vm::SocketState;
use bpflab::vm::attach::{Level, MissedWhy};
use bpflab::{Object, Result, Vm};

/// docs/attach.md: an event in the middle of a run.
#[test]
fn events_in_the_middle_of_runs() -> Result<()> {
    let mut vm = Vm::new(Object::open("examples/bpf/vfs_read_latency.bpf.o")?)?;
    vm.attach_all()?;
    vm.attach_to("enter", "vfs_write")?;

    // While `leave` counts a read, an interrupt hits vfs_write.
    let place = Interrupt::at_call("bpf_ktime_get_ns")?.of("leave");
    vm.interrupt(place, vm.kprobe("vfs_write")?);

    vm.fire(vm.kprobe("vfs_read")?)?;
    let outcome = vm.fire(vm.kretprobe("vfs_read")?)?;
    assert_eq!(outcome.missed_by("enter"), 1);
    assert_eq!(
        outcome.nested[0].outcome.missed[0].why,
        MissedWhy::CpuActive
    );
    assert_eq!(outcome.nested[0].level, Level::HardIrq);
    Ok(())
}

/// The same page: an event that a helper causes.
#[test]
fn events_that_helpers_cause() -> Result<()> {
    let mut vm = Vm::new(Object::open("examples/bpf/vfs_read_latency.bpf.o")?)?;
    vm.attach_all()?;
    vm.attach_to("enter", "vfs_write")?;

    // A helper reaches a probed function itself.
    let write = vm.kprobe("vfs_write")?;
    vm.mock_helper("bpf_ktime_get_ns", move |call| call.fire(&write).map(|_| 0))?;

    let outcome = vm.fire(vm.kprobe("vfs_read")?)?;
    assert_eq!(outcome.missed_by("enter"), 1);
    Ok(())
}

/// docs/networking.md: what helpers find.
#[test]
fn a_mocked_network() -> Result<()> {
    let mut vm = Vm::new(Object::open("examples/bpf/xdp_count.bpf.o")?)?;

    let net = vm.world().net();
    net.device(2, "eth0")
        .mtu(1500)
        .mac("02:00:00:00:00:02")?
        .address("192.168.0.2")?;
    net.route("10.0.0.0/8")?.via("192.168.0.1")?.dev(2);
    net.neighbour("192.168.0.1", 2, "02:00:00:00:00:99")?;
    let server = net
        .tcp()
        .local("10.0.0.1:80")?
        .state(SocketState::Listen)
        .mark(7)
        .id();

    assert!(vm.socket_address(server)?.is_some());
    Ok(())
}

/// docs/test-files.md: a recording as a fixture.
#[test]
fn a_recording_as_a_fixture() -> Result<()> {
    let object = Object::open("examples/bpf/write_hist.bpf.o")?;
    Replay::new(&object, "examples/recordings/writes.rec")?.check()?;
    Ok(())
}
