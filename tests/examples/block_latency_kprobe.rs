//! `block_latency_kprobe`: the heatmap of block requests, by functions of the block layer.

use std::time::Duration;

use bpflab::vm::KernelObject;
use bpflab::{Result, Vm};

use crate::engines::{on_every_engine, on_every_engine_with};

/// A driver starts a request.
pub fn start(vm: &mut Vm, request: &KernelObject) -> Result<()> {
    vm.fire(vm.kprobe("blk_mq_start_request")?.arg(1, request)?)?;
    Ok(())
}

/// So many of its bytes are completed after some time; the lines that this gives.
pub fn complete(
    vm: &mut Vm,
    micros: u64,
    request: &KernelObject,
    bytes: u32,
) -> Result<Vec<String>> {
    vm.world().clock().advance(Duration::from_micros(micros));
    let event = vm.kprobe("blk_update_request")?.arg(1, request)?;
    let outcome = vm.fire(event.arg(3, bytes)?)?;
    Ok(outcome.printk().map(str::to_owned).collect())
}

/// A request of so many bytes.
pub fn request(vm: &mut Vm, bytes: u32) -> Result<KernelObject> {
    Ok(vm.world().kernel("request")?.set("__data_len", bytes)?)
}

/// The heatmap: second, slot, count.
fn cells(vm: &Vm) -> Result<Vec<(u64, u64, u64)>> {
    let cells = vm.map("heatmap")?.entries::<[u64; 2], u64>()?;
    let mut cells: Vec<_> = cells
        .into_iter()
        .map(|([second, slot], count)| (second, slot, count))
        .collect();
    cells.sort_unstable();
    Ok(cells)
}

#[test]
fn requests_count_by_second_and_latency() {
    on_every_engine("block_latency_kprobe", |vm| {
        vm.attach_all()?;
        vm.world().clock().set_ns(7_000_000_000);
        let (one, other) = (request(vm, 4096)?, request(vm, 512)?);
        start(vm, &one)?;
        start(vm, &other)?;
        complete(vm, 100, &one, 4096)?; // 100 µs
        complete(vm, 30, &other, 512)?; // 130 µs
        vm.world().clock().set_ns(8_000_000_000);
        start(vm, &one)?;
        complete(vm, 100, &one, 4096)?;
        assert_eq!(cells(vm)?, [(7, 6, 1), (7, 7, 1), (8, 6, 1)]);
        assert!(vm.map("started")?.entries::<u64, u64>()?.is_empty());
        Ok(())
    });
}

/// A request counts when its last bytes are completed.
#[test]
fn parts_of_a_request_do_not_count() {
    on_every_engine("block_latency_kprobe", |vm| {
        vm.attach_all()?;
        vm.world().clock().set_ns(7_000_000_000);
        let whole = request(vm, 4096)?;
        start(vm, &whole)?;
        complete(vm, 10, &whole, 1024)?;
        assert!(cells(vm)?.is_empty());
        let rest = whole.set("__data_len", 3072)?;
        complete(vm, 10, &rest, 3072)?; // 20 µs
        assert_eq!(cells(vm)?, [(7, 4, 1)]);
        Ok(())
    });
}

#[test]
fn a_completion_without_its_start_is_passed_over() {
    on_every_engine("block_latency_kprobe", |vm| {
        vm.attach_all()?;
        let request = request(vm, 4096)?;
        complete(vm, 10, &request, 4096)?;
        start(vm, &request)?;
        complete(vm, 10, &request, 4096)?;
        complete(vm, 10, &request, 4096)?;
        let counted: u64 = cells(vm)?.iter().map(|(_, _, count)| count).sum();
        assert_eq!(counted, 1);
        Ok(())
    });
}

#[test]
fn requests_without_room_are_counted() {
    on_every_engine_with(
        "block_latency_kprobe",
        |object| {
            object.map_mut("started")?.set_max_entries(1)?;
            Ok(())
        },
        |vm| {
            vm.attach_all()?;
            let (one, other) = (request(vm, 4096)?, request(vm, 4096)?);
            start(vm, &one)?;
            start(vm, &other)?;
            complete(vm, 1, &one, 4096)?;
            complete(vm, 1, &other, 4096)?;
            assert_eq!(vm.map("block_la.bss")?.get::<u32, u64>(&0)?, Some(1));
            assert_eq!(cells(vm)?.len(), 1);
            Ok(())
        },
    );
}
