//! `block_latency`: what disk requests take, over time.

use std::time::Duration;

use bpflab::{Object, Result, Vm};

use crate::engines::{on_every_engine, on_every_engine_with};

/// Devices, as the kernel numbers them: major number above 20 bits of minor number.
const SDA: u32 = 8 << 20;
const NVME: u32 = 259 << 20;

fn issue(vm: &mut Vm, dev: u32, sector: u64) -> Result<()> {
    let event = vm.tracepoint("block/block_rq_issue")?;
    vm.fire(event.set("dev", dev)?.set("sector", sector)?)?;
    Ok(())
}

fn complete(vm: &mut Vm, dev: u32, sector: u64) -> Result<()> {
    let event = vm.tracepoint("block/block_rq_complete")?;
    vm.fire(event.set("dev", dev)?.set("sector", sector)?)?;
    Ok(())
}

fn wait(vm: &mut Vm, micros: u64) {
    vm.world().clock().advance(Duration::from_micros(micros));
}

/// The cells of the heatmap, in order: second, slot and count.
fn cells(vm: &Vm) -> Result<Vec<(u64, u64, u64)>> {
    let entries = vm.map("heatmap")?.entries::<[u64; 2], u64>()?;
    let cells = entries.into_iter();
    let mut cells: Vec<_> = cells.map(|([second, slot], n)| (second, slot, n)).collect();
    cells.sort_unstable();
    Ok(cells)
}

/// How many requests were issued and not completed.
fn under_way(vm: &Vm) -> Result<usize> {
    Ok(vm.map("started")?.entries::<[u64; 2], u64>()?.len())
}

/// The clock stands still until the test moves it, so a latency is exactly what the
/// test says: 700 µs is between 2^9 and 2^10.
#[test]
fn a_request_counts_in_the_slot_of_its_latency() -> Result<()> {
    let object = Object::open("examples/bpf/block_latency.bpf.o")?;
    let mut vm = Vm::new(object)?;
    vm.attach_all()?;
    vm.world().clock().set_ns(5_000_000_000);

    let issued = vm.tracepoint("block/block_rq_issue")?;
    vm.fire(issued.set("dev", SDA)?.set("sector", 2048)?)?;

    vm.world().clock().advance(Duration::from_micros(700));

    let completed = vm.tracepoint("block/block_rq_complete")?;
    vm.fire(completed.set("dev", SDA)?.set("sector", 2048)?)?;

    let second_and_slot = [5, 9];
    let count = vm.map("heatmap")?.get::<[u64; 2], u64>(&second_and_slot)?;
    assert_eq!(count, Some(1));
    Ok(())
}

/// The ends of a slot.
#[test]
fn slots_begin_at_powers_of_two() {
    on_every_engine("block_latency", |vm| {
        vm.attach_all()?;
        vm.world().clock().set_ns(0);
        for (micros, slot) in [(0, 0), (1, 0), (2, 1), (1023, 9), (1024, 10), (1025, 10)] {
            // Each in a second of its own.
            let second = vm.world().clock().monotonic_ns() / 1_000_000_000 + 1;
            vm.world().clock().set_ns(second * 1_000_000_000);
            issue(vm, SDA, 0)?;
            wait(vm, micros);
            complete(vm, SDA, 0)?;
            assert_eq!(cells(vm)?.last(), Some(&(second, slot, 1)), "{micros} µs");
        }
        Ok(())
    });
}

/// The column is the second of the completion, though the request began earlier.
#[test]
fn a_column_is_a_second() {
    on_every_engine("block_latency", |vm| {
        vm.attach_all()?;
        vm.world().clock().set_ns(9_999_900_000);
        issue(vm, SDA, 8)?;
        issue(vm, SDA, 16)?;
        wait(vm, 99);
        complete(vm, SDA, 8)?;
        wait(vm, 1);
        complete(vm, SDA, 16)?;
        assert_eq!(cells(vm)?, [(9, 6, 1), (10, 6, 1)]);
        Ok(())
    });
}

/// One sector on two disks, two sectors on one disk: three requests.
#[test]
fn requests_are_told_apart_by_device_and_sector() {
    on_every_engine("block_latency", |vm| {
        vm.attach_all()?;
        vm.world().clock().set_ns(0);
        issue(vm, SDA, 2048)?;
        issue(vm, NVME, 2048)?;
        issue(vm, SDA, 4096)?;
        assert_eq!(under_way(vm)?, 3);

        // They complete in another order, and on another CPU.
        vm.world().set_cpu(3);
        wait(vm, 10);
        complete(vm, NVME, 2048)?;
        wait(vm, 100);
        complete(vm, SDA, 4096)?;
        wait(vm, 1000);
        complete(vm, SDA, 2048)?;

        assert_eq!(cells(vm)?, [(0, 3, 1), (0, 6, 1), (0, 10, 1)]);
        Ok(())
    });
}

#[test]
fn a_completion_without_its_issue_is_passed_over() {
    on_every_engine("block_latency", |vm| {
        vm.attach_all()?;
        complete(vm, SDA, 2048)?;
        assert_eq!(cells(vm)?, []);
        Ok(())
    });
}

/// Completing forgets the request: a second completion counts nothing, and the sector's
/// next request begins anew.
#[test]
fn a_sector_is_used_again() {
    on_every_engine("block_latency", |vm| {
        vm.attach_all()?;
        vm.world().clock().set_ns(0);
        for micros in [4, 4, 64] {
            issue(vm, SDA, 2048)?;
            wait(vm, micros);
            complete(vm, SDA, 2048)?;
            complete(vm, SDA, 2048)?;
        }
        assert_eq!(cells(vm)?, [(0, 2, 2), (0, 6, 1)]);
        Ok(())
    });
}

/// A request that is issued twice (it was requeued) counts from the last time.
#[test]
fn a_request_that_was_requeued_counts_once() {
    on_every_engine("block_latency", |vm| {
        vm.attach_all()?;
        vm.world().clock().set_ns(0);
        issue(vm, SDA, 2048)?;
        wait(vm, 1000);
        issue(vm, SDA, 2048)?;
        wait(vm, 5);
        complete(vm, SDA, 2048)?;
        assert_eq!(cells(vm)?, [(0, 2, 1)]);
        Ok(())
    });
}

#[test]
fn more_requests_than_there_is_room_for_are_counted() {
    on_every_engine_with(
        "block_latency",
        |object| {
            object.map_mut("started")?.set_max_entries(2)?;
            Ok(())
        },
        |vm| {
            vm.attach_all()?;
            for sector in 0..3 {
                issue(vm, SDA, sector)?;
            }
            let unseen = |vm: &Vm| vm.map("block_la.bss")?.get::<u32, u64>(&0);
            assert_eq!(unseen(vm)?, Some(1));
            complete(vm, SDA, 2)?;
            assert_eq!(cells(vm)?, []);
            complete(vm, SDA, 0)?;
            // There is room again.
            issue(vm, SDA, 2)?;
            assert_eq!(unseen(vm)?, Some(1));
            Ok(())
        },
    );
}
