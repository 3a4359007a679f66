//! Attach points: who runs, in which order, who is skipped, and what becomes of the
//! results. On every engine.

use std::sync::Arc;

use bpflab::btf::{Builder, Encoding, Linkage, Member, Param};
use bpflab::harness::{EngineKind, Interrupt};
use bpflab::isa::assemble_with;
use bpflab::program::{MapDef, Program};
use bpflab::spec::{AttachType, MapType, ProgType};
use bpflab::vm::attach::{Level, MissedWhy};
use bpflab::vm::events::{Event, Layout, Scalar};
use bpflab::vm::{Outcome, World};
use bpflab::{Error, Vm};

const ENGINES: [EngineKind; 3] = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit];
const WRITE: &str = "syscalls/sys_enter_write";

/// A program from its text, in a section that says what it is.
fn program(name: &str, section: &str, text: &str) -> Program {
    with_maps(name, section, text, &[])
}

fn with_maps(name: &str, section: &str, text: &str, maps: &[MapDef]) -> Program {
    let found = bpflab::spec::Section::classify(section).unwrap();
    let mut program = Program::new(name, found.rule.prog_type, Vec::new());
    program.expected_attach_type = found.rule.attach_type;
    program.attach_target = found.target.map(str::to_owned);
    program.section = section.to_owned();
    program.license = "GPL".to_owned();
    program.maps = maps.into();
    program.insns = assemble_with(text, &program).unwrap().slots;
    program
}

/// A program that returns a number.
fn returns(name: &str, section: &str, result: i64) -> Program {
    program(name, section, &format!("r0 = {result}\nexit"))
}

fn vm(programs: Vec<Program>) -> Vm {
    let mut vm = Vm::with_world(World::default());
    for program in programs {
        let program = Arc::new(program);
        vm.load_unverified_programs(&program.maps.clone(), vec![program])
            .unwrap();
    }
    vm
}

/// The same with all of them attached.
fn attached(programs: Vec<Program>) -> Vm {
    let mut vm = vm(programs);
    vm.attach_all().unwrap();
    vm
}

fn ran(outcome: &Outcome) -> Vec<&str> {
    outcome
        .runs
        .iter()
        .map(|run| run.program.as_str())
        .collect()
}

fn write_event(vm: &Vm) -> Event {
    let event = vm.tracepoint(WRITE).unwrap();
    event.set("count", 0x1234).unwrap()
}

/// 0, 1, 2, 3 alone and in pairs: ANDed bitwise, starting at 1. What passes reaches the
/// perf buffer as the record that it is.
#[test]
fn results_on_a_tracepoint_are_anded_and_decide_about_the_sample() {
    let section = format!("tp/{WRITE}");
    for engine in ENGINES {
        for first in 0..4 {
            for second in [None, Some(0), Some(1), Some(2), Some(3)] {
                let mut programs = vec![returns("a", &section, first)];
                programs.extend(second.map(|second| returns("b", &section, second)));
                let mut vm = attached(programs);
                vm.set_engine(engine);
                let event = write_event(&vm);
                let outcome = vm.fire(event.clone()).unwrap();
                let expected = 1 & first & second.unwrap_or(3);
                assert_eq!(outcome.verdict, Some(expected), "{first} {second:?}");
                assert_eq!(outcome.passed, expected != 0);
                let sample = outcome.perf_sample();
                assert_eq!(sample.is_some(), expected != 0);
                if let Some(sample) = sample {
                    let mut record = event.record();
                    assert_eq!(sample[4..8], 1000i32.to_le_bytes(), "common_pid");
                    record[4..8].copy_from_slice(&sample[4..8]);
                    assert_eq!(sample, record);
                    assert_eq!((sample.len() + 4) % 8, 0);
                }
            }
        }
    }
    // Nobody is attached: it passes.
    let mut vm = vm(Vec::new());
    let event = write_event(&vm);
    let outcome = vm.fire(event).unwrap();
    assert!(outcome.passed && outcome.perf_sample().is_some());
}

