//! Extensions and tracing programs at functions of other programs, on the kernel's types of
//! the shared corpus.

use std::sync::OnceLock;

use bpflab::btf::Btf;
use bpflab::object::Target;
use bpflab::vm::events::Event;
use bpflab::vm::{EngineKind, Fallback, RanOn};
use bpflab::{Error, Object, Vm};

use crate::shared::corpus;

/// The functions of `dispatcher.bpf.o` and what attaches to them, loaded and not attached; none
/// without the kernel's types.
fn loaded() -> Option<Vm> {
    static KERNEL: OnceLock<Option<Btf>> = OnceLock::new();
    let read = || {
        let path = corpus()?.with_file_name("vmlinux-6.18.44.btf.xz");
        let Target::Kernel(btf) = Target::file(path).expect("BTF") else {
            panic!("a kernel's types");
        };
        Some(btf)
    };
    let kernel = KERNEL.get_or_init(read).clone()?;
    let mut vm = Vm::new(Object::open("tests/attach_targets/dispatcher.bpf.o").unwrap()).unwrap();
    let mut others = Object::open("tests/attach_targets/dispatched.bpf.o").unwrap();
    others.set_target(Target::Kernel(kernel));
    others.set_attach_program(vm.target("dispatch").unwrap());
    vm.load(others).unwrap();
    Some(vm)
}

const ENGINES: [EngineKind; 3] = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit];

/// The same on each engine. The checked one does not stand in for another one.
fn on_each_engine(check: impl Fn(&mut Vm)) {
    for engine in ENGINES {
        let Some(mut vm) = loaded() else { return };
        vm.set_engine(engine);
        check(&mut vm);
        let ran_on = vm.run("dispatch", &frame()).unwrap().runs[0].ran_on;
        let is_checked = |engine| engine == EngineKind::Checked;
        assert_eq!(is_checked(ran_on.engine), is_checked(engine));
    }
}

fn frame() -> Event {
    let event = Event::packet([0; 100]);
    let event = event.set("ingress_ifindex", 99).unwrap();
    event.set("rx_queue_index", 5).unwrap()
}

fn number(vm: &Vm, path: &str) -> u64 {
    vm.global(path).unwrap().as_u64().unwrap()
}

#[test]
fn an_extension_runs_in_the_place_of_a_function() {
    on_each_engine(|vm| {
        let action = |vm: &mut Vm| {
            let event = frame().set("ingress_ifindex", 1).unwrap();
            vm.run("dispatch", &event).unwrap().runs[0].r0
        };
        assert_eq!((action(vm), number(vm, "drops_seen")), (2, 0));
        vm.attach("drops").unwrap();
        assert_eq!((action(vm), number(vm, "drops_seen")), (1, 100));
        let points: Vec<_> = vm
            .attachments("drops")
            .unwrap()
            .map(ToString::to_string)
            .collect();
        assert_eq!(points, ["freplace/dispatch:first"]);

        vm.detach("drops").unwrap();
        assert_eq!((action(vm), number(vm, "drops_seen")), (2, 100));
        vm.attach("replaces_all").unwrap();
        assert_eq!(action(vm), 3);
    });
}

#[test]
fn an_exception_of_an_extension_ends_the_extension() {
    on_each_engine(|vm| {
        let action = |vm: &mut Vm, port: u32| {
            let event = frame().set("ingress_ifindex", port).unwrap();
            vm.run("dispatch", &event).unwrap().runs[0].r0
        };
        vm.attach("throws").unwrap();
        assert_eq!((action(vm, 99), number(vm, "kept")), (1, 0));
        assert_eq!((action(vm, 1), number(vm, "kept")), (2, 1));
        vm.detach("throws").unwrap();
        // The program goes on with what the exception callback returned.
        vm.attach("throws_and_catches").unwrap();
        assert_eq!((action(vm, 99), number(vm, "kept")), (2, 2));
        assert_eq!(number(vm, "caught"), 1);
    });
}

