//! Frames, calls, callbacks, tail calls, and consecutive runs by a `Runner`. All engines
//! agree, including the values of r10.

use std::sync::Arc;
use std::time::Duration;

use bpflab::btf::{Builder, Encoding, FuncInfo, Linkage};
use bpflab::harness::{EngineKind, RanOn};
use bpflab::isa::assemble_with;
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType};
use bpflab::vm::World;
use bpflab::vm::events::{Event, Layout, Scalar};
use bpflab::{Error, Object, Vm};

const ENGINES: [EngineKind; 3] = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit];

/// An XDP program; its functions have BTF types, which callbacks need.
fn program(name: &str, maps: &[MapDef], text: &str) -> Arc<Program> {
    let mut program = Program::new(name, ProgType::Xdp, Vec::new());
    program.maps = maps.into();
    program.license = "GPL".into();
    let assembly = assemble_with(text, &program).unwrap();
    program.insns = assembly.slots;
    if assembly.labels.keys().any(|label| label.starts_with("f_")) {
        let mut types = Builder::new();
        let int = types.int("int", 4, Encoding::Signed);
        let prototype = types.prototype(int, &[]);
        let functions = assembly.labels.iter();
        let functions = functions.filter(|(label, _)| label.starts_with("f_"));
        let mut starts: Vec<_> = functions.map(|(_, pc)| pc.0).collect();
        starts.push(0);
        starts.sort_unstable();
        for insn_off in starts {
            let name = format!("f{insn_off}");
            let ty = types.function(&name, prototype, Linkage::Static);
            program.func_info.push(FuncInfo { insn_off, ty });
        }
        program.btf = Some(types.build().unwrap());
    }
    Arc::new(program)
}

fn values(count: u32) -> MapDef {
    MapDef::new("values", MapType::Array, 4, 8, count)
}

fn jumps() -> MapDef {
    MapDef::new("jumps", MapType::ProgArray, 4, 4, 4)
}

/// A machine with these programs, also stored in prog arrays by index; the first one is
/// verified.
fn machine(programs: &[Arc<Program>], engine: EngineKind) -> Vm {
    let mut vm = Vm::with_world(World::default());
    vm.set_engine(engine);
    let maps = programs[0].maps.clone();
    let handles = vm
        .load_unverified_programs(&maps, programs.to_vec())
        .unwrap();
    let verdict = &vm.verification(&programs[0].name).unwrap().verdict;
    assert!(verdict.is_accepted(), "{}", verdict.message);
    if let Some(array) = maps.iter().find(|m| m.map_type == MapType::ProgArray) {
        for (slot, handle) in (0..).zip(&handles) {
            let map = vm.map(&array.name).unwrap();
            map.set_program(slot, *handle).unwrap();
        }
    }
    vm
}

/// The outcomes of several runs of the first program with a budget, as text.
fn outcomes(programs: &[Arc<Program>], engine: EngineKind, budget: u64) -> String {
    let mut vm = machine(programs, engine);
    vm.set_budget(budget);
    let event = Event::packet(vec![7; 64]);
    let mut text = String::new();
    for _ in 0..3 {
        match vm.run(&programs[0].name, &event) {
            Ok(mut outcome) => {
                for run in &mut outcome.runs {
                    assert_eq!(run.ran_on.fallback.is_none(), run.ran_on.engine == engine);
                    // Engines may differ only in this field.
                    run.ran_on = RanOn::chosen(EngineKind::Checked);
                }
                text += &format!("{outcome:?}\n");
            }
            Err(error) => text += &format!("{error}\n"),
        }
        for (_, map) in vm.machine().maps() {
            for key in 0u32..8 {
                text += &format!("{:?}\n", map.read(&key.to_le_bytes()));
            }
        }
    }
    text
}

