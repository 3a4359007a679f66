//! Tests of the `Vm` with programs in assembly: attaching, results, faults, error messages.

use std::sync::Arc;

use bpflab::isa::assemble_with;
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType};
use bpflab::vm::events::Event;
use bpflab::vm::{FaultKind, ProgramHandle, World};
use bpflab::{Error, Object, Vm};

/// A program of this type from assembly, with these maps.
fn program(name: &str, prog_type: ProgType, maps: &[MapDef], text: &str) -> Arc<Program> {
    let mut program = Program::new(name, prog_type, Vec::new());
    program.maps = maps.into();
    program.insns = assemble_with(text, &program).unwrap().slots;
    Arc::new(program)
}

fn vm(programs: &[Arc<Program>]) -> Vm {
    let mut vm = Vm::with_world(World::default());
    for program in programs {
        vm.load_unverified_programs(&program.maps, vec![program.clone()])
            .unwrap();
    }
    vm
}

/// Whether an event passes if programs on one tracepoint return these results.
fn passed(results: &[u32]) -> bool {
    let programs: Vec<_> = results
        .iter()
        .enumerate()
        .map(|(n, result)| {
            let text = format!("r0 = {result}\nexit");
            program(&format!("p{n}"), ProgType::Tracepoint, &[], &text)
        })
        .collect();
    let mut vm = vm(&programs);
    for program in &programs {
        vm.attach_to(&program.name, "syscalls/sys_enter_write")
            .unwrap();
    }
    let event = vm.tracepoint("syscalls/sys_enter_write").unwrap();
    let outcome = vm.fire(event).unwrap();
    let returned: Vec<_> = outcome.runs.iter().map(|run| run.returned()).collect();
    assert_eq!(returned, results, "all run, in the order of attachment");
    outcome.passed
}

/// `trace_call_bpf`: the results are ANDed bitwise, starting at 1.
#[test]
fn an_event_passes_where_the_and_of_all_results_is_not_zero() {
    for (results, expected) in [
        (&[][..], true),
        (&[0], false),
        (&[1], true),
        (&[2], false),
        (&[3], true),
        (&[1, 1], true),
        (&[1, 0], false),
        (&[3, 1], true),
        (&[3, 2], false),
        (&[1, 2], false),
    ] {
        assert_eq!(passed(results), expected, "{results:?}");
    }
}