/// Programs of one's choice see an event as if they were attached there: what is attached
/// does not count, and a fault is told with what came of those before.
#[test]
fn an_event_for_programs_of_ones_choice() {
    for engine in ENGINES {
        let section = format!("tp/{WRITE}");
        let mut vm = attached(vec![returns("attached", &section, 0)]);
        let own = [returns("one", "tp", 1), returns("two", "tp", 2)];
        let wild = program("wild", "tp", "r0 = *(u64 *)(r10 +8)\nexit");
        for program in own.into_iter().chain([wild]) {
            vm.load_unverified_programs(&[], vec![Arc::new(program)])
                .unwrap();
        }
        vm.set_engine(engine);
        let handle = |name| vm.program_handle(name).unwrap();
        let [one, two, wild] = ["one", "two", "wild"].map(handle);
        let event = write_event(&vm);

        let alone = vm.fire_for(&[one], event.clone()).unwrap();
        assert!(alone.outcome.passed && alone.outcome.perf_sample().is_some());
        let both = vm.fire_for(&[two, one], event.clone()).unwrap();
        assert_eq!(ran(&both.outcome), ["two", "one"]);
        assert_eq!(
            (both.outcome.verdict, both.outcome.passed),
            (Some(0), false)
        );
        let runs: Vec<_> = both.runs.iter().map(|(program, _)| *program).collect();
        assert_eq!(runs, [two, one]);

        let stopped = vm.fire_for(&[one, wild, two], event.clone()).unwrap();
        assert_eq!(ran(&stopped.outcome), ["one"]);
        assert_eq!(stopped.runs.len(), 1);
        assert_eq!(stopped.fault.unwrap().0, wild);

        let kprobe = vm.kprobe("vfs_read").unwrap();
        assert!(matches!(vm.fire_for(&[one], kprobe), Err(Error::Event(_))));
    }
}

#[test]
fn programs_run_in_the_order_of_their_hook() {
    for (section, target, expected) in [
        ("tp", WRITE, ["a", "b", "c"]),
        ("raw_tp", "sched_switch", ["a", "b", "c"]),
        // The kernel puts these at the head of a list.
        ("kprobe", "vfs_read", ["c", "b", "a"]),
        ("kretprobe", "vfs_read", ["a", "b", "c"]),
        ("uprobe", "/bin/bash:readline", ["c", "b", "a"]),
    ] {
        let programs = ["a", "b", "c"].map(|name| returns(name, section, 1));
        let mut vm = vm(programs.to_vec());
        for name in ["a", "b", "c"] {
            vm.attach_to(name, target).unwrap();
        }
        let event = match section {
            "tp" => vm.tracepoint(target).unwrap(),
            "raw_tp" => vm.raw_tracepoint(target).unwrap(),
            "kprobe" => vm.kprobe(target).unwrap(),
            "kretprobe" => vm.kretprobe(target).unwrap(),
            _ => vm.uprobe("readline").unwrap(),
        };
        let outcome = vm.fire(event).unwrap();
        assert_eq!(ran(&outcome), expected, "{section}");
    }
}

/// `trace_call_bpf`: while one program runs, no list of such programs does.
#[test]
fn a_cpu_with_an_active_program_skips_whole_lists_and_counts_them() {
    let mut vm = attached(vec![
        program(
            "outer",
            "kprobe/vfs_read",
            "call bpf_ktime_get_ns\nr0 = 1\nexit",
        ),
        returns("one", &format!("tp/{WRITE}"), 1),
        returns("two", &format!("tp/{WRITE}"), 1),
        returns("raw", "raw_tp/sys_enter", 0),
        returns("probe", "uprobe//bin/bash:readline", 1),
        returns("sampler", "perf_event", 1),
    ]);
    let inner = [
        write_event(&vm),
        vm.raw_tracepoint("sys_enter").unwrap(),
        vm.uprobe("/bin/bash:readline").unwrap(),
        vm.perf_event().unwrap(),
        vm.kprobe("vfs_read").unwrap(),
    ];
    for event in inner {
        let place = Interrupt::at_call("ktime_get_ns").unwrap().of("outer");
        vm.interrupt(place, event);
    }
    let event = vm.kprobe("vfs_read").unwrap();
    let outcome = vm.fire(event).unwrap();
    assert_eq!(ran(&outcome), ["outer"]);
    let told: Vec<_> = outcome
        .nested
        .iter()
        .map(|nested| (ran(&nested.outcome), nested.outcome.missed.len()))
        .collect();
    // A list; a guard of its own; none at all; not counted by the kernel; itself.
    let expected = [
        (vec![], 2),
        (vec!["raw"], 0),
        (vec!["probe"], 0),
        (vec![], 1),
        (vec![], 1),
    ];
    assert_eq!(told, expected);
    let why = |n: usize| outcome.nested[n].outcome.missed[0].why;
    assert_eq!(why(0), MissedWhy::CpuActive);
    assert_eq!(why(3), MissedWhy::CpuActiveUncounted);
    assert!(why(0).is_counted() && !why(3).is_counted());
    let skipped = &outcome.nested[0].outcome;
    assert_eq!((skipped.passed, skipped.verdict), (false, Some(0)));
    assert_eq!(outcome.missed_by("two"), 1);
    assert_eq!(outcome.missed_by("outer"), 1, "the one in its middle");
    assert_eq!(outcome.nested[0].level, Level::HardIrq);

    // Nothing stays active.
    vm.clear_interrupts();
    let event = write_event(&vm);
    assert_eq!(ran(&vm.fire(event).unwrap()), ["one", "two"]);
}