/// Checks that the engines agree for all budgets up to `most`.
#[track_caller]
fn agree(programs: &[Arc<Program>], most: u64, end: &str) -> String {
    for budget in (0..most).chain([1 << 20]) {
        let checked = outcomes(programs, EngineKind::Checked, budget);
        for engine in [EngineKind::Interp, EngineKind::Jit] {
            let fast = outcomes(programs, engine, budget);
            assert_eq!(checked, fast, "on {engine} with a budget of {budget}");
        }
        if budget == 1 << 20 {
            assert!(checked.contains(end), "{checked}");
            return checked;
        }
    }
    String::new()
}

/// `r0` = the address of the value at this index; the program ends if there is none.
fn value(number: u32) -> String {
    format!(
        "*(u32 *)(r10 - 4) = {number}
        r1 = map[idx:0]
        r2 = r10
        r2 += -4
        call bpf_map_lookup_elem
        if r0 == 0 goto out\n"
    )
}

/// A store goes to a value that was deleted on one path, and to a value of another map on the other
/// path: all engines report it.
#[test]
fn a_deleted_value_is_reported_where_another_map_may_be_meant() {
    let maps = [values(1), MapDef::new("hash", MapType::Hash, 4, 8, 4)];
    let call = |name| format!("r1 = map[idx:1]\nr2 = r10\nr2 += -4\ncall bpf_map_{name}_elem\n");
    let text = format!(
        "{}r7 = r0
        *(u64 *)(r10 - 16) = 7
        r3 = r10
        r3 += -16
        r4 = 0
        {}{}if r0 == 0 goto store
        r7 = r0
        {}store:
        *(u64 *)(r7 + 0) = 5
        out:
        r0 = 2
        exit",
        value(0),
        call("update"),
        call("lookup"),
        call("delete")
    );
    agree(&[program("stale", &maps, &text)], 40, "stale: [Region");
}

/// A frame whose address escapes has a different number in each call, and the same numbers on
/// all engines.
#[test]
fn the_number_of_a_frame() {
    let text = format!(
        "{} r6 = r0
        r1 = r6
        call tells
        {} r7 = r0
        r1 = r7
        call tells
        r0 = *(u64 *)(r6 + 0)
        r1 = *(u64 *)(r7 + 0)
        if r0 != r1 goto differ
        r0 = 1
        exit
        differ: r0 = 2
        exit
        out: r0 = 0
        exit
        tells: *(u64 *)(r1 + 0) = r10
        r0 = 0
        exit",
        value(0),
        value(1)
    );
    agree(&[program("p", &[values(8)], &text)], 40, "r0: 2");
}

/// Functions preserve the caller's r6 to r9 at any call depth, and find their stack zeroed
/// even if it was used before.
#[test]
fn registers_and_stacks_of_nested_functions() {
    let mut text = String::from(
        "r9 = 900
        r8 = 800
        r1 = 1
        call f_1
        r7 = r0
        r1 = 2
        call f_1
        r0 += r7
        r0 += r8
        r0 += r9
        exit\n",
    );
    // Each uses other registers and reads unwritten stack bytes.
    for depth in 1..8 {
        let kept = 6 + depth % 4;
        let below = 8 * depth;
        text += &format!(
            "f_{depth}: r{kept} = r1
            r0 = *(u64 *)(r10 - {below})
            *(u64 *)(r10 - {below}) = -1
            *(u64 *)(r10 - 64) = r1
            r{kept} += r0\n"
        );
        if depth < 7 {
            text += &format!(
                "r1 = r{kept}\nr1 += 1\ncall f_{}\nr0 += r{kept}\n",
                depth + 1
            );
        } else {
            text += &format!("r0 = *(u64 *)(r10 - 48)\nr0 += r{kept}\n");
        }
        text += "exit\n";
    }
    // 1 to 7 and 2 to 8, and main's part.
    agree(
        &[program("p", &[], &text)],
        120,
        &format!("r0: {}", 28 + 35 + 1700),
    );
}

