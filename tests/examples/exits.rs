//! `exits`: how processes end.

use std::time::Duration;

use bpflab::vm::{KernelObject, Outcome};
use bpflab::{Result, Vm};
use zerocopy::FromBytes;

use crate::engines::with_kernel_types;

/// `struct event` of the C.
#[derive(Debug, Clone, Copy, PartialEq, FromBytes)]
#[repr(C)]
struct Record {
    pid: u32,
    ppid: u32,
    status: u32,
    signal: u32,
    lived_ms: u64,
    comm: [u8; 16],
}

/// A process that begins now: its first thread.
fn process(vm: &mut Vm, pid: u32, comm: &str) -> Result<KernelObject> {
    let now = vm.world().clock().monotonic_ns();
    let task = vm.world().kernel("task_struct")?;
    let task = task.set("pid", pid)?.set("tgid", pid)?;
    let task = task.set("start_time", now)?.set("comm", comm)?;
    Ok(task.set("real_parent.tgid", 1)?)
}

/// A task exits; what came of it.
fn exit(vm: &mut Vm, task: &KernelObject) -> Result<Outcome> {
    let event = vm.raw_tracepoint("sched_process_exit")?;
    vm.fire(event.set("args[0]", task)?)
}

fn records(outcome: &Outcome) -> Vec<Record> {
    let records = outcome.records("events");
    let records = records.map(|bytes| Record::read_from_bytes(bytes).expect("a record's size"));
    records.collect()
}

#[test]
fn a_record_says_how_a_process_ended() {
    with_kernel_types("exits", |vm| {
        vm.attach_all()?;
        let task = process(vm, 42, "make")?.set("exit_code", 2 << 8)?;
        vm.world().clock().advance(Duration::from_millis(1500));
        let outcome = exit(vm, &task)?;
        let expected = Record {
            pid: 42,
            ppid: 1,
            status: 2,
            signal: 0,
            lived_ms: 1500,
            comm: *b"make\0\0\0\0\0\0\0\0\0\0\0\0",
        };
        assert_eq!(records(&outcome), [expected]);
        // Every pointer led somewhere.
        assert!(outcome.probed.is_empty());
        Ok(())
    });
}

/// The low 7 bits are the signal, the 8th says that there is a core dump.
#[test]
fn a_signal_is_no_status() {
    with_kernel_types("exits", |vm| {
        vm.attach_all()?;
        for (exit_code, status, signal) in [(9, 0, 9), (0x80 | 11, 0, 11), (0xff00, 255, 0)] {
            let task = process(vm, 42, "victim")?.set("exit_code", exit_code)?;
            let [record] = records(&exit(vm, &task)?)[..] else {
                panic!("one record")
            };
            assert_eq!((record.status, record.signal), (status, signal));
        }
        Ok(())
    });
}

#[test]
fn a_thread_is_no_process() {
    with_kernel_types("exits", |vm| {
        vm.attach_all()?;
        let thread = process(vm, 42, "worker")?.set("pid", 43)?;
        assert_eq!(records(&exit(vm, &thread)?), []);
        Ok(())
    });
}

/// A parent that changes while the child lives: the program sees what is there when it
/// looks.
#[test]
fn an_orphan_has_another_parent() {
    with_kernel_types("exits", |vm| {
        vm.attach_all()?;
        let shell = process(vm, 41, "sh")?;
        let child = process(vm, 42, "sleep")?.set("real_parent", &shell)?;
        let init = process(vm, 1, "init")?;
        assert_eq!(records(&exit(vm, &child)?)[0].ppid, 41);
        let child = child.set("real_parent", &init)?;
        assert_eq!(records(&exit(vm, &child)?)[0].ppid, 1);
        Ok(())
    });
}

/// The kernel's answer to a null pointer in a program like this one is zero, and the
/// outcome says where that happened.
#[test]
fn a_task_without_a_parent_reads_zero() {
    with_kernel_types("exits", |vm| {
        vm.attach_all()?;
        let task = process(vm, 42, "alone")?.set("real_parent", 0)?;
        let outcome = exit(vm, &task)?;
        assert_eq!(records(&outcome)[0].ppid, 0);
        assert_eq!(outcome.probed.len(), 1);
        Ok(())
    });
}
