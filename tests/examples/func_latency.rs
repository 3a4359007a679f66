//! `func_latency`: how long a function in user space takes, recursion included.

use std::time::Duration;

use bpflab::{Result, Vm};

use crate::engines::{on_every_engine, on_every_engine_with};

const HANDLE: &str = "/usr/bin/server:handle_request";

fn enter(vm: &mut Vm, thread: u32) -> Result<()> {
    vm.world().task().set_pid(100).set_tid(thread);
    vm.fire(vm.uprobe(HANDLE)?)?;
    Ok(())
}

fn leave(vm: &mut Vm, thread: u32) -> Result<()> {
    vm.world().task().set_pid(100).set_tid(thread);
    vm.fire(vm.uretprobe(HANDLE)?)?;
    Ok(())
}

fn wait(vm: &mut Vm, micros: u64) {
    vm.world().clock().advance(Duration::from_micros(micros));
}

/// The slots that counted something.
fn hist(vm: &Vm) -> Result<Vec<(u32, u64)>> {
    let slots = vm.map("hist")?.entries::<u32, u64>()?.into_iter();
    Ok(slots.filter(|(_, count)| *count > 0).collect())
}

fn threads(vm: &Vm) -> Result<usize> {
    Ok(vm.map("threads")?.entries_bytes()?.len())
}

#[test]
fn a_call_takes_from_its_entry_to_its_return() {
    on_every_engine("func_latency", |vm| {
        vm.attach_all()?;
        enter(vm, 101)?;
        wait(vm, 40);
        enter(vm, 102)?;
        wait(vm, 40);
        leave(vm, 101)?; // 80 µs
        leave(vm, 102)?; // 40 µs
        assert_eq!(hist(vm)?, [(5, 1), (6, 1)]);
        assert_eq!(threads(vm)?, 0);
        Ok(())
    });
}

/// A function that calls itself: each call has its own time, the inner ones included in
/// the outer.
#[test]
fn calls_within_calls_count_each() {
    on_every_engine("func_latency", |vm| {
        vm.attach_all()?;
        for micros in [1000, 100, 10] {
            enter(vm, 101)?;
            wait(vm, micros);
        }
        leave(vm, 101)?; // 10 µs
        leave(vm, 101)?; // 110 µs
        assert_eq!(threads(vm)?, 1);
        leave(vm, 101)?; // 1110 µs
        assert_eq!(hist(vm)?, [(3, 1), (6, 1), (10, 1)]);
        assert_eq!(threads(vm)?, 0);
        Ok(())
    });
}

/// Deeper than the 16 calls that there is room for: those beyond are not timed, and the
/// others are right nevertheless.
#[test]
fn deep_calls_are_not_timed_and_do_no_harm() {
    on_every_engine("func_latency", |vm| {
        vm.attach_all()?;
        for _ in 0..20 {
            enter(vm, 101)?;
            wait(vm, 1);
        }
        for _ in 0..20 {
            leave(vm, 101)?;
        }
        // 5 to 20 µs.
        assert_eq!(hist(vm)?, [(2, 3), (3, 8), (4, 5)]);
        assert_eq!(threads(vm)?, 0);
        Ok(())
    });
}

/// Who is in the function when the probe comes returns without having entered.
#[test]
fn a_return_without_its_entry_is_passed_over() {
    on_every_engine("func_latency", |vm| {
        vm.attach_all()?;
        leave(vm, 101)?;
        enter(vm, 101)?;
        leave(vm, 101)?;
        leave(vm, 101)?;
        assert_eq!(hist(vm)?, [(0, 1)]);
        Ok(())
    });
}

/// More threads than there is room for: those that find none are passed over.
#[test]
fn a_thread_without_room_is_passed_over() {
    on_every_engine_with(
        "func_latency",
        |object| {
            object.map_mut("threads")?.set_max_entries(1)?;
            Ok(())
        },
        |vm| {
            vm.attach_all()?;
            enter(vm, 101)?;
            enter(vm, 102)?;
            leave(vm, 102)?;
            assert_eq!(hist(vm)?, []);
            leave(vm, 101)?;
            assert_eq!(hist(vm)?, [(0, 1)]);
            Ok(())
        },
    );
}
