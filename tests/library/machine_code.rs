//! Machine code and its program: the listing shows both, and machine code always belongs to
//! what was verified.
#![cfg(feature = "jit")]

use bpflab::harness::EngineKind;
use bpflab::spec::UpdateFlags;
use bpflab::{Object, Vm};

fn object(name: &str) -> Object {
    let path = format!("{}/tests/objects/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut object = Object::open(path).expect("it is committed");
    object.set_target(bpflab::object::Target::Own);
    object
}

/// Length of the machine code of `touch_globals` with this value in its read-only data.
fn touch_globals(wanted_pid: u32) -> (Vm, usize) {
    let mut object = object("globals.bpf.o");
    object
        .set_global("wanted_pid", wanted_pid)
        .expect("it is there");
    let mut vm = Vm::new(object).expect("it is verified");
    vm.set_engine(EngineKind::Jit);
    let handle = vm.program_handle("touch_globals").expect("it is there");
    let lowered = vm.lowered(handle).expect("it is verified");
    let code = bpflab::jit::emit(lowered).expect("it is small");
    (vm, code.bytes.len())
}

/// The machine code depends on frozen data: the data can't be changed any more, and with
/// other data the program is verified and compiled again.
#[test]
fn frozen_data_is_part_of_what_was_verified() {
    let ((mut any, short), (mut one, long)) = (touch_globals(0), touch_globals(77));
    assert!(
        short < long,
        "no pid to compare with: {short} and {long} bytes"
    );
    for (vm, expected) in [(&mut any, 0), (&mut one, 1)] {
        let handle = vm.program_handle("touch_globals").expect("it is there");
        let event = vm.raw_tracepoint("sys_enter").expect("it is known");
        let outcome = vm.run(handle, &event).expect("it runs");
        assert_eq!(outcome.runs[0].r0, expected);
        let rodata = vm.map("globals.rodata").expect("it is there");
        let value = rodata
            .get_bytes(&[0; 4])
            .expect("it can be read")
            .expect("one");
        let changed = rodata.set_bytes(&[0; 4], &value, UpdateFlags::empty());
        assert!(changed.is_err(), "frozen data was written");
        assert_eq!(
            vm.run(handle, &event).expect("it runs").runs[0].r0,
            expected
        );
    }
}