/// `perf_trace_buf_alloc`: a tracepoint in a tracepoint's program is not even a miss,
/// unless an interrupt brings another buffer.
#[test]
fn a_tracepoint_inside_a_tracepoint_needs_a_buffer_of_its_own() {
    for (level, why) in [
        (Level::Task, MissedWhy::Recursion),
        (Level::SoftIrq, MissedWhy::CpuActive),
        (Level::Nmi, MissedWhy::CpuActive),
    ] {
        let mut vm = attached(vec![
            returns("outer", &format!("tp/{WRITE}"), 1),
            returns("inner", "tp/syscalls/sys_exit_write", 1),
        ]);
        let inner = vm.tracepoint("syscalls/sys_exit_write").unwrap();
        vm.interrupt(Interrupt::at_insn(1).of("outer").level(level), inner);
        let event = write_event(&vm);
        let outcome = vm.fire(event).unwrap();
        let missed = &outcome.nested[0].outcome.missed;
        assert_eq!((missed.len(), missed[0].why), (1, why), "{level:?}");
        assert_eq!(missed[0].program, "inner");
        assert!(outcome.passed);
    }
}

/// `__bpf_trace_run`, `__bpf_prog_enter_recur`: each program for itself.
#[test]
fn raw_tracepoints_guard_each_program() {
    let mut vm = attached(vec![
        program(
            "one",
            "raw_tp/sched_switch",
            "call bpf_ktime_get_ns\nr0 = 0\nexit",
        ),
        program(
            "two",
            "raw_tp/sched_switch",
            "call bpf_jiffies64\nr0 = 0\nexit",
        ),
    ]);
    let event = vm.raw_tracepoint("sched_switch").unwrap();
    let place = Interrupt::at_call("bpf_ktime_get_ns").unwrap();
    vm.interrupt(place, event.clone());
    let outcome = vm.fire(event).unwrap();
    assert_eq!(ran(&outcome), ["one", "two"]);
    let nested = &outcome.nested[0].outcome;
    assert_eq!(ran(nested), ["two"]);
    assert_eq!(nested.missed[0].program, "one");
    assert_eq!(nested.missed[0].why, MissedWhy::ProgramActive);
    assert_eq!((outcome.missed_by("one"), outcome.missed_by("two")), (1, 0));
}

/// The guard is that of the program that is attached: a tail call does not take it along.
#[test]
fn a_program_that_a_tail_call_leads_to_has_no_guard() {
    let jumps = MapDef::new("jumps", MapType::ProgArray, 4, 4, 1);
    let from = "r2 = map[idx:0]\nr3 = 0\ncall bpf_tail_call\nr0 = 7\nexit";
    let mut vm = attached(vec![
        with_maps("from", "raw_tp/sched_switch", from, &[jumps]),
        program(
            "to",
            "raw_tp/sys_enter",
            "call bpf_ktime_get_ns\nr0 = 0\nexit",
        ),
    ]);
    let to = vm.program_handle("to").unwrap();
    vm.map("jumps").unwrap().set_program(0, to).unwrap();
    for name in ["sys_enter", "sched_switch"] {
        let inner = vm.raw_tracepoint(name).unwrap();
        let place = Interrupt::at_call("ktime_get_ns").unwrap().of("to");
        vm.interrupt(place, inner);
    }
    let event = vm.raw_tracepoint("sched_switch").unwrap();
    let outcome = vm.fire(event).unwrap();
    assert_eq!(outcome.returned("from"), Some(0));
    let [sys_enter, sched_switch] = &outcome.nested[..] else {
        panic!("{:?}", outcome.nested)
    };
    assert_eq!(ran(&sys_enter.outcome), ["to"], "not active itself");
    assert_eq!(sched_switch.outcome.missed[0].program, "from");
}

