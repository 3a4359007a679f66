//! `one_liners`: bpftrace's tutorial, a line of test for each.

use std::time::Duration;

use bpflab::vm::events::Layout;
use bpflab::{Result, Vm};

use crate::engines::{on_every_engine, on_every_engine_with};

const OBJECT: &str = "one_liners";

/// The slots of a histogram that counted something.
fn hist(vm: &Vm, map: &str) -> Result<Vec<(u32, u64)>> {
    let slots = vm.map(map)?.entries::<u32, u64>()?.into_iter();
    Ok(slots.filter(|(_, count)| *count > 0).collect())
}

/// A command's name as a key.
fn comm(name: &str) -> [u8; 16] {
    let mut comm = [0; 16];
    comm[..name.len()].copy_from_slice(name.as_bytes());
    comm
}

#[test]
fn files_that_are_opened() {
    on_every_engine(OBJECT, |vm| {
        vm.attach("print_open")?;
        vm.world().task().set_comm("cat");
        let path = vm.world().user_cstr("/etc/passwd");

        let event = vm.tracepoint("syscalls/sys_enter_openat")?;
        let outcome = vm.fire(event.set("filename", path)?)?;

        let lines: Vec<_> = outcome.printk().collect();
        assert_eq!(lines, ["cat /etc/passwd"]);
        Ok(())
    });
}

/// Memory that is not there is an empty name, not an error.
#[test]
fn a_name_that_cannot_be_read() {
    on_every_engine(OBJECT, |vm| {
        vm.attach("print_open")?;
        let event = vm.tracepoint("syscalls/sys_enter_openat")?;
        let outcome = vm.fire(event.set("filename", 0xdead_0000u64)?)?;
        let lines: Vec<_> = outcome.printk().collect();
        assert_eq!(lines, ["bpflab "]);
        Ok(())
    });
}

#[test]
fn system_calls_by_program() {
    on_every_engine(OBJECT, |vm| {
        vm.attach("count_syscall")?;
        for name in ["dd", "cat", "dd"] {
            vm.world().task().set_comm(name);
            let event = vm.tracepoint("raw_syscalls/sys_enter")?;
            vm.fire(event)?;
        }
        assert_eq!(vm.map("syscalls")?.get(&comm("dd"))?, Some(2u64));
        assert_eq!(vm.map("syscalls")?.get(&comm("cat"))?, Some(1u64));
        Ok(())
    });
}

#[test]
fn read_sizes_of_one_process() {
    on_every_engine_with(
        OBJECT,
        |object| Ok(object.set_global("wanted_pid", 18644)?),
        |vm| {
            vm.attach("read_sizes")?;
            for (pid, returned) in [(18644, 100), (18644, -4), (1, 100), (18644, 0)] {
                vm.world().task().set_pid(pid);
                let event = vm.tracepoint("syscalls/sys_exit_read")?;
                vm.fire(event.set("ret", returned)?)?;
            }
            assert_eq!(hist(vm, "read_hist")?, [(0, 1), (6, 1)]);
            Ok(())
        },
    );
}

#[test]
fn results_of_reads_in_steps_of_200() {
    on_every_engine(OBJECT, |vm| {
        vm.attach("read_results")?;
        for returned in [-11, 0, 199, 200, 1999, 2000, i64::MAX] {
            vm.fire(vm.kretprobe("vfs_read")?.set("ret", returned)?)?;
        }
        assert_eq!(
            hist(vm, "linear")?,
            [(0, 1), (1, 2), (2, 1), (10, 1), (11, 2)]
        );
        Ok(())
    });
}

#[test]
fn times_of_reads() {
    on_every_engine(OBJECT, |vm| {
        vm.attach("read_begins")?;
        vm.attach("read_ends")?;
        vm.world().task().set_pid(42).set_comm("dd");

        vm.fire(vm.kprobe("vfs_read")?)?;
        vm.world().clock().advance(Duration::from_nanos(1500));
        vm.fire(vm.kretprobe("vfs_read")?)?;
        vm.fire(vm.kretprobe("vfs_read")?)?; // nobody saw it begin

        let entries = vm.map("ns")?.entries::<[u8; 24], u64>()?;
        let mut dd = [0; 24];
        dd[..2].copy_from_slice(b"dd");
        dd[16] = 10; // 2^10 ns and more
        assert_eq!(entries, [(dd, 1)]);
        Ok(())
    });
}