/// A callback that calls functions and calls back itself, from a function with live
/// registers.
#[test]
fn callbacks_in_callbacks() {
    let text = "
        r6 = 6
        r7 = 7
        r8 = 8
        r9 = 9
        *(u64 *)(r10 - 8) = 0
        r1 = 3
        r2 = f_outer ll
        r3 = r10
        r3 += -8
        r4 = 0
        call bpf_loop
        r0 = *(u64 *)(r10 - 8)
        r0 += r6
        r0 += r7
        r0 += r8
        r0 += r9
        exit
        f_outer: r6 = r2
        r7 = r1
        r1 = r6
        call f_add
        r1 = 2
        r2 = f_inner ll
        r3 = r6
        r4 = 0
        call bpf_loop
        r0 = 0
        exit
        f_inner: r8 = r2
        r1 = r8
        call f_add
        r0 = 0
        exit
        f_add: r9 = *(u64 *)(r1 + 0)
        r9 += 100
        *(u64 *)(r1 + 0) = r9
        r0 = 1
        exit";
    agree(&[program("p", &[], text)], 130, "r0: 930");
}

/// Tail calls from the main program and from a nested function, to a program with functions.
#[test]
fn tail_calls_in_the_middle() {
    let maps = [values(8), jumps()];
    let first = "
        r6 = r1
        r7 = 40
        call f_inner
        r7 += r0
        r1 = r6
        r2 = map[idx:1]
        r3 = 2
        call bpf_tail_call
        r0 = r7
        exit
        f_inner: r6 = r1
        *(u64 *)(r10 - 8) = 1
        r2 = map[idx:1]
        r3 = 1
        call bpf_tail_call
        r0 = 0
        exit";
    let second = "
        r6 = r1
        r7 = 2
        r1 = r7
        call f_double
        r0 += r7
        exit
        f_double: r7 = r1
        r0 = r7
        r0 *= 2
        exit";
    let third = "
        r6 = r1
        r2 = map[idx:1]
        r3 = 3
        call bpf_tail_call
        r0 = *(u64 *)(r10 - 16)
        r0 += 5
        exit";
    let fourth = "r0 = r9\nr0 += 77\nexit";
    let of = |name, text| program(name, &maps, text);
    // The fourth is not verified: the checked interpreter runs it.
    let all = [
        of("p", first),
        of("q", second),
        of("r", third),
        of("s", fourth),
    ];
    agree(&all, 60, "r0: 77");
    agree(&all[..3], 60, "r0: 5");
    agree(&all[..2], 60, "r0: 46");
}

/// A chain of nested functions; the last one ends with `end`.
fn chain(functions: usize, end: &str) -> String {
    let mut text = String::from("r6 = r1\ncall f_1\nr0 += 1\nexit\n");
    for depth in 1..functions {
        let next = depth + 1;
        text += &format!("f_{depth}: r6 = r1\nr1 = r6\ncall f_{next}\nr0 += r0\nexit\n");
    }
    text + &format!("f_{functions}: {end}")
}

/// A tail call in a function replaces only that function's frame: its callers wait, and the
/// other program has eight frames of its own.
#[test]
fn a_program_that_is_left_to_deep_inside_has_frames_of_its_own() {
    let maps = [values(8), jumps()];
    let tail = "r2 = map[idx:1]\nr3 = 1\ncall bpf_tail_call\nr0 = 3\nexit";
    let first = program("p", &maps, &chain(7, tail));
    let second = program("q", &maps, &chain(7, "r0 = 1\nexit"));
    // Doubled six times plus one, in both programs.
    agree(&[first, second], 40, "r0: 4161");
}

/// The eighth frame tail-calls the program itself, 33 times: 239 functions are active at the
/// end.
#[test]
fn tail_calls_lead_to_eight_frames_each_time() {
    let maps = [values(8), jumps()];
    let tail = "r2 = map[idx:1]\nr3 = 1\ncall bpf_tail_call\nr0 = 0\nexit";
    let first = program("p", &maps, &chain(7, tail));
    let again = program("q", &maps, &chain(7, tail));
    // r0 = 64 r0 + 1, 34 times, in 64 bits.
    let r0 = (0..34).fold(0u64, |r0, _| r0.wrapping_mul(64).wrapping_add(1));
    agree(&[first, again], 40, &format!("r0: {r0}"));
}

