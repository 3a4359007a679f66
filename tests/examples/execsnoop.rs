//! `execsnoop`: who starts which programs.

use bpflab::vm::Injection;
use bpflab::{Result, Vm};
use zerocopy::FromBytes;

use crate::engines::{on_every_engine, on_every_engine_with};

/// `struct event` of the C.
#[derive(Debug, Clone, Copy, PartialEq, FromBytes)]
#[repr(C)]
struct Record {
    pid: u32,
    ppid: u32,
    uid: u32,
    comm: [u8; 16],
    filename: [u8; 128],
}

/// The text before the first NUL.
fn text(bytes: &[u8]) -> &str {
    let end = bytes.iter().position(|byte| *byte == 0).expect("a NUL");
    std::str::from_utf8(&bytes[..end]).expect("text")
}

/// Starts a program in the current task; the records that this gave.
fn exec(vm: &mut Vm, filename: &str) -> Result<Vec<Record>> {
    let event = vm.tracepoint("sched/sched_process_exec")?;
    let outcome = vm.fire(event.set("filename", filename)?)?;
    let records = outcome.records("events");
    Ok(records
        .map(|bytes| Record::read_from_bytes(bytes).expect("a record's size"))
        .collect())
}

#[test]
fn a_record_says_who_started_what() {
    on_every_engine("execsnoop", |vm| {
        vm.attach_all()?;
        vm.world().task().set_pid(4242).set_uid(33).set_comm("ls");
        vm.world().current_task()?.set("real_parent.tgid", 4200)?;
        let [record] = exec(vm, "/usr/bin/ls")?[..] else {
            panic!("one record")
        };
        assert_eq!((record.pid, record.ppid, record.uid), (4242, 4200, 33));
        assert_eq!(
            (text(&record.comm), text(&record.filename)),
            ("ls", "/usr/bin/ls")
        );
        Ok(())
    });
}

/// The kernel cuts the string, and keeps the NUL.
#[test]
fn a_long_name_is_cut() {
    on_every_engine("execsnoop", |vm| {
        vm.attach_all()?;
        for (len, kept) in [(0, 0), (126, 126), (127, 127), (128, 127), (4000, 127)] {
            let name = "x".repeat(len);
            let [record] = exec(vm, &name)?[..] else {
                panic!("one record")
            };
            assert_eq!(text(&record.filename), &name[..kept]);
        }
        Ok(())
    });
}

#[test]
fn each_record_stands_for_itself() {
    on_every_engine("execsnoop", |vm| {
        vm.attach_all()?;
        exec(vm, "/a/rather/long/name/of/a/program")?;
        exec(vm, "/b")?;
        let waiting = vm.map("events")?.take_records()?;
        assert_eq!(waiting.len(), 2);
        let last = Record::read_from_bytes(&waiting[1]).expect("a record's size");
        assert_eq!(text(&last.filename), "/b");
        Ok(())
    });
}

#[test]
fn a_full_buffer_loses_records_and_says_how_many() {
    on_every_engine_with(
        "execsnoop",
        |object| {
            object.map_mut("events")?.set_max_entries(4096)?;
            Ok(())
        },
        |vm| {
            vm.attach_all()?;
            let mut records = 0;
            for _ in 0..30 {
                records += exec(vm, "/usr/bin/true")?.len();
            }
            // 156 bytes, rounded up to 160, and 8 of the header.
            assert_eq!(records, 4095 / 168);
            let globals = vm.map("execsnoo.bss")?.get::<u32, [u64; 2]>(&0)?;
            assert!(globals.is_some_and(|globals| globals.contains(&6)));
            Ok(())
        },
    );
}

/// Without filling the buffer: the second record finds no room.
#[test]
fn a_record_without_room_is_counted() {
    on_every_engine("execsnoop", |vm| {
        vm.attach_all()?;
        vm.inject(Injection::buffer_full().on_map("events").nth(2))?;
        let records = [exec(vm, "/a")?, exec(vm, "/b")?, exec(vm, "/c")?];
        assert_eq!(records.map(|records| records.len()), [1, 0, 1]);
        let globals = vm.map("execsnoo.bss")?.get::<u32, [u64; 2]>(&0)?;
        assert!(globals.is_some_and(|globals| globals.contains(&1)));
        Ok(())
    });
}

/// A parent that is gone: the chain of pointers ends, and the record says 0.
#[test]
fn a_task_without_a_parent() {
    on_every_engine("execsnoop", |vm| {
        vm.attach_all()?;
        vm.world().current_task()?.set("real_parent", 0)?;
        let [record] = exec(vm, "/sbin/init")?[..] else {
            panic!("one record")
        };
        assert_eq!(record.ppid, 0);
        Ok(())
    });
}
