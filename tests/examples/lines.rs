//! The lines of tests that the page about BCC and bpftrace shows in its tables, each
//! doing what the page says.

use crate::shared::{Need, skip};
use std::time::Duration;

use bpflab::vm::Output;
use bpflab::vm::events::Event;
use bpflab::{Object, Result, Vm};

fn open(object: &str) -> Result<Vm> {
    let mut vm = Vm::new(Object::open(object)?)?;
    vm.attach_all()?;
    Ok(vm)
}

/// How many programs an event ran.
fn ran(vm: &mut Vm, event: Event) -> Result<usize> {
    Ok(vm.fire(event)?.runs.len())
}

#[test]
fn events_of_tracepoints_and_probes() -> Result<()> {
    let vm = &mut open("examples/bpf/write_hist.bpf.o")?;
    let event = vm
        .tracepoint("syscalls/sys_enter_write")?
        .set("count", 4096)?;
    assert_eq!(ran(vm, event)?, 1);

    let vm = &mut open("examples/bpf/one_liners.bpf.o")?;
    let value = 4096;
    let kernel_function = vm.kprobe("vfs_read")?.arg(3, 4096)?;
    assert_eq!(vm.kprobe("vfs_read")?.arg(1, value)?, {
        vm.kprobe("vfs_read")?.set("di", value)?
    });
    assert_eq!(ran(vm, kernel_function)?, 1);
    for event in [
        vm.kretprobe("vfs_read")?.set("ret", -4)?,
        vm.kretprobe("vfs_read")?.set("ret", value)?,
    ] {
        assert_eq!(ran(vm, event)?, 2);
    }

    let vm = &mut open("examples/bpf/func_counts.bpf.o")?;
    vm.attach_to("count_call", "vfs_read")?;
    let event = vm.kprobe("vfs_read")?.at(0xffff_ffff_8132_1000);
    assert_eq!(ran(vm, event)?, 1);
    assert_eq!(vm.map("calls")?.get(&0xffff_ffff_8132_1000u64)?, Some(1u64));
    Ok(())
}

/// Programs without a kernel's types: arguments go by number.
#[test]
fn arguments_of_raw_tracepoints() -> Result<()> {
    let vm = &mut Vm::unverified(Object::open("examples/bpf/exits.bpf.o")?)?;
    vm.attach_all()?;
    let task = vm.world().kernel("task_struct")?.set("pid", 7)?;
    let event = vm.raw_tracepoint("sched_switch")?.set("args[1]", &task)?;
    assert_eq!(ran(vm, event)?, 0, "nothing is attached there");
    Ok(())
}

/// Events in user space, of system calls' functions, and samples.
#[test]
fn events_of_user_space() -> Result<()> {
    let vm = &mut open("examples/bpf/usdt_latency.bpf.o")?;
    let event = vm.usdt("server:request__start")?.args([7])?;
    assert_eq!(ran(vm, event)?, 1);

    let path = vm.world().user_cstr("/etc/passwd");
    for event in [
        vm.uprobe("libc.so.6:malloc")?.arg(1, 64)?,
        vm.uretprobe("libc.so.6:malloc")?.set("ret", 0)?,
        vm.ksyscall("execve")?.set("filename", path)?,
        vm.perf_event()?,
    ] {
        assert_eq!(ran(vm, event)?, 0, "nothing is attached there");
    }
    Ok(())
}

/// Traced functions are known by a kernel's types only.
#[test]
fn events_of_traced_functions() -> Result<()> {
    let vm = &mut open("examples/bpf/lo_filter.bpf.o")?;
    if vm.function("vfs_read").is_err() {
        skip(Need::Kernel, "no kernel's types here");
        return Ok(());
    }
    let event = vm.function("vfs_read")?.set("count", 4096)?;
    assert_eq!(ran(vm, event)?, 0, "nothing is attached there");
    let event = vm.function("bpf_lsm_file_open")?;
    assert_eq!(ran(vm, event)?, 0, "nothing is attached there");
    Ok(())
}

