//! `write_hist`: the sizes of write(2), by powers of two.

use bpflab::{Object, Vm};

use crate::engines::on_every_engine;

/// The test of the README.
#[test]
fn counts_write_sizes_by_power_of_two() -> bpflab::Result<()> {
    let object = Object::open("examples/bpf/write_hist.bpf.o")?;
    let mut vm = Vm::new(object)?;
    vm.world().task().set_pid(42).set_comm("dd");
    vm.attach_all()?;

    let event = vm
        .tracepoint("syscalls/sys_enter_write")?
        .set("args[2]", 4096)?;
    let outcome = vm.fire(event)?;

    assert_eq!(outcome.returned("count_write"), Some(0)); // 0: the event is not passed on
    assert_eq!(vm.map("hist")?.get::<u32, u64>(&12)?, Some(1));
    Ok(())
}

bpflab::engine_tests! {
    fn a_write_of_one_page(vm: "examples/bpf/write_hist.bpf.o") {
        vm.attach_all()?;
        vm.fire(vm.tracepoint("syscalls/sys_enter_write")?.set("count", 4096)?)?;
        assert_eq!(vm.map("hist")?.get::<u32, u64>(&12)?, Some(1));
    }
}

/// Each end of a slot; and both names of a field are the same field.
#[test]
fn a_size_is_in_the_slot_of_its_highest_bit() {
    on_every_engine("write_hist", |vm| {
        vm.attach_all()?;
        for (field, size, slot) in [
            ("count", 0u64, 0u32),
            ("args[2]", 1, 0),
            ("count", 2, 1),
            ("args[2]", 3, 1),
            ("count", 4095, 11),
            ("args[2]", 4096, 12),
            ("count", u64::MAX, 63),
        ] {
            let before = vm.map("hist")?.get::<u32, u64>(&slot)?;
            let event = vm
                .tracepoint("syscalls/sys_enter_write")?
                .set(field, size)?;
            vm.fire(event)?;
            let after = vm.map("hist")?.get::<u32, u64>(&slot)?;
            assert_eq!(after, before.map(|count| count + 1), "size {size}");
        }
        Ok(())
    });
}
