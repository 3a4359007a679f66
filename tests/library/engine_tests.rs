//! Tests that are defined once and run on each engine, with typed records.

use bpflab::Object;
use bpflab::harness::EngineKind;
use bpflab::vm::events::Event;
use bpflab::zerocopy::FromBytes;

#[derive(FromBytes)]
#[zerocopy(crate = "bpflab::zerocopy")]
#[repr(C)]
struct Started {
    pid: u32,
    uid: u32,
    comm: [u8; 16],
    file: [u8; 64],
}

fn globals() -> bpflab::Result<Object> {
    let mut object = Object::open("tests/objects/globals.bpf.o")?;
    object.set_global("limits.low", 40)?;
    Ok(object)
}

bpflab::engine_tests! {
    fn records_have_types(vm: "tests/objects/ringbuf_exec.bpf.o") {
        vm.attach_all()?;
        let event = vm.tracepoint("sched/sched_process_exec")?;
        let event = event.set("pid", 42)?.set("filename", "/bin/ls")?;
        let outcome = vm.fire(event)?;
        let [started] = outcome.records_as::<Started>("started").try_into().map_err(|_| "records")?;
        assert_eq!((started.pid, started.uid), (42, 1000));
        assert_eq!(&started.comm[..7], b"bpflab\0");
        assert_eq!(&started.file[..8], b"/bin/ls\0");
    }

    #[should_panic(expected = "a record of 'started' has 88 bytes, u64 has 8")]
    fn a_record_of_another_size_is_no_value(vm: "tests/objects/ringbuf_exec.bpf.o") {
        vm.attach_all()?;
        let event = vm.tracepoint("sched/sched_process_exec")?;
        let _ = vm.fire(event)?.records_as::<u64>("started");
    }

    fn objects_can_be_configured(vm: globals()) {
        vm.world().set_cpu(2);
        vm.run("touch_globals", &Event::bytes(vec![0; 16]))?;
        let data = vm.map("globals.bss")?.get_bytes(&[0; 4])?.ok_or("no value")?;
        assert!(data.chunks(4).any(|word| word == 40u32.to_le_bytes()), "{data:?}");
    }
}

#[test]
fn the_chosen_engine_runs() -> bpflab::Result<()> {
    for engine in [EngineKind::Checked, EngineKind::Interp] {
        let object = "tests/objects/ringbuf_exec.bpf.o";
        let package = env!("CARGO_MANIFEST_DIR");
        let (vm, _warnings) = bpflab::harness::vm_on(engine, package, object, |_| {})?;
        assert_eq!(vm.engine_of("on_exec")?.engine, engine);
    }
    Ok(())
}

/// The warnings of one test: uninitialised bytes on the checked engine.
#[test]
fn uninitialised_bytes_are_a_warning_at_the_end() -> bpflab::Result<()> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static WARNED: AtomicUsize = AtomicUsize::new(0);
    fn warn(text: &str) {
        assert!(text.contains("padding after field `comm_len`"), "{text}");
        WARNED.fetch_add(1, Ordering::Relaxed);
    }
    for (engine, warned) in [(EngineKind::Interp, 0), (EngineKind::Checked, 1)] {
        let object = "tests/objects/uninit.bpf.o";
        let package = env!("CARGO_MANIFEST_DIR");
        let (mut vm, warnings) = bpflab::harness::vm_on(engine, package, object, warn)?;
        for _ in 0..3 {
            vm.run("record_padding", &Event::bytes(vec![0; 64]))?;
        }
        drop(warnings);
        assert_eq!(WARNED.load(Ordering::Relaxed), warned);
    }
    Ok(())
}
