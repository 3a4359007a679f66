//! Probes through libbpf's macros (`tests/objects/probes.bpf.c`), on every engine.

use bpflab::btf::{Btf, Builder, Encoding, Linkage, Param};
use bpflab::harness::EngineKind;
use bpflab::object::{Object, Target};
use bpflab::vm::Outcome;
use bpflab::vm::attach::Counter;
use bpflab::vm::events::Event;
use bpflab::{Error, Result, Vm};

const ENGINES: [EngineKind; 3] = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit];
const X86_64: &str = "tests/objects/probes.bpf.o";
const ARM64: &str = "tests/objects/probes.arm64.bpf.o";

/// The BTF of a kernel with the traced functions and the registers.
fn kernel() -> Btf {
    let mut b = Builder::new();
    let int = b.int("int", 4, Encoding::Signed);
    let long = b.int("long", 8, Encoding::Signed);
    let void = b.ptr(bpflab::util::TypeId(0));
    let param = |name, ty| Param { name, ty };
    let proto = b.prototype(int, &[param("first", int), param("second", long)]);
    b.function("do_it", proto, Linkage::Static);
    let file_open = b.prototype(int, &[param("file", void)]);
    b.function("bpf_lsm_file_open", file_open, Linkage::Static);
    b.build().unwrap()
}

/// Loads only these programs of the object.
fn load(path: &str, programs: &[&str], engine: EngineKind) -> Vm {
    let mut object = Object::open(path).unwrap();
    object.set_target(Target::Own);
    object.load_only(programs.iter().copied()).unwrap();
    // Some call kfuncs, which leaves them unjudged.
    let mut vm = Vm::unverified(object).unwrap();
    vm.set_engine(engine);
    vm.set_kernel_btf(kernel());
    vm.attach_all().unwrap();
    vm
}

/// Loads programs attached through kernel BTF, which leaves them unjudged.
fn traced(programs: &[&str]) -> Vm {
    let mut object = Object::open(X86_64).unwrap();
    object.set_target(Target::Own);
    object.load_only(programs.iter().copied()).unwrap();
    let mut vm = Vm::unverified(object).unwrap();
    vm.set_kernel_btf(kernel());
    vm.attach_all().unwrap();
    vm
}

fn seen(vm: &Vm) -> [u64; 8] {
    let map = vm.map("seen").unwrap();
    std::array::from_fn(|at| {
        let key = u32::try_from(at).unwrap();
        map.get::<u32, u64>(&key).unwrap().unwrap()
    })
}

fn fire(vm: &mut Vm, event: Event) -> Outcome {
    vm.fire(event).unwrap()
}

/// Runs a test on each engine and for both architectures.
fn everywhere(programs: &[&str], test: impl Fn(&mut Vm, bool)) {
    for engine in ENGINES {
        for path in [X86_64, ARM64] {
            test(&mut load(path, programs, engine), path == X86_64);
        }
    }
}

#[test]
fn kprobes_find_their_arguments_by_number_and_by_name() {
    everywhere(&["entered"], |vm, is_x86| {
        vm.detach("entered").unwrap();
        vm.attach_with_cookie("entered", None, 77).unwrap();
        let event = vm.kprobe("do_it").unwrap().set("second", -2).unwrap();
        let event = event.arg(1, 10).unwrap().arg(5, 50).unwrap().at(0x4000);
        let outcome = fire(vm, event);
        assert!(outcome.passed);
        let second = (-2i64).cast_unsigned();
        let ip = if is_x86 { 0x4001 } else { 0x4000 };
        assert_eq!(seen(vm), [10, second, 0, 0, 50, 0x4000, ip, 77]);
        let other = vm.kprobe("do_nothing").unwrap();
        assert!(fire(vm, other).runs.is_empty());
    });
}

#[test]
fn kretprobes_find_the_result() {
    everywhere(&["returned"], |vm, _| {
        let event = vm.kretprobe("do_it").unwrap().set("ret", -5).unwrap();
        let outcome = fire(vm, event);
        assert_eq!(seen(vm)[0], (-5i64).cast_unsigned());
        assert!(!outcome.passed);
    });
}