#[test]
fn tracing_programs_see_arguments_and_result() {
    on_each_engine(|vm| {
        for name in ["enters", "leaves", "leaves_main"] {
            vm.attach(name).unwrap();
        }
        let outcome = vm.run("dispatch", &frame()).unwrap();
        assert_eq!(outcome.runs[0].r0, 1);
        let exit = &outcome.nested[2].outcome;
        assert_eq!(exit.printk().collect::<Vec<_>>(), ["first returned 1"]);
        let values = [
            "entered",
            "left",
            "result",
            "queue",
            "arguments",
            "main_result",
        ];
        assert_eq!(values.map(|name| number(vm, name)), [1, 1, 1, 5, 1, 1]);
        let nested: Vec<_> = outcome
            .nested
            .iter()
            .map(|nested| nested.event.as_str())
            .collect();
        assert_eq!(
            nested,
            [
                "dispatch:dispatch",
                "dispatch:first",
                "dispatch:first",
                "dispatch:dispatch"
            ]
        );
    });
}

#[test]
fn arguments_without_a_reliable_type_are_five_numbers() {
    on_each_engine(|vm| {
        vm.attach("enters_second").unwrap();
        let event = frame().set("ingress_ifindex", 1).unwrap();
        assert_eq!(vm.run("dispatch", &event).unwrap().runs[0].r0, 2);
        assert_eq!(number(vm, "arguments"), 5);
    });
}

#[test]
fn a_function_is_replaced_or_traced() {
    let Some(mut vm) = loaded() else { return };
    let refused = |result: bpflab::Result<()>| match result {
        Err(Error::Refused { errno, .. }) => errno.to_string(),
        other => panic!("{other:?}"),
    };
    vm.attach("drops").unwrap();
    assert!(refused(vm.attach("drops")).starts_with("EBUSY"));
    assert!(refused(vm.attach("enters")).starts_with("EBUSY"));
    vm.detach("drops").unwrap();
    vm.attach("enters").unwrap();
    assert!(refused(vm.attach("drops")).starts_with("EBUSY"));
}

#[test]
fn engines_count_what_attached_programs_execute() {
    let insns = |name: &str, engine| {
        let mut vm = loaded()?;
        vm.set_engine(engine);
        vm.attach(name).unwrap();
        let outcome = vm.run("dispatch", &frame()).unwrap();
        let nested = outcome.nested.iter().flat_map(|it| &it.outcome.runs);
        let nested = nested.map(|run| run.insns);
        Some((outcome.runs[0].insns, nested.collect::<Vec<_>>()))
    };
    for name in [
        "drops",
        "replaces_all",
        "throws",
        "throws_and_catches",
        "enters",
        "leaves",
        "leaves_main",
    ] {
        for engine in ENGINES {
            assert_eq!(
                insns(name, engine),
                insns(name, EngineKind::Checked),
                "{name}"
            );
        }
    }
}

#[test]
fn the_engine_that_stands_in_is_named() {
    let Some(mut vm) = loaded() else { return };
    let engine = EngineKind::Interp;
    vm.set_engine(engine);
    let ran_on = |vm: &mut Vm| vm.run("dispatch", &frame()).unwrap().runs[0].ran_on;
    vm.mock_helper("get_smp_processor_id", |_| Ok(1)).unwrap();
    vm.attach("drops").unwrap();
    assert_eq!(ran_on(&mut vm), RanOn::chosen(engine));
    vm.detach("drops").unwrap();
    vm.attach("replaces_all").unwrap();
    assert_eq!(ran_on(&mut vm), RanOn::checked(Fallback::Attached));
    vm.detach("replaces_all").unwrap();
    assert_eq!(ran_on(&mut vm), RanOn::chosen(engine));
}

#[test]
fn the_other_program_must_be_loaded() {
    let Some(mut vm) = loaded() else { return };
    let other = Vm::new(Object::open("tests/attach_targets/dispatcher.bpf.o").unwrap()).unwrap();
    let mut again = Object::open("tests/attach_targets/dispatched.bpf.o").unwrap();
    again.load_only(["drops"]).unwrap();
    again.set_attach_program(other.target("dispatch").unwrap());
    vm.load(again).unwrap();
    let error = vm.attach("drops").unwrap_err().to_string();
    assert!(error.contains("is not loaded here"), "{error}");
}