#[test]
fn packets() -> Result<()> {
    let vm = &mut open("examples/bpf/xdp_count.bpf.o")?;
    let bytes = vec![0; 64];
    assert_eq!(ran(vm, Event::packet(bytes))?, 1);
    let event = Event::packet_hex("ffffffffffff 0200000000aa 0806")?;
    assert_eq!(ran(vm, event)?, 1);
    assert_eq!(
        vm.map("traffic")?.get_per_cpu::<u32, [u64; 2]>(&256)?,
        Some(vec![[2, 78], [0; 2], [0; 2], [0; 2]])
    );
    Ok(())
}

#[test]
fn the_world() -> Result<()> {
    let vm = &mut open("examples/bpf/one_liners.bpf.o")?;
    vm.world().task().set_pid(42).set_comm("dd");
    vm.world().set_cpu(1);
    vm.world().random().seed(7);
    vm.world().clock().advance(Duration::from_micros(700));
    vm.world().current_task()?.set("real_parent.tgid", 1)?;
    let addresses = [0xffff_ffff_8132_1000u64];
    vm.world()
        .set_kernel_stack(addresses)
        .set_user_stack([0x5555_0000_1000u64]);

    let event = vm.kprobe("vfs_read")?;
    assert_eq!(ran(vm, event)?, 1);
    let now = vm.world().clock().monotonic_ns();
    assert_eq!(vm.map("start")?.get::<u32, u64>(&42)?, Some(now));
    assert!(vm.map("start")?.delete(&42u32)?);
    assert_eq!(vm.map("start")?.get_bytes(&42u32.to_le_bytes())?, None);

    // Timers that are due fire.
    let outcome = vm.advance(Duration::from_secs(1))?;
    assert!(outcome.runs.is_empty());
    Ok(())
}

#[test]
fn what_programs_give_out() -> Result<()> {
    let vm = &mut open("examples/bpf/execsnoop.bpf.o")?;
    let event = vm.tracepoint("sched/sched_process_exec")?;
    let outcome = vm.fire(event.set("filename", "/bin/true")?)?;
    assert_eq!(outcome.records("events").count(), 1);
    assert_eq!(outcome.printk().count(), 0);
    assert!(matches!(outcome.outputs[..], [Output::RingBuf { .. }]));
    assert_eq!(outcome.overridden, None);
    assert_eq!(vm.map("events")?.take_records()?.len(), 1);
    Ok(())
}

#[test]
fn values_of_each_cpu() -> Result<()> {
    let vm = &mut open("examples/bpf/softirqs.bpf.o")?;
    let event = vm.tracepoint("irq/softirq_entry")?.set("vec", 1)?;
    vm.fire(event)?;
    let counts = vm.map("counts")?.get_per_cpu::<u32, u64>(&1)?;
    assert_eq!(counts, Some(vec![1, 0, 0, 0]));
    Ok(())
}

#[test]
fn programs_and_maps_in_maps() -> Result<()> {
    let vm = Vm::new(Object::open("tests/objects/tail_calls.bpf.o")?)?;
    let handle = vm.program_handle("last")?;
    vm.map("jumps")?.set_program(0, handle)?;

    let vm = Vm::new(Object::open("tests/objects/map_in_map.bpf.o")?)?;
    let handle = vm.map("inner_b")?.handle();
    vm.map("outer_array")?.set_inner(&0u32, handle)?;
    let inner = vm.map("outer_array")?.inner(&0u32)?.map(|map| map.handle());
    assert_eq!(inner, Some(handle));
    Ok(())
}

#[test]
fn variables_are_set_before_loading() -> Result<()> {
    let mut object = Object::open("examples/bpf/runqlat.bpf.o")?;
    object.set_global("wanted_pid", 42)?;
    let vm = Vm::new(object)?;
    assert_eq!(vm.programs().count(), 3);
    Ok(())
}