#[test]
fn system_calls_have_their_arguments_behind_the_wrapper() {
    for engine in ENGINES {
        let mut vm = load(X86_64, &["wrote", "mapped", "written"], engine);
        let event = vm.ksyscall("write").unwrap().arg(1, 3).unwrap();
        let event = event.set("buf", 0x7000).unwrap().set("count", 10).unwrap();
        let outcome = fire(&mut vm, event);
        assert_eq!(outcome.runs.len(), 1);
        assert_eq!(seen(&vm)[..3], [3, 0x7000, 10]);
        // The fourth argument is in r10; its name `flags` is also a register's.
        let event = vm.ksyscall("mmap").unwrap().set("len", 4096).unwrap();
        fire(&mut vm, event.set("flags", 0x22).unwrap());
        assert_eq!(seen(&vm)[..2], [4096, 0x22]);
        let event = vm.kretsyscall("write").unwrap().set("ret", 10).unwrap();
        fire(&mut vm, event);
        assert_eq!(seen(&vm)[0], 10);
    }
}

#[test]
fn arguments_without_a_register_are_on_the_stack() {
    everywhere(&["working", "many"], |vm, is_x86| {
        let first = if is_x86 { 7 } else { 9 };
        let event = vm.uprobe("/usr/bin/tool:work").unwrap().arg(2, 20).unwrap();
        let event = event.arg(first, 70).unwrap().at(0x5000);
        fire(vm, event);
        assert_eq!(seen(vm)[..3], [20, 70, 0x5000]);
        let event = vm.kprobe("many").unwrap().arg(first, 71).unwrap();
        fire(vm, event);
        assert_eq!(seen(vm)[0], 71);
    });
}

#[test]
fn markers_have_their_arguments_from_the_maps_of_usdt() {
    everywhere(&["request"], |vm, _| {
        vm.detach("request").unwrap();
        vm.attach_with_cookie("request", None, 5).unwrap();
        let path = vm.world().user_cstr("/index.html");
        let event = vm.usdt("tool:request").unwrap();
        let event = event.args([-1, path.cast_signed(), 4096]).unwrap();
        fire(vm, event);
        let minus_one = u64::from(u32::MAX);
        let [id, at, size, count, cookie, ..] = seen(vm);
        assert_eq!((id & 0xffff_ffff, at, size), (minus_one, path, 4096));
        assert_eq!((count, cookie), (3, 5));
        let event = vm.usdt("tool:request").unwrap().args([1]).unwrap();
        fire(vm, event);
        assert_eq!(seen(vm)[..4], [1, 0, 0, 1]);
    });
}

#[test]
fn many_functions_each_with_its_cookie() {
    everywhere(&["multi"], |vm, _| {
        // The section contains a pattern.
        let event = vm.kprobe("vfs_read").unwrap().at(0x1230);
        assert_eq!(fire(vm, event).runs.len(), 1);
        assert_eq!(seen(vm)[..2], [0, 0x1230]);
        let event = vm.kretprobe("vfs_read").unwrap();
        assert!(fire(vm, event).runs.is_empty());
        vm.detach("multi").unwrap();
        for (function, cookie) in [("vfs_read", 7), ("vfs_write", 8)] {
            vm.attach_with_cookie("multi", Some(function), cookie)
                .unwrap();
        }
        let event = vm.kprobe("vfs_write").unwrap();
        fire(vm, event);
        assert_eq!(seen(vm)[0], 8);
    });
}

#[test]
fn a_session_keeps_what_the_entry_left_and_may_end_there() {
    let mut vm = load(X86_64, &["session"], EngineKind::Checked);
    for (argument, runs) in [(4u64, 1), (5, 0), (6, 1)] {
        let event = vm.kprobe("vfs_read").unwrap().arg(1, argument).unwrap();
        assert_eq!(fire(&mut vm, event).runs.len(), 1);
        let back = vm.kretprobe("vfs_read").unwrap();
        assert_eq!(fire(&mut vm, back).runs.len(), runs, "{argument}");
        let kept = if runs == 1 { argument } else { argument - 1 };
        assert_eq!(seen(&vm)[0], kept);
    }
    // Without an entry the cookie is zero.
    let back = vm.kretprobe("vfs_write").unwrap();
    fire(&mut vm, back);
    assert_eq!(seen(&vm)[0], 0);
    let event = vm.kprobe("vfs_read").unwrap();
    let Err(Error::Fault(fault)) = vm.run("session", &event) else {
        panic!("no session")
    };
    assert!(fault.to_string().contains("in no session"), "{fault}");
}