#[test]
fn a_mock_fires_an_event_and_what_the_run_holds_stays() {
    for engine in ENGINES {
        let ring = MapDef::new("rb", MapType::Ringbuf, 0, 0, 4096);
        let text = "r1 = map[idx:0]
            r2 = 8
            r3 = 0
            call bpf_ringbuf_reserve
            if r0 == 0 goto +8
            r6 = r0
            r1 = 77
            *(u64 *)(r6 +0) = r1
            call bpf_ktime_get_boot_ns
            r1 = r6
            r2 = 0
            call bpf_ringbuf_submit
            r0 = 1
            exit";
        let text = text.replace("goto +8", "goto pc+8");
        let mut vm = attached(vec![
            with_maps("outer", "kprobe/f", &text, std::slice::from_ref(&ring)),
            program("inner", "raw_tp/sched_switch", "r0 = *(u64 *)(r1 +8)\nexit"),
        ]);
        vm.set_engine(engine);
        let inner = vm.raw_tracepoint("sched_switch").unwrap();
        let inner = inner.set("args[1]", 5).unwrap();
        vm.mock_helper("ktime_get_boot_ns", move |call| {
            let outcome = call.fire(&inner)?;
            assert!(outcome.unreleased.is_empty() && outcome.outputs.is_empty());
            Ok(outcome.returned("inner").unwrap_or_default().into())
        })
        .unwrap();
        let event = vm.kprobe("f").unwrap();
        let outcome = vm.fire(event).unwrap();
        assert_eq!(outcome.records("rb").count(), 1);
        assert_eq!(outcome.nested[0].outcome.returned("inner"), Some(5));
        assert_eq!(outcome.nested[0].level, Level::Task);
        assert!(outcome.unreleased.is_empty());
    }
}

#[test]
fn events_nest_more_than_once_and_count_by_place() {
    let mut vm = attached(vec![
        program(
            "a",
            "raw_tp/one",
            "call bpf_ktime_get_ns\ncall bpf_ktime_get_ns\nr0 = 0\nexit",
        ),
        program("b", "raw_tp/two", "call bpf_jiffies64\nr0 = 0\nexit"),
        returns("c", "raw_tp/three", 0),
    ]);
    let event = |vm: &Vm, name: &str| vm.raw_tracepoint(name).unwrap();
    let (two, three) = (event(&vm, "two"), event(&vm, "three"));
    vm.interrupt(Interrupt::at_call("ktime_get_ns").unwrap().nth(2), two);
    vm.interrupt(Interrupt::at_call("jiffies64").unwrap().repeats(), three);
    let one = event(&vm, "one");
    let outcome = vm.fire(one.clone()).unwrap();
    assert_eq!(outcome.nested.len(), 1, "at the second call only");
    assert_eq!(ran(&outcome.nested[0].outcome), ["b"]);
    let deepest = &outcome.nested[0].outcome.nested;
    assert_eq!(ran(&deepest[0].outcome), ["c"]);
    assert!(vm.fire(one).unwrap().nested.is_empty(), "only once");
    let outcome = vm.fire(event(&vm, "two")).unwrap();
    assert_eq!(outcome.nested.len(), 1, "each time");
}

#[test]
fn what_stops_in_the_middle_stops_the_run() {
    let mut vm = vm(vec![
        program("outer", "raw_tp/one", "r0 = 0\nexit"),
        program("bad", "raw_tp/two", "r0 = *(u64 *)(r10 +8)\nexit"),
    ]);
    vm.attach_all().unwrap();
    let inner = vm.raw_tracepoint("two").unwrap();
    vm.interrupt(Interrupt::at_insn(0).of("outer"), inner);
    let event = vm.raw_tracepoint("one").unwrap();
    let Err(Error::Fault(fault)) = vm.fire(event.clone()) else {
        panic!("it must not go on")
    };
    assert_eq!(fault.program, "bad");
    // Nothing stays active: it can be fired again.
    assert_eq!(ran(&vm.fire(event).unwrap()), ["outer"]);
}

