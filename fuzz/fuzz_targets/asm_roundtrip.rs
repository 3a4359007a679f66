#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bpflab::fuzz::targets::asm_roundtrip(data));
