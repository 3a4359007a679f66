//! `vfs_read_latency`: how long processes wait in a function of the kernel.

use std::time::Duration;

use bpflab::{Result, Vm};
use zerocopy::FromBytes;

use crate::engines::{on_every_engine, on_every_engine_with};

/// `struct reads` of the C.
#[derive(Debug, Clone, Copy, PartialEq, FromBytes)]
#[repr(C)]
struct Reads {
    failed: u64,
    bytes: u64,
    slots: [u32; 32],
}

impl Reads {
    /// The slots that counted something.
    fn slots(&self) -> Vec<(usize, u32)> {
        let slots = self.slots.iter().copied().enumerate();
        slots.filter(|(_, count)| *count > 0).collect()
    }
}

fn reads(vm: &Vm, process: u32) -> Result<Option<Reads>> {
    vm.map("processes")?.get(&process)
}

/// A thread of a process enters the function.
fn enter(vm: &mut Vm, process: u32, thread: u32) -> Result<()> {
    vm.world().task().set_pid(process).set_tid(thread);
    vm.fire(vm.kprobe("vfs_read")?)?;
    Ok(())
}

/// A thread of a process returns from it.
fn leave(vm: &mut Vm, process: u32, thread: u32, returned: i64) -> Result<()> {
    vm.world().task().set_pid(process).set_tid(thread);
    vm.fire(vm.kretprobe("vfs_read")?.set("ret", returned)?)?;
    Ok(())
}

fn wait(vm: &mut Vm, micros: u64) {
    vm.world().clock().advance(Duration::from_micros(micros));
}

#[test]
fn a_read_counts_for_its_process() {
    on_every_engine("vfs_read_latency", |vm| {
        vm.attach_all()?;
        enter(vm, 42, 42)?;
        wait(vm, 250);
        leave(vm, 42, 42, 4096)?;
        let counted = reads(vm, 42)?.expect("a process that was seen");
        assert_eq!(counted.slots(), [(7, 1)]);
        assert_eq!((counted.bytes, counted.failed), (4096, 0));
        assert_eq!(reads(vm, 43)?, None);
        Ok(())
    });
}

/// Two threads of one process and one of another are in the function at the same time.
#[test]
fn threads_do_not_disturb_one_another() {
    on_every_engine("vfs_read_latency", |vm| {
        vm.attach_all()?;
        enter(vm, 42, 42)?;
        wait(vm, 10);
        enter(vm, 42, 43)?;
        wait(vm, 10);
        vm.world().set_cpu(1);
        enter(vm, 50, 50)?;
        wait(vm, 10);
        leave(vm, 42, 42, 1)?; // 30 µs
        leave(vm, 50, 50, 2)?; // 10 µs
        wait(vm, 80);
        leave(vm, 42, 43, 3)?; // 100 µs
        let both = reads(vm, 42)?.expect("a process that was seen");
        assert_eq!((both.slots(), both.bytes), (vec![(4, 1), (6, 1)], 4));
        let other = reads(vm, 50)?.expect("a process that was seen");
        assert_eq!((other.slots(), other.bytes), (vec![(3, 1)], 2));
        Ok(())
    });
}

/// An error is no length: -EINTR is not added to the bytes.
#[test]
fn errors_are_counted_and_not_added() {
    on_every_engine("vfs_read_latency", |vm| {
        vm.attach_all()?;
        for returned in [100, -4, 0] {
            enter(vm, 42, 42)?;
            leave(vm, 42, 42, returned)?;
        }
        let counted = reads(vm, 42)?.expect("a process that was seen");
        assert_eq!(counted.slots(), [(0, 3)]);
        assert_eq!((counted.bytes, counted.failed), (100, 1));
        Ok(())
    });
}

#[test]
fn a_return_without_its_entry_is_passed_over() {
    on_every_engine("vfs_read_latency", |vm| {
        vm.attach_all()?;
        leave(vm, 42, 42, 1)?;
        assert_eq!(reads(vm, 42)?, None);
        // And one return is one return.
        enter(vm, 42, 42)?;
        leave(vm, 42, 42, 1)?;
        leave(vm, 42, 42, 1)?;
        let counted = reads(vm, 42)?.expect("a process that was seen");
        assert_eq!(counted.slots(), [(0, 1)]);
        Ok(())
    });
}

/// What takes longer than there are slots for is in the last one: 2^31 µs are 36
/// minutes, 100,000 seconds are more than a day.
#[test]
fn what_is_too_long_is_in_the_last_slot() {
    on_every_engine("vfs_read_latency", |vm| {
        vm.attach_all()?;
        enter(vm, 42, 42)?;
        vm.world().clock().advance(Duration::from_secs(3000));
        leave(vm, 42, 42, 1)?;
        let counted = reads(vm, 42)?.expect("a process that was seen");
        assert_eq!(counted.slots(), [(31, 1)]);
        enter(vm, 42, 42)?;
        vm.world().clock().advance(Duration::from_secs(100_000));
        leave(vm, 42, 42, 1)?;
        let counted = reads(vm, 42)?.expect("a process that was seen");
        assert_eq!(counted.slots(), [(31, 2)]);
        Ok(())
    });
}

#[test]
fn a_process_without_room_is_not_counted() {
    on_every_engine_with(
        "vfs_read_latency",
        |object| {
            object.map_mut("processes")?.set_max_entries(1)?;
            Ok(())
        },
        |vm| {
            vm.attach_all()?;
            for process in [42, 43, 42] {
                enter(vm, process, process)?;
                leave(vm, process, process, 1)?;
            }
            let counted = reads(vm, 42)?.expect("a process that was seen");
            assert_eq!(counted.slots(), [(0, 2)]);
            assert_eq!(reads(vm, 43)?, None);
            // It left nothing behind.
            assert!(vm.map("inside")?.entries::<u32, u64>()?.is_empty());
            Ok(())
        },
    );
}
