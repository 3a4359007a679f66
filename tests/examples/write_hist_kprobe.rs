//! `write_hist_kprobe`: the sizes of writes, from a function's argument.

use crate::engines::{on_every_engine, on_every_engine_with};

/// By number or, where the kernel's types say it, by name: `vfs_write(file, buf, count,
/// pos)`.
#[test]
fn the_third_argument_is_the_size() {
    on_every_engine("write_hist_kprobe", |vm| {
        vm.attach_all()?;
        vm.fire(vm.kprobe("vfs_write")?.arg(3, 4096)?)?;
        vm.fire(vm.kprobe("vfs_write")?.args([1u64, 2, 5000, 4])?)?;
        assert_eq!(vm.map("hist")?.get::<u32, u64>(&12)?, Some(2));
        Ok(())
    });
}

/// The other arguments, and other registers, don't count.
#[test]
fn nothing_else_is_the_size() {
    on_every_engine("write_hist_kprobe", |vm| {
        vm.attach_all()?;
        for n in [1, 2, 4, 5, 6] {
            vm.fire(vm.kprobe("vfs_write")?.arg(n, 4096)?)?;
        }
        assert_eq!(vm.map("hist")?.get::<u32, u64>(&0)?, Some(5));
        assert_eq!(vm.map("hist")?.get::<u32, u64>(&12)?, Some(0));
        Ok(())
    });
}

/// A call of another function is none of ours.
#[test]
fn other_functions_fire_nothing() {
    on_every_engine("write_hist_kprobe", |vm| {
        vm.attach_all()?;
        let outcome = vm.fire(vm.kprobe("vfs_read")?.arg(3, 4096)?)?;
        assert!(outcome.runs.is_empty());
        Ok(())
    });
}

/// The same program where the kernel calls the function otherwise: what it is attached
/// to is the loader's choice.
#[test]
fn the_loader_chooses_the_function() {
    on_every_engine_with(
        "write_hist_kprobe",
        |object| {
            let entry = object.entry_mut("count_write")?;
            entry.set_attach_target("__vfs_write");
            Ok(())
        },
        |vm| {
            vm.attach_all()?;
            vm.fire(vm.kprobe("__vfs_write")?.arg(3, 1)?)?;
            assert_eq!(vm.map("hist")?.get::<u32, u64>(&0)?, Some(1));
            Ok(())
        },
    );
}
