//! Kernel functions as programs call them: `tests/objects/kfuncs.bpf.c` on the checked
//! engine, and, where there is one, on the running kernel.

#[cfg(all(feature = "kernel", target_os = "linux"))]
#[path = "kernel/here.rs"]
mod here;

use std::sync::Arc;

use bpflab::compare::{Answer, Engine, Ours, Subject};
use bpflab::harness::EngineKind;
use bpflab::object::Target;
use bpflab::program::Program;
use bpflab::spec::ProgType;
use bpflab::vm::events::Event;
use bpflab::{Object, Vm};

/// What each program returns.
const RETURNED: &[(&str, i32)] = &[
    ("numbers", 39),
    ("numbers_backwards", -22),
    ("bits", 86_368),
    ("lists", 34_129),
    ("list_ends", 5656),
    ("trees", 1),
    ("shape", 1_297_870_847),
    ("shared", 4343),
    ("twice", -22),
    ("cpus", 0x3fff),
    ("sections", 7),
    ("strings", 0),
];

/// The same with the object's own types only: kernel functions go by name.
fn own(name: &str) -> Object {
    let mut object = Object::open(format!("tests/objects/{name}.bpf.o")).unwrap();
    object.set_target(Target::Own);
    object
}

fn event() -> Event {
    Event::input(ProgType::Syscall, Vec::new())
}

#[test]
fn programs_return_what_they_should() {
    for (name, expected) in RETURNED {
        let mut vm = Vm::new(own("kfuncs")).unwrap();
        let outcome = vm.run(name, &event()).unwrap();
        let returned = outcome.returned(name).map(u32::cast_signed);
        assert_eq!(returned, Some(*expected), "{name}");
        assert_eq!(outcome.unreleased, [], "{name}");
    }
}

/// The answer of an engine, without the maps that hold addresses or locks.
fn ask(engine: &mut dyn Engine, program: &Arc<Program>) -> Answer {
    let mut answer = engine.run(&Subject::new(program.clone(), event())).unwrap();
    answer.maps.retain(|map| map.name == ".bss");
    assert_eq!(answer.maps.len(), 1);
    answer
}

#[test]
#[cfg(all(feature = "kernel", target_os = "linux"))]
fn the_running_kernel_says_the_same() {
    use bpflab::compare::Kernel;
    if here::kernel().is_none() {
        return;
    }
    let object = Object::open("tests/objects/kfuncs.bpf.o").unwrap();
    for program in object.programs() {
        let program = Arc::new(program.unwrap());
        let ours = ask(&mut Ours::new(EngineKind::Checked), &program);
        let kernels = ask(&mut Kernel, &program);
        assert_eq!(ours.retval, kernels.retval, "{}", program.name);
        assert_eq!(ours.maps, kernels.maps, "{}", program.name);
    }
}