#[test]
fn cgroup_programs_all_run_and_all_must_allow() {
    let section = "cgroup_skb/egress";
    for (results, verdict, passed) in [
        ([1, 1], 0, true),
        ([1, 0], -1, false),
        ([0, 1], -1, false),
        // Congestion is a flag beside the permission.
        ([3, 1], 0, true),
    ] {
        let programs = ["a", "b"].into_iter().zip(results);
        let mut vm = attached(
            programs
                .map(|(name, result)| returns(name, section, result))
                .collect(),
        );
        let outcome = vm.fire(Event::packet(vec![0; 64])).unwrap();
        assert_eq!(ran(&outcome), ["a", "b"]);
        assert_eq!((outcome.verdict, outcome.passed), (Some(verdict), passed));
    }
    // What one sets, the next one gets, and no later denial changes it.
    let set = "r1 = -22\ncall bpf_set_retval\nr0 = 1\nexit";
    let get = "call bpf_get_retval\nr6 = r0\nr0 = 0\nif r6 != -22 goto pc+1\nr0 = 0\nexit";
    let mut vm = attached(vec![
        program("set", "cgroup/dev", set),
        program("get", "cgroup/dev", get),
    ]);
    let event = Event::context(ProgType::CgroupDevice, bpflab::spec::Arch::HOST);
    let outcome = vm.fire(event.unwrap()).unwrap();
    assert_eq!((outcome.verdict, outcome.passed), (Some(-22), false));
}

#[test]
fn the_first_tcx_program_that_decides_does() {
    let section = "tcx/ingress";
    let mut vm = attached(vec![
        returns("next", section, -1),
        returns("drop", section, 2),
        returns("never", section, 0),
    ]);
    let outcome = vm.fire(Event::packet(vec![0; 64])).unwrap();
    assert_eq!(ran(&outcome), ["next", "drop"]);
    assert_eq!((outcome.verdict, outcome.passed), (Some(2), false));
}

#[test]
fn places_refuse_what_the_kernel_refuses() {
    let mut vm = vm(vec![returns("tp", "tp", 0), returns("kprobe", "kprobe", 0)]);
    // A section without a target is left to the test, by libbpf and here.
    vm.attach_all().unwrap();
    assert_eq!(vm.attachments("tp").unwrap().count(), 0);
    let error = vm.attach("tp").unwrap_err().to_string();
    assert!(
        error.contains("its section 'tp' does not say where"),
        "{error}"
    );
    vm.attach_to("tp", WRITE).unwrap();
    let refused = |result: Result<(), Error>| result.unwrap_err().to_string();
    assert_eq!(
        refused(vm.attach_to("tp", WRITE)),
        "program 'tp' can't be attached to tracepoint/syscalls/sys_enter_write: \
         EEXIST (File exists): it is already attached there"
    );
    let unknown = refused(vm.attach_to("tp", "syscalls/sys_enter_nothing"));
    assert!(unknown.contains("ENOENT"), "{unknown}");
    vm.attach_to("tp", "syscalls/sys_exit_write").unwrap();
    assert_eq!(vm.attachments("tp").unwrap().count(), 2);
    // A probe is made for each.
    vm.attach_to("kprobe", "vfs_read").unwrap();
    vm.attach_to("kprobe", "vfs_read").unwrap();
    let event = vm.kprobe("vfs_read").unwrap();
    assert_eq!(ran(&vm.fire(event).unwrap()), ["kprobe", "kprobe"]);
    vm.detach("kprobe").unwrap();
    let event = vm.kprobe("vfs_read").unwrap();
    assert!(vm.fire(event).unwrap().runs.is_empty());
}

#[test]
fn a_device_takes_one_xdp_program() {
    let mut vm = vm(vec![returns("one", "xdp", 2), returns("two", "xdp", 1)]);
    vm.attach_all().unwrap();
    let error = vm.attach("two").unwrap_err().to_string();
    assert!(error.contains("EBUSY"), "{error}");
    let outcome = vm.fire(Event::packet(vec![0; 64])).unwrap();
    assert_eq!((outcome.verdict, outcome.passed), (Some(2), true));
}

