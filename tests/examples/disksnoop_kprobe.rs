//! `disksnoop_kprobe`: a line for each request, by functions of the block layer.

use crate::block_latency_kprobe::{complete, request, start};
use crate::engines::on_every_engine;

#[test]
fn a_line_has_operation_bytes_and_latency() {
    on_every_engine("disksnoop_kprobe", |vm| {
        vm.attach_all()?;
        // The flags of a request are above the operation: REQ_SYNC is bit 11.
        for (flags, bytes, line) in [
            (0, 4096, "R 4096 bytes in 250 us"),
            (1 << 11 | 1, 512, "W 512 bytes in 250 us"),
            (2, 0, "- 0 bytes in 250 us"),
        ] {
            let request = request(vm, bytes)?.set("cmd_flags", flags)?;
            start(vm, &request)?;
            assert_eq!(complete(vm, 250, &request, bytes)?, [line]);
            // It is forgotten.
            assert!(complete(vm, 250, &request, bytes)?.is_empty());
        }
        Ok(())
    });
}

/// The size is that of the start: the length is what is left.
#[test]
fn a_request_in_two_parts_is_one_line() {
    on_every_engine("disksnoop_kprobe", |vm| {
        vm.attach_all()?;
        let whole = request(vm, 4096)?;
        start(vm, &whole)?;
        assert!(complete(vm, 10, &whole, 4095)?.is_empty());
        let rest = whole.set("__data_len", 1)?;
        assert_eq!(complete(vm, 10, &rest, 1)?, ["R 4096 bytes in 20 us"]);
        Ok(())
    });
}

#[test]
fn a_completion_without_its_start_is_passed_over() {
    on_every_engine("disksnoop_kprobe", |vm| {
        vm.attach_all()?;
        let request = request(vm, 4096)?;
        assert!(complete(vm, 10, &request, 4096)?.is_empty());
        Ok(())
    });
}
