//! `disksnoop`: what disks do, request by request and in sum.

use std::time::Duration;

use bpflab::{Result, Vm};
use zerocopy::FromBytes;

use crate::engines::{on_every_engine, on_every_engine_with};

const SDB1: u32 = 8 << 20 | 17;
const NVME: u32 = 259 << 20;

/// `struct event` of the C.
#[derive(Debug, Clone, Copy, PartialEq, FromBytes)]
#[repr(C)]
struct Record {
    major: u32,
    minor: u32,
    sector: u64,
    bytes: u32,
    error: i32,
    latency_us: u64,
    rwbs: [u8; 8],
}

/// `struct device` of the C.
#[derive(Debug, Clone, Copy, PartialEq, FromBytes)]
#[repr(C)]
struct Device {
    requests: u64,
    errors: u64,
    bytes: u64,
    ns: u64,
    slots: [u32; 32],
}

fn issue(vm: &mut Vm, dev: u32, sector: u64, bytes: u32, rwbs: &str) -> Result<()> {
    let event = vm.tracepoint("block/block_rq_issue")?;
    let event = event.set("dev", dev)?.set("sector", sector)?;
    vm.fire(event.set("bytes", bytes)?.set("rwbs", rwbs)?)?;
    Ok(())
}

/// Completes a request after some time; the records that this gave.
fn complete(vm: &mut Vm, after: u64, dev: u32, sector: u64, error: i32) -> Result<Vec<Record>> {
    vm.world().clock().advance(Duration::from_micros(after));
    let event = vm.tracepoint("block/block_rq_complete")?;
    let event = event.set("dev", dev)?.set("sector", sector)?;
    let outcome = vm.fire(event.set("error", error)?)?;
    let records = outcome.records("events");
    Ok(records
        .map(|bytes| Record::read_from_bytes(bytes).expect("a record's size"))
        .collect())
}

fn device(vm: &Vm, dev: u32) -> Result<Option<Device>> {
    vm.map("devices")?.get(&dev)
}

#[test]
fn a_record_says_what_the_request_was() {
    on_every_engine("disksnoop", |vm| {
        vm.attach_all()?;
        issue(vm, SDB1, 2048, 4096, "WS")?;
        let records = complete(vm, 1500, SDB1, 2048, 0)?;
        let expected = Record {
            major: 8,
            minor: 17,
            sector: 2048,
            bytes: 4096,
            error: 0,
            latency_us: 1500,
            rwbs: *b"WS\0\0\0\0\0\0",
        };
        assert_eq!(records, [expected]);
        Ok(())
    });
}

#[test]
fn sizes_are_counted_by_device() {
    on_every_engine("disksnoop", |vm| {
        vm.attach_all()?;
        for (dev, bytes, error) in [
            (SDB1, 4096, 0),
            (SDB1, 8191, -5),
            (SDB1, 512, 0),
            (NVME, 0, 0),
        ] {
            issue(vm, dev, 8, bytes, "R")?;
            complete(vm, 10, dev, 8, error)?;
        }
        let mut slots = [0; 32];
        (slots[9], slots[12]) = (1, 2);
        let expected = Device {
            requests: 3,
            errors: 1,
            bytes: 4096 + 8191 + 512,
            ns: 30_000,
            slots,
        };
        assert_eq!(device(vm, SDB1)?, Some(expected));
        // A flush has no bytes: it counts in the first slot.
        let flushed = device(vm, NVME)?.expect("a device that was seen");
        assert_eq!(
            (flushed.requests, flushed.bytes, flushed.slots[0]),
            (1, 0, 1)
        );
        assert_eq!(device(vm, 0)?, None);
        Ok(())
    });
}

/// The largest request that its 32 bits can say, and a kind with the longest name.
#[test]
fn the_largest_request() {
    on_every_engine("disksnoop", |vm| {
        vm.attach_all()?;
        issue(vm, u32::MAX, u64::MAX, u32::MAX, "FWFSMEX")?;
        let [record] = complete(vm, 0, u32::MAX, u64::MAX, 0)?[..] else {
            panic!("one record")
        };
        assert_eq!((record.major, record.minor), (0xfff, 0xfffff));
        assert_eq!((record.sector, record.bytes), (u64::MAX, u32::MAX));
        assert_eq!(&record.rwbs, b"FWFSMEX\0");
        let seen = device(vm, u32::MAX)?.expect("a device that was seen");
        assert_eq!(seen.slots[31], 1);
        Ok(())
    });
}

#[test]
fn a_completion_without_its_issue_is_passed_over() {
    on_every_engine("disksnoop", |vm| {
        vm.attach_all()?;
        assert_eq!(complete(vm, 1, SDB1, 2048, 0)?, []);
        assert_eq!(device(vm, SDB1)?, None);
        Ok(())
    });
}

/// Records that nobody takes fill the buffer. What no longer fits is counted, and the
/// sums go on.
#[test]
fn records_without_room_are_counted() {
    on_every_engine_with(
        "disksnoop",
        |object| {
            object.map_mut("events")?.set_max_entries(4096)?;
            Ok(())
        },
        |vm| {
            vm.attach_all()?;
            // A record takes 40 bytes and 8 of its header; one byte is always free.
            let (fit, all) = (4095 / 48, 100);
            let mut records = 0;
            for _ in 0..all {
                issue(vm, SDB1, 8, 512, "R")?;
                records += complete(vm, 1, SDB1, 8, 0)?.len();
            }
            assert_eq!(records, fit);
            let requests = device(vm, SDB1)?.expect("a device that was seen").requests;
            assert_eq!(requests, 100);
            let globals = vm.map("disksnoo.bss")?.get::<u32, [u64; 2]>(&0)?;
            assert!(globals.is_some_and(|globals| globals.contains(&(all - fit as u64))));
            // Whoever reads makes room.
            assert_eq!(vm.map("events")?.take_records()?.len(), fit);
            issue(vm, SDB1, 8, 512, "R")?;
            assert_eq!(complete(vm, 1, SDB1, 8, 0)?.len(), 1);
            Ok(())
        },
    );
}