#[test]
fn a_tracepoint_of_the_tests_own() {
    let mut vm = vm(vec![program(
        "p",
        "tp/app/request",
        "r0 = *(u32 *)(r1 +8)\nexit",
    )]);
    let layout = Layout::declare("app/request").field("bytes", Scalar::U32);
    vm.declare(layout.build().unwrap());
    vm.attach_all().unwrap();
    let event = vm.tracepoint("app/request").unwrap();
    let event = event.set("bytes", 3).unwrap();
    let outcome = vm.fire(event).unwrap();
    assert_eq!(outcome.returned("p"), Some(3));
    assert_eq!(outcome.perf_sample().unwrap()[8..12], 3u32.to_le_bytes());
}

#[test]
fn cookies_are_an_attachments_own() {
    let text = "call bpf_get_attach_cookie\nexit";
    for section in ["kprobe.multi", "tp", "uprobe", "perf_event"] {
        let mut p = program("p", section, text);
        if section == "kprobe.multi" {
            p.expected_attach_type = Some(AttachType::TraceKprobeMulti);
        }
        let mut vm = vm(vec![p]);
        let (one, two) = match section {
            "tp" => (WRITE, "syscalls/sys_exit_write"),
            _ => ("vfs_read", "vfs_write"),
        };
        for (target, cookie) in [(one, 7), (two, 9)] {
            if let Err(error) = vm.attach_with_cookie("p", Some(target), cookie) {
                assert_eq!(section, "perf_event", "{error}");
            }
        }
        let fire = |vm: &mut Vm, name: &str| {
            let event = match section {
                "tp" => vm.tracepoint(name).unwrap(),
                "uprobe" => vm.uprobe(name).unwrap(),
                "perf_event" => vm.perf_event().unwrap(),
                _ => vm.kprobe(name).unwrap(),
            };
            vm.fire(event).unwrap().returned("p")
        };
        assert_eq!(fire(&mut vm, one), Some(7), "{section}");
        if section != "perf_event" {
            assert_eq!(fire(&mut vm, two), Some(9), "{section}");
        }
    }
}

#[test]
fn an_overridden_call_is_not_seen_by_the_probes_after_it() {
    let mut vm = attached(vec![
        returns("late", "kprobe/do_it", 1),
        program(
            "override",
            "kprobe/do_it",
            "r2 = -12\ncall bpf_override_return\nr0 = 0\nexit",
        ),
    ]);
    let error = vm.attach_to("override", "do_it+0x10").unwrap_err();
    assert!(error.to_string().contains("EINVAL"), "{error}");
    let event = vm.kprobe("do_it").unwrap();
    let outcome = vm.fire(event).unwrap();
    assert_eq!(
        ran(&outcome),
        ["override"],
        "the last one that was attached is first"
    );
    assert_eq!(outcome.overridden, Some((-12i64).cast_unsigned()));
}

#[test]
fn a_member_of_a_struct_of_operations_is_called() {
    let mut types = Builder::new();
    let int = types.int("int", 4, Encoding::Signed);
    let param = |name| Param { name, ty: int };
    let proto = types.prototype(int, &[param(""), param("")]);
    let pointer = types.ptr(proto);
    // As in a kernel, the arguments have names in the stub only.
    let named = types.prototype(int, &[param("one"), param("two__nullable")]);
    types.function("my_ops__decide", named, Linkage::Static);
    let member = |name, bit_offset| Member {
        name,
        ty: pointer,
        bit_offset,
        bitfield: None,
    };
    let members = [member("decide", 0), member("other", 64)];
    types.structure("my_ops", 16, &members);
    let text = "r0 = *(u64 *)(r1 +0)\nr1 = *(u64 *)(r1 +8)\nr0 += r1\nexit";
    let mut programs = vec![program("decide", "struct_ops/my_ops.decide", text)];
    programs.push(returns("other", "struct_ops/my_ops.other", 0));
    let mut vm = attached(programs);
    vm.set_kernel_btf(types.build().unwrap());
    let event = vm.struct_ops_call("my_ops", "decide").unwrap();
    let event = event.set("one", 38).unwrap().arg(2, 2).unwrap();
    let event = event.set("two", 4).unwrap();
    let outcome = vm.fire(event).unwrap();
    assert_eq!((ran(&outcome), outcome.verdict), (vec!["decide"], Some(42)));
    assert!(vm.struct_ops_call("my_ops", "nothing").is_err());
}