fn fault(text: &str, maps: &[MapDef]) -> Box<bpflab::vm::Fault> {
    let program = program("p", ProgType::SocketFilter, maps, text);
    let mut vm = vm(&[program]);
    vm.set_budget(10_000);
    match vm.run("p", &Event::packet(vec![0; 64])) {
        Err(Error::Fault(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_way_to_stop_says_what_happened() {
    for (text, expected) in [
        (
            "r0 = *(u64 *)(r10 +0)\nexit",
            "reads 8 bytes at stack of p+512, 8 bytes past its end",
        ),
        (
            "*(u8 *)(r10 -513) = 1\nexit",
            "writes 1 byte at stack of p-1, 1 byte before its start",
        ),
        (
            "r1 = 0\nr0 = *(u32 *)(r1 +4)\nexit",
            "reads 4 bytes at a null pointer+4",
        ),
        ("goto pc-1", "the budget of 10000 instructions is used up"),
        ("r0 = 0", "execution leaves the program, for instruction 1"),
        ("call pc-1\nexit", "more than 8 nested calls"),
        ("call 300\nexit", "Linux 6.18 has helpers 1 to 211 only"),
        (
            "call bpf_ima_inode_hash\nexit",
            "vm.mock_helper(\"ima_inode_hash\"",
        ),
    ] {
        let message = fault(text, &[]).kind.to_string();
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn bytes_that_are_no_instruction_stop_where_they_are_reached() {
    let mut broken = Program::new("p", ProgType::SocketFilter, Vec::new());
    broken.insns = bpflab::isa::RawInsn::slots(&[0xff; 16]).0;
    let mut vm = vm(&[Arc::new(broken)]);
    let error = vm.run("p", &Event::packet(vec![0; 64])).unwrap_err();
    let Error::Fault(fault) = error else {
        panic!("{error}")
    };
    assert!(matches!(fault.kind, FaultKind::Decode(_)), "{fault}");
}

#[test]
fn a_callers_stack_is_its_own_and_a_dead_frame_is_seen() {
    // The callee returns the address of its own stack frame, which is stale afterwards.
    let text = "call pc+2\nr0 = *(u64 *)(r0 +0)\nexit\nr0 = r10\nr0 += -8\nexit";
    let message = fault(text, &[]).kind.to_string();
    assert!(
        message.contains("at stack of p+504, which was freed"),
        "{message}"
    );
}

#[test]
fn tail_calls_go_thirty_three_times() {
    let jumps = MapDef::new("jumps", MapType::ProgArray, 4, 4, 1);
    let hits = MapDef::new("hits", MapType::Array, 4, 8, 1);
    let text = "r6 = r1
        r1 = map[idx:1][0]+0
        r2 = 1
        lock *(u64 *)(r1 +0) += r2
        r1 = r6
        r2 = map[idx:0]
        r3 = 0
        call bpf_tail_call
        r0 = 7
        exit";
    let program = program("p", ProgType::SocketFilter, &[jumps, hits], text);
    let mut vm = vm(&[program]);
    let itself = vm.program_handle("p").unwrap();
    vm.map("jumps").unwrap().set_program(0, itself).unwrap();
    let outcome = vm.run("p", &Event::packet(vec![0; 64])).unwrap();
    assert_eq!(outcome.returned("p"), Some(7));
    assert_eq!(
        vm.map("hits").unwrap().get::<u32, u64>(&0).unwrap(),
        Some(34)
    );
}

#[test]
fn a_helper_can_be_replaced_by_a_closure() {
    let text = "r1 = 5\nr2 = r10\nr2 += -8\n*(u64 *)(r10 -8) = 9\ncall bpf_get_stackid\nexit";
    let program = program("p", ProgType::SocketFilter, &[], text);
    let mut vm = vm(&[program]);
    vm.mock_helper("bpf_get_stackid", |call| {
        let pointed = call.read(2, 8)?;
        Ok(call.arg(1) + u64::from(pointed[0]))
    })
    .unwrap();
    let outcome = vm.run("p", &Event::packet(vec![0; 64])).unwrap();
    assert_eq!(outcome.returned("p"), Some(14));
    let error = vm.mock_helper("bpf_no_such_thing", |_| Ok(0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Linux 6.18 has no helper 'bpf_no_such_thing'"
    );
}

#[test]
fn records_that_stay_reserved_are_named() {
    let ring = MapDef::new("rb", MapType::Ringbuf, 0, 0, 4096);
    let text = "r1 = map[idx:0]\nr2 = 24\nr3 = 0\ncall bpf_ringbuf_reserve\nr0 = 0\nexit";
    let program = program("p", ProgType::SocketFilter, &[ring], text);
    let outcome = vm(&[program])
        .run("p", &Event::packet(vec![0; 64]))
        .unwrap();
    let unreleased: Vec<_> = outcome.unreleased.iter().map(ToString::to_string).collect();
    assert_eq!(unreleased, ["ring buffer record of rb"]);
}

#[test]
fn keys_and_values_of_another_size_are_errors() {
    let hist = MapDef::new("hist", MapType::Array, 4, 8, 1);
    let program = program("p", ProgType::SocketFilter, &[hist], "r0 = 0\nexit");
    let vm = vm(&[program]);
    let map = vm.map("hist").unwrap();
    let error = map.get::<u64, u64>(&0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "map 'hist': its key has 4 bytes, 8 given"
    );
    let error = map.get::<u32, u32>(&0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "map 'hist': its value has 8 bytes, 4 given"
    );
    let error = vm.map("his").unwrap_err();
    assert_eq!(error.to_string(), "no map 'his'; there are: hist");
}

#[test]
fn a_handle_of_no_program_is_an_error() {
    let mut vm = vm(&[program("p", ProgType::SocketFilter, &[], "r0 = 0\nexit")]);
    let event = Event::packet(vec![0; 64]);
    let error = vm.run(ProgramHandle(7), &event).unwrap_err();
    assert_eq!(error.to_string(), "no program '#7'; there are: p");
    assert!(vm.runner(ProgramHandle(7), &event).is_err());
}

#[test]
fn programs_of_one_name_from_two_objects_are_all_attached() {
    let mut both = Vec::new();
    for result in [1, 3] {
        let mut one = Program::clone(&program(
            "p",
            ProgType::Tracepoint,
            &[],
            &format!("r0 = {result}\nexit"),
        ));
        one.attach_target = Some("syscalls/sys_enter_write".into());
        both.push(Arc::new(one));
    }
    let mut vm = vm(&both);
    vm.attach_all().unwrap();
    let event = vm.tracepoint("syscalls/sys_enter_write").unwrap();
    let outcome = vm.fire(event).unwrap();
    let returned: Vec<_> = outcome.runs.iter().map(|run| run.returned()).collect();
    assert_eq!(returned, [1, 3]);
}

/// `perf_event_set_bpf_prog` and `__bpf_probe_register` check how far a program reads.
#[test]
fn a_program_that_reads_further_than_the_event_goes_is_not_attached() {
    let text = "r0 = *(u64 *)(r1 +80)\nexit";
    let attached = |prog_type, target| {
        let mut vm = vm(&[program("p", prog_type, &[], text)]);
        vm.attach_to("p", target).map_err(|error| error.to_string())
    };
    let tracepoint = "syscalls/sys_enter_write";
    let refused = attached(ProgType::Tracepoint, tracepoint).unwrap_err();
    assert_eq!(
        refused,
        "program 'p' reads 88 bytes of its context, syscalls/sys_enter_write has 40: \
         EACCES (Permission denied)"
    );
    // The number of arguments is unknown without BTF: the maximum of twelve is allowed.
    attached(ProgType::RawTracepoint, "sched_switch").unwrap();

    let program = program("p", ProgType::Tracepoint, &[], text);
    let mut vm = vm(&[program]);
    let event = vm.tracepoint(tracepoint).unwrap();
    let error = vm.run("p", &event).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Context {
                needed: 88,
                there: 40,
                ..
            }
        ),
        "{error}"
    );
    let text = "r0 = *(u64 *)(r1 +32)\nexit";
    let mut vm = self::vm(&[self::program("q", ProgType::Tracepoint, &[], text)]);
    vm.attach_to("q", tracepoint).unwrap();
    assert_eq!(vm.fire(event).unwrap().returned("q"), Some(0));
}

/// The message of a panic.
fn said(f: impl FnOnce()) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).unwrap_err();
    let text = panic.downcast_ref::<String>().cloned();
    text.expect("a text")
}

/// A mistyped name must not look like a program that did not run or an empty buffer.
#[test]
fn a_mistyped_name_is_an_error_that_names_what_is_there() {
    let object = Object::open("tests/objects/ringbuf_exec.bpf.o").unwrap();
    let mut vm = Vm::new(object).unwrap();
    let event = vm.tracepoint("sched/sched_process_exec").unwrap();
    let nothing = vm.fire(event.clone()).unwrap_err().to_string();
    assert!(
        nothing.contains("none was ever attached; call attach_all()")
            && nothing.contains("on_exec"),
        "{nothing}"
    );
    vm.attach_all().unwrap();
    let other = vm.tracepoint("syscalls/sys_enter_write").unwrap();
    for outcome in [vm.fire(event).unwrap(), vm.fire(other).unwrap()] {
        let ran = !outcome.runs.is_empty();
        assert_eq!(outcome.returned("on_exec").is_some(), ran);
        assert_eq!(outcome.missed_by("on_exec"), 0);
        assert_eq!(outcome.records("started").count(), usize::from(ran));
        for unknown in [
            said(|| _ = outcome.returned("on_exce")),
            said(|| _ = outcome.run("openat")),
            said(|| _ = outcome.missed_by("on_exce")),
        ] {
            assert!(unknown.contains("there are: on_exec"), "{unknown}");
        }
        for unknown in ["evnts", ".bss"] {
            let unknown = said(|| _ = outcome.records(unknown).count());
            assert!(unknown.contains("no ring or perf buffer"), "{unknown}");
            assert!(unknown.contains("there are: started"), "{unknown}");
        }
    }
}

/// A value of the wrong size is an error even if the element does not exist.
#[test]
fn a_type_of_the_wrong_size_is_an_error_without_a_value() {
    let size = |error: Error| match error {
        Error::Size {
            what,
            wanted,
            given,
            ..
        } => (what, wanted, given),
        other => panic!("{other}"),
    };
    let hash = MapDef::new("hist", MapType::Hash, 4, 8, 4);
    let per_cpu = MapDef::new("per_cpu", MapType::PercpuHash, 4, 8, 4);
    let maps = [hash, per_cpu];
    let vm = vm(&[program("p", ProgType::Xdp, &maps, "r0 = 0\nexit")]);
    let hist = vm.map("hist").unwrap();
    assert_eq!(hist.get::<u32, u64>(&12).unwrap(), None);
    assert_eq!(
        size(hist.get::<u32, u32>(&12).unwrap_err()),
        ("value", 8, 4)
    );
    assert_eq!(size(hist.get::<u64, u64>(&12).unwrap_err()), ("key", 4, 8));
    assert_eq!(
        size(hist.take::<u32, u32>(&12).unwrap_err()),
        ("value", 8, 4)
    );
    assert_eq!(hist.entries::<u32, u64>().unwrap(), [(0, 0); 0]);
    assert_eq!(
        size(hist.entries::<u32, u32>().unwrap_err()),
        ("value", 8, 4)
    );
    assert_eq!(size(hist.entries::<u64, u64>().unwrap_err()), ("key", 4, 8));
    assert_eq!(size(hist.keys::<u64>().unwrap_err()), ("key", 4, 8));
    let per_cpu = vm.map("per_cpu").unwrap();
    assert_eq!(per_cpu.get_per_cpu::<u32, u64>(&12).unwrap(), None);
    let wrong = per_cpu.get_per_cpu::<u32, u32>(&12).unwrap_err();
    assert_eq!(size(wrong), ("value", 8, 4));
}

/// In a system call's record an `int` has 8 bytes; a number outside the range of `int` is
/// refused.
#[test]
fn a_number_beyond_the_fields_type_is_refused() {
    let vm = Vm::with_world(World::default());
    let openat = vm.tracepoint("syscalls/sys_enter_openat").unwrap();
    for fits in [0, -100i64, 0xffff_ffff, i64::from(i32::MIN)] {
        openat.clone().set("dfd", fits).unwrap();
    }
    for (field, number) in [
        ("flags", 1i64 << 40),
        ("args[2]", 1 << 32),
        ("dfd", -(1 << 31) - 1),
    ] {
        let error = openat.clone().set(field, number).unwrap_err().to_string();
        assert!(error.contains("32 bits"), "{field}: {error}");
    }
    let write = vm.tracepoint("syscalls/sys_enter_write").unwrap();
    write.set("count", 1i64 << 40).unwrap();
}