/// Return values of the programs in `tail_calls_back`, on all engines; `equality_kernel`
/// compares with the running kernel.
#[test]
fn callers_go_on_with_what_tail_calls_returned() {
    let expected = [
        // 34 from the last, which hits the limit, and 1 from each.
        ("itself", 34 + 34),
        ("itself_by_global", 34 * 3 + 34),
        ("forty_leaves", 33 * 1000 + 7),
        ("nowhere", 1 + 2 + 4),
        ("nine_frames", 3 + 5),
    ];
    for (name, retval) in expected {
        for engine in ENGINES {
            let object = Object::open("tests/objects/tail_calls_back.bpf.o").unwrap();
            let mut vm = Vm::new(object).unwrap();
            vm.set_engine(engine);
            let outcome = vm.run(name, &Event::packet(vec![0; 64])).unwrap();
            assert_eq!(outcome.returned(name), Some(retval), "{name} on {engine}");
        }
    }
}

/// In an unverified program a function that calls itself faults at the ninth frame, and
/// nested callbacks fault before the host's stack overflows.
#[test]
fn calls_without_an_end_are_faults() {
    let maps = [values(8), jumps()];
    let first = "r2 = map[idx:1]\nr3 = 1\ncall bpf_tail_call\nr0 = 3\nexit";
    let first = program("p", &maps, first);
    let itself = program("q", &maps, "call f\nexit\nf: call f\nexit");
    agree(&[first.clone(), itself], 20, "more than 8 nested calls");
    let back = "
        r1 = 1
        r2 = f_back ll
        r3 = 0
        r4 = 0
        call bpf_loop
        r0 = 0
        exit
        f_back: r1 = 1
        r2 = f_back ll
        r3 = 0
        r4 = 0
        call bpf_loop
        r0 = 0
        exit";
    let back = program("q", &maps, back);
    agree(&[first, back], 20, "more than 64 nested calls");
}

#[test]
fn a_runner_does_what_runs_do() {
    let text = format!(
        "r7 = r1
        {} r1 = *(u64 *)(r0 + 0)
        r1 += 1
        *(u64 *)(r0 + 0) = r1
        r6 = r1
        call bpf_ktime_get_ns
        r0 += r6
        out: exit",
        value(3)
    );
    for engine in ENGINES {
        let programs = [program("p", &[values(8)], &text)];
        let mut vm = machine(&programs, engine);
        let event = Event::packet(vec![0; 64]);
        let start = vm.run("p", &event).unwrap().runs[0].clone();
        let mut runner = vm.runner("p", &event).unwrap();
        for n in 1..10 {
            runner.world().clock().advance(Duration::from_nanos(10));
            let finished = runner.run().unwrap();
            assert_eq!(
                (finished.r0, finished.insns),
                (start.r0 + 11 * n, start.insns)
            );
        }
        let outcome = runner.finish();
        assert_eq!(outcome.runs.len(), 1, "the last one");
        assert_eq!(outcome.packet, Some(vec![0; 64]));
        let map = vm.map("values").unwrap();
        assert_eq!(map.get::<u32, u64>(&3).unwrap(), Some(10));
        // The event's memory was freed and can be reused.
        assert!(vm.machine().current().is_none());
        assert_eq!(vm.run("p", &event).unwrap().runs[0].insns, start.insns);
    }
}