#[test]
fn a_traced_function_from_its_entry_to_its_return() {
    let mut vm = traced(&["before", "instead", "after"]);
    let call = |vm: &Vm, first: i64| {
        let event = vm.function("do_it").unwrap();
        let event = event.set("first", first).unwrap().arg(2, 20).unwrap();
        event.set("ret", 4).unwrap()
    };
    let event = call(&vm, 1);
    let outcome = fire(&mut vm, event);
    let names: Vec<_> = outcome.runs.iter().map(|run| &*run.program).collect();
    assert_eq!(names, ["before", "instead", "after"]);
    // fmod_ret got 0, fexit the function's own result.
    assert_eq!(seen(&vm)[..3], [0, 4, 4]);
    assert!(outcome.passed);

    let event = call(&vm, -1);
    let outcome = fire(&mut vm, event);
    let minus_22 = (-22i64).cast_unsigned();
    assert_eq!(outcome.verdict, Some(-22));
    let [_, ret, value, ..] = seen(&vm);
    assert_eq!(
        (ret, value),
        (minus_22, minus_22),
        "instead of the function"
    );

    let mut vm = traced(&["before"]);
    let event = call(&vm, 1);
    fire(&mut vm, event);
    let not_yet = (-95i64).cast_unsigned();
    assert_eq!(seen(&vm)[..6], [1, 20, 2, 20, not_yet, 0]);
}

#[test]
fn the_first_refusal_of_a_security_hook_stands() {
    let mut vm = traced(&["refuse", "allow"]);
    let event = vm.function("bpf_lsm_file_open").unwrap();
    let outcome = fire(&mut vm, event);
    // The program attached last runs first.
    let names: Vec<_> = outcome.runs.iter().map(|run| &*run.program).collect();
    assert_eq!(names, ["allow", "refuse"]);
    assert_eq!((outcome.verdict, outcome.passed), (Some(-1), false));
    assert_eq!(seen(&vm)[1], 7);
    let mut vm = traced(&["allow"]);
    let event = vm.function("bpf_lsm_file_open").unwrap();
    let outcome = fire(&mut vm, event);
    assert_eq!((outcome.verdict, outcome.passed), (Some(0), true));
}

#[test]
fn a_sample_of_a_perf_event() {
    for engine in ENGINES {
        let mut vm = load(X86_64, &["sample"], engine);
        let event = vm.perf_event().unwrap().set("sample_period", 99).unwrap();
        let event = event.set("addr", 0x800).unwrap().set("ip", 1).unwrap();
        let counter = Counter {
            counter: 1234,
            enabled: 10,
            running: 10,
        };
        let outcome = fire(&mut vm, event.clone().counter(counter));
        assert_eq!(seen(&vm)[..3], [99, 0x800, 1234]);
        assert!(!outcome.passed, "the sample is dropped");
        let outcome = fire(&mut vm, event.set("sample_period", 101).unwrap());
        assert!(outcome.passed);
    }
}

#[test]
fn an_iterator_shows_all_objects_and_then_none() -> Result<()> {
    let mut vm = traced(&["show"]);
    let things = [10, 11]
        .into_iter()
        .map(|number| Ok(vm.world().kernel("thing")?.set("number", number)?))
        .collect::<Result<Vec<_>>>()?;
    let outcome = vm.iterate("show", &things)?;
    assert_eq!(outcome.runs.len(), 3);
    assert_eq!(seen(&vm)[..3], [10, 99, 0], "the end has the last number");
    let outcome = vm.iterate("show", [0u64; 0])?;
    assert_eq!((outcome.runs.len(), seen(&vm)[0]), (1, 99));
    let error = vm.iterate("request", [0u64]).unwrap_err().to_string();
    assert!(error.contains("no program"), "{error}");
    Ok(())
}
