//! `func_counts`: calls of as many functions as the program is attached to.

use crate::engines::{on_every_engine, on_every_engine_with};

#[test]
fn calls_count_by_function() {
    on_every_engine("func_counts", |vm| {
        for function in ["vfs_read", "vfs_write", "vfs_open"] {
            vm.attach_to("count_call", function)?;
        }
        // A function is where the test says, or anywhere else.
        let read = vm.kprobe("vfs_read")?.at(0xffff_ffff_8132_1000);
        let write = vm.kprobe("vfs_write")?.at(0xffff_ffff_8132_2000);
        for event in [&read, &write, &read, &read] {
            vm.fire(event.clone())?;
        }
        let calls = |at: u64| vm.map("calls")?.get::<u64, u64>(&at);
        assert_eq!(calls(0xffff_ffff_8132_1000)?, Some(3));
        assert_eq!(calls(0xffff_ffff_8132_2000)?, Some(1));
        assert_eq!(vm.map("calls")?.entries::<u64, u64>()?.len(), 2);
        Ok(())
    });
}

/// Its section says kprobe and no more: nothing is attached until the test does it.
#[test]
fn it_counts_what_it_is_attached_to() {
    on_every_engine("func_counts", |vm| {
        vm.attach_all()?; // a section `kprobe` names no function
        assert!(vm.fire(vm.kprobe("vfs_read")?).is_err());
        vm.attach_to("count_call", "vfs_read")?;
        assert_eq!(vm.fire(vm.kprobe("vfs_read")?)?.runs.len(), 1);
        assert!(vm.fire(vm.kprobe("vfs_write")?)?.runs.is_empty());
        Ok(())
    });
}

/// Each function is found at an address of its own, the same each time.
#[test]
fn functions_have_addresses() {
    on_every_engine("func_counts", |vm| {
        for function in ["vfs_read", "vfs_write"] {
            vm.attach_to("count_call", function)?;
        }
        for function in ["vfs_read", "vfs_write", "vfs_read"] {
            vm.fire(vm.kprobe(function)?)?;
        }
        let calls = vm.map("calls")?.entries::<u64, u64>()?;
        let mut counts: Vec<_> = calls.iter().map(|(_, count)| *count).collect();
        counts.sort_unstable();
        assert_eq!(counts, [1, 2]);
        Ok(())
    });
}

#[test]
fn a_full_map_says_how_many_calls_it_lost() {
    on_every_engine_with(
        "func_counts",
        |object| {
            object.map_mut("calls")?.set_max_entries(1)?;
            Ok(())
        },
        |vm| {
            vm.attach_to("count_call", "vfs_read")?;
            vm.attach_to("count_call", "vfs_write")?;
            for function in ["vfs_read", "vfs_write", "vfs_read", "vfs_write"] {
                vm.fire(vm.kprobe(function)?)?;
            }
            let calls = vm.map("calls")?.entries::<u64, u64>()?;
            assert_eq!(
                calls.iter().map(|(_, count)| *count).collect::<Vec<_>>(),
                [2]
            );
            assert_eq!(vm.map("func_cou.bss")?.get::<u32, u64>(&0)?, Some(2));
            Ok(())
        },
    );
}
