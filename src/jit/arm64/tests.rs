use crate::jit::{emit_for, testing::lowered};
use crate::spec::context::Arch;
#[test]
fn dump() {
    let text = std::fs::read_to_string("/tmp/arm.txt").unwrap();
    let e = emit_for(Arch::Arm64, &lowered(&text)).unwrap();
    std::fs::write("/tmp/arm.bin", &e.bytes).unwrap();
    eprintln!("{:x?} {:x?} {}", e.entries, e.ops, e.bytes.len());
}