#[test]
fn events_of_the_scheduler() {
    on_every_engine(OBJECT, |vm| {
        // Of tracepoints that no program reads, a test needs no fields.
        for name in ["sched/sched_switch", "sched/sched_wakeup"] {
            vm.declare(Layout::declare(name).build()?);
        }
        vm.attach_with_cookie("count_event", Some("sched/sched_switch"), 1)?;
        vm.attach_with_cookie("count_event", Some("sched/sched_wakeup"), 2)?;

        for name in ["sched_switch", "sched_wakeup", "sched_switch"] {
            let event = vm.tracepoint(&format!("sched/{name}"))?;
            vm.fire(event)?;
        }

        assert_eq!(vm.map("events")?.get::<u64, u64>(&1)?, Some(2));
        assert_eq!(vm.map("events")?.get::<u64, u64>(&2)?, Some(1));
        Ok(())
    });
}

/// How often a stack was counted.
fn of_stack(vm: &Vm, wanted: &[u64]) -> Result<u64> {
    for (id, count) in vm.map("by_stack")?.entries::<u32, u64>()? {
        let stack = vm.map("stacks")?.get::<u32, [u64; 127]>(&id)?;
        if stack.is_some_and(|stack| stack.starts_with(wanted)) {
            return Ok(count);
        }
    }
    Ok(0)
}

#[test]
fn stacks_that_run() {
    on_every_engine(OBJECT, |vm| {
        vm.attach("profile")?;
        let (reads, idles) = (
            [0xffff_ffff_8132_1010u64, 0xffff_ffff_8200_0130],
            [0xffff_ffff_8110_0000u64],
        );
        for stack in [&reads[..], &idles, &reads] {
            vm.world().set_kernel_stack(stack);
            let event = vm.perf_event()?;
            vm.fire(event)?;
        }
        assert_eq!((of_stack(vm, &reads)?, of_stack(vm, &idles)?), (2, 1));
        Ok(())
    });
}

#[test]
fn stacks_that_lead_to_a_switch() {
    on_every_engine(OBJECT, |vm| {
        vm.declare(Layout::declare("sched/sched_switch").build()?);
        vm.attach("switches")?;
        let waits = [0xffff_ffff_8100_2000u64, 0xffff_ffff_8100_1000];
        vm.world().set_kernel_stack(waits);
        let event = vm.tracepoint("sched/sched_switch")?;
        vm.fire(event)?;
        assert_eq!(of_stack(vm, &waits)?, 1);
        Ok(())
    });
}

#[test]
fn sizes_of_requests() {
    on_every_engine(OBJECT, |vm| {
        vm.attach("block_sizes")?;
        for bytes in [0, 4096, 8191, 8192] {
            let event = vm.tracepoint("block/block_rq_issue")?;
            vm.fire(event.set("bytes", bytes)?)?;
        }
        assert_eq!(hist(vm, "block_hist")?, [(0, 1), (12, 2), (13, 1)]);
        Ok(())
    });
}

/// Three objects of the kernel, each pointing to the next.
#[test]
fn paths_by_the_kernels_structs() {
    on_every_engine(OBJECT, |vm| {
        vm.attach("print_path")?;
        let path = vm.world().kernel("path")?;
        let path = path.set("dentry.d_name.name", "retrans_time_ms")?;

        let outcome = vm.fire(vm.kprobe("vfs_open")?.arg(1, &path)?)?;

        let lines: Vec<_> = outcome.printk().collect();
        assert_eq!(lines, ["open path: retrans_time_ms"]);
        Ok(())
    });
}

/// A pointer that leads nowhere: nothing is read, and nothing breaks.
#[test]
fn a_path_without_a_name() {
    on_every_engine(OBJECT, |vm| {
        vm.attach("print_path")?;
        let outcome = vm.fire(vm.kprobe("vfs_open")?.arg(1, 0)?)?;
        let lines: Vec<_> = outcome.printk().collect();
        assert_eq!(lines, ["open path: "]);
        Ok(())
    });
}

/// All of them at once.
#[test]
fn all_are_attached() {
    on_every_engine(OBJECT, |vm| {
        vm.attach_all()?;
        let outcome = vm.fire(vm.kretprobe("vfs_read")?.set("ret", 1)?)?;
        let ran: Vec<_> = outcome
            .runs
            .iter()
            .map(|run| run.program.as_str())
            .collect();
        assert_eq!(ran.len(), 2, "{ran:?}");
        Ok(())
    });
}
