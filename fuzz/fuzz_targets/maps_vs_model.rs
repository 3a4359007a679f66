#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bpflab::fuzz::targets::maps_vs_model(data));