#[test]
fn a_fault_ends_a_run_and_not_its_runner() {
    let text = "r1 = *(u32 *)(r1 + 12)
        r0 = 1
        if r1 == 0 goto out
        again: r0 += 1
        if r0 < 1000 goto again
        out: exit";
    for engine in ENGINES {
        let mut vm = machine(&[program("p", &[], text)], engine);
        vm.set_budget(100);
        let event = Event::packet(vec![0; 64])
            .set("ingress_ifindex", 1)
            .unwrap();
        let mut runner = vm.runner("p", &event).unwrap();
        for _ in 0..2 {
            let error = runner.run().unwrap_err();
            assert!(matches!(error, Error::Fault(_)), "{error}");
        }
        assert!(runner.finish().runs.is_empty());
        let repeated = vm.program_handle("p").unwrap();
        let repeated = vm
            .runner(repeated, &event)
            .expect("it is its event")
            .repeat(5)
            .unwrap();
        assert!(repeated.fault.is_some() && repeated.runs() == 0);
    }
}

/// Programs can't see a record's common fields; strings make records longer; missing bytes of
/// a shorter record are zero.
#[test]
fn contexts_are_set_as_they_were_recorded() {
    let layout = Layout::declare("app/request")
        .field("bytes", Scalar::U64)
        .string("path")
        .build()
        .unwrap();
    let layout = Arc::new(layout);
    let event = |bytes: u64, path: &str| {
        let event = Event::tracepoint(layout.clone());
        let event = event.set("bytes", bytes).unwrap().set("path", path);
        event.unwrap()
    };
    let mut program = Program::new("p", ProgType::Tracepoint, Vec::new());
    program.license = "GPL".into();
    let text = "r2 = *(u32 *)(r1 + 16)
        r0 = *(u64 *)(r1 + 8)
        r2 >>= 16
        r0 += r2
        exit";
    program.insns = assemble_with(text, &program).unwrap().slots;
    for engine in ENGINES {
        let mut vm = Vm::with_world(World::default());
        vm.set_engine(engine);
        vm.load_unverified_programs(&[], vec![Arc::new(program.clone())])
            .unwrap();
        let mut runner = vm.runner("p", &event(1, "/")).unwrap();
        for (bytes, path) in [(1, "/"), (1 << 40, "/index.html"), (5, ""), (9, "/a/b/c/d")] {
            let recorded = event(bytes, path).record();
            runner.set_context(&recorded).unwrap();
            let wanted = bytes + path.len() as u64 + 1;
            assert_eq!(runner.run().unwrap().r0, wanted, "{path} on {engine}");
        }
        runner.set_context(&[0xff; 17]).unwrap();
        // The last byte belongs to the next field, whose other bytes are zero.
        assert_eq!(runner.run().unwrap().r0, u64::MAX);
        let context = runner.finish().context;
        assert_eq!(&context[..20], [&[0; 8][..], &[0xff; 9], &[0; 3]].concat());
    }
}

#[test]
fn a_context_that_holds_pointers_is_not_set() {
    let mut vm = machine(&[program("p", &[], "r0 = 2\nexit")], EngineKind::default());
    let mut runner = vm.runner("p", &Event::packet(vec![0; 64])).unwrap();
    let error = runner.set_context(&[0; 24]).unwrap_err();
    assert!(error.to_string().contains("it holds pointers"), "{error}");
    assert_eq!(runner.run().unwrap().r0, 2);
}

/// Outputs can be taken between runs.
#[test]
fn outputs_of_a_runner() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/bpf/write_hist.bpf.o");
    let mut vm = Vm::new(Object::open(path).unwrap()).unwrap();
    let event = vm.tracepoint("syscalls/sys_enter_write").unwrap();
    assert!(vm.runner("count", &event).is_err(), "no such program");
    let mut runner = vm.runner("count_write", &event).unwrap();
    for size in [0u64, 1, 2, 4096] {
        let record = event.clone().set("args[2]", size).unwrap().record();
        runner.set_context(&record).unwrap();
        runner.run().unwrap();
        assert!(runner.take_outputs().is_empty());
    }
    drop(runner);
    let map = vm.map("hist").unwrap();
    let counts = [0, 1, 12].map(|slot| map.get::<u32, u64>(&slot).unwrap());
    assert_eq!(counts, [Some(2), Some(1), Some(1)]);
}
