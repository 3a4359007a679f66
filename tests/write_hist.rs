//! The first thing a user does: an object that clang built, an event, a map.

use bpflab::{Object, Vm};

fn object() -> Object {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/bpf/write_hist.bpf.o");
    Object::open(path).unwrap()
}

#[test]
fn counts_write_sizes_by_power_of_two() -> bpflab::Result<()> {
    let mut vm = Vm::new(object())?;
    vm.world().task().set_pid(42).set_comm("dd");
    vm.attach_all()?;

    let event = vm
        .tracepoint("syscalls/sys_enter_write")?
        .set("args[2]", 4096)?;
    let outcome = vm.fire(event)?;

    assert_eq!(outcome.returned("count_write"), Some(0)); // 0: the event is not passed on
    assert!(!outcome.passed);
    assert_eq!(vm.map("hist")?.get::<u32, u64>(&12)?, Some(1));
    Ok(())
}

#[test]
fn both_names_of_a_field_are_the_same_field() -> bpflab::Result<()> {
    let mut vm = Vm::new(object())?;
    vm.attach_all()?;
    for (size, slot) in [
        (0u64, 0u32),
        (1, 0),
        (2, 1),
        (4095, 11),
        (4096, 12),
        (u64::MAX, 63),
    ] {
        let before = vm.map("hist")?.get::<u32, u64>(&slot)?;
        let event = vm
            .tracepoint("syscalls/sys_enter_write")?
            .set("count", size)?;
        vm.fire(event)?;
        let after = vm.map("hist")?.get::<u32, u64>(&slot)?;
        assert_eq!(after, before.map(|count| count + 1), "size {size}");
    }
    Ok(())
}
