//! `urandom_read`: reads of /dev/urandom, one program for old kernels and one for new.

use bpflab::vm::events::{Event, Layout, Scalar};

use crate::engines::on_every_engine_with;

/// A tracepoint that the running kernel need not have: the test declares its record as
/// the old kernels' headers do (include/trace/events/random.h of 5.17).
#[test]
fn the_tracepoint_of_old_kernels() {
    on_every_engine_with(
        "urandom_read",
        |object| {
            object.entry_mut("traced")?.set_autoload(true);
            Ok(())
        },
        |vm| {
            vm.attach_all()?;
            vm.world().task().set_comm("smtp");
            let layout = Layout::declare("random/urandom_read")
                .field("got_bits", Scalar::S32)
                .field("pool_left", Scalar::S32)
                .field("input_left", Scalar::S32)
                .build()?;
            let event = Event::tracepoint(layout);
            let outcome = vm.fire(event.set("got_bits", 384)?.set("input_left", -1)?)?;
            let lines: Vec<_> = outcome.printk().collect();
            assert_eq!(lines, ["smtp got 384 bits, -1 left"]);
            Ok(())
        },
    );
}

/// Without the declaration it is the program's own struct that says what the fields are.
#[test]
fn the_programs_struct_will_do() {
    on_every_engine_with(
        "urandom_read",
        |object| {
            object.entry_mut("traced")?.set_autoload(true);
            Ok(())
        },
        |vm| {
            vm.attach_all()?;
            let event = vm.tracepoint("random/urandom_read")?.set("got_bits", 8)?;
            let outcome = vm.fire(event)?;
            let lines: Vec<_> = outcome.printk().collect();
            assert_eq!(lines, ["bpflab got 8 bits, 0 left"]);
            Ok(())
        },
    );
}

/// On later kernels it is an argument of the function: how much is asked for stands in
/// what it points to.
#[test]
fn the_function_of_new_kernels() {
    on_every_engine_with(
        "urandom_read",
        |object| {
            object.entry_mut("probed")?.set_autoload(true);
            Ok(())
        },
        |vm| {
            vm.attach_all()?;
            vm.world().task().set_comm("smtp");
            let iter = vm.world().kernel("iov_iter")?.set("count", 48)?;
            let event = vm.kprobe("urandom_read_iter")?.arg(2, &iter)?;
            let outcome = vm.fire(event)?;
            let lines: Vec<_> = outcome.printk().collect();
            assert_eq!(lines, ["smtp wants 384 bits"]);

            // A wild pointer reads as nothing.
            let event = vm.kprobe("urandom_read_iter")?.arg(2, 0xdead_u32)?;
            let outcome = vm.fire(event)?;
            let lines: Vec<_> = outcome.printk().collect();
            assert_eq!(lines, ["smtp wants 0 bits"]);
            Ok(())
        },
    );
}

/// Unless it is asked for, nothing is loaded.
#[test]
fn programs_are_loaded_when_they_are_wanted() {
    on_every_engine_with(
        "urandom_read",
        |_| Ok(()),
        |vm| {
            assert_eq!(vm.programs().count(), 0);
            Ok(())
        },
    );
}
