//! Kfuncs as programs call them: `tests/objects/kfuncs.bpf.c` on the checked engine and, if
//! available, in the running kernel.

#[cfg(all(feature = "kernel", target_os = "linux"))]
use crate::shared::here;

use bpflab::harness::{EngineKind, RanOn};
use bpflab::object::Target;
use bpflab::spec::ProgType;
use bpflab::vm::events::Event;
use bpflab::{Error, Object, Vm};

/// Programs and their return values.
type Returned = &'static [(&'static str, i32)];

/// Objects, the type of their programs, and the programs' return values.
const RETURNED: &[(&str, ProgType, Returned)] = &[
    ("kfuncs", ProgType::Syscall, OBJECTS_AND_OTHERS),
    ("exceptions", ProgType::SchedCls, EXCEPTIONS),
];

const EXCEPTIONS: Returned = &[
    ("not_thrown", 2),
    ("thrown", 9),
    ("thrown_at_once", 64),
    ("handled", 17),
];

const OBJECTS_AND_OTHERS: Returned = &[
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

/// The object with its own BTF as the target: kfuncs are found by name.
fn own(name: &str) -> Object {
    let mut object = Object::open(format!("tests/objects/{name}.bpf.o")).unwrap();
    object.set_target(Target::Own);
    object
}

/// A packet, or nothing for syscall programs.
fn event(prog_type: ProgType) -> Event {
    let len = if prog_type == ProgType::Syscall {
        0
    } else {
        64
    };
    Event::input(prog_type, vec![0; len])
}

#[test]
fn an_exception_where_a_tail_call_led_stays_on_the_engine() {
    for engine in [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit] {
        let mut vm = Vm::new(own("tail_calls_thrown")).unwrap();
        vm.set_engine(engine);
        for (program, r0) in [("goes_on", 154), ("goes_on_twice", 78)] {
            let outcome = vm.run(program, &event(ProgType::SchedCls)).unwrap();
            let run = &outcome.runs[0];
            assert_eq!((run.r0, run.ran_on), (r0, RanOn::chosen(engine)));
        }
    }
}

#[test]
fn programs_return_what_they_should() {
    for (object, prog_type, programs) in RETURNED {
        for (name, expected) in *programs {
            let mut vm = Vm::unverified(own(object)).unwrap();
            let outcome = vm.run(name, &event(*prog_type)).unwrap();
            let returned = outcome.returned(name).map(u32::cast_signed);
            assert_eq!(returned, Some(*expected), "{name}");
            assert_eq!(outcome.unreleased, [], "{name}");
        }
    }
}

#[test]
#[cfg(all(feature = "kernel", target_os = "linux"))]
fn the_running_kernel_says_the_same() {
    use std::sync::Arc;

    use bpflab::compare::{Answer, Engine, Kernel, Ours, Subject};
    use bpflab::harness::EngineKind;
    use bpflab::program::Program;

    /// An engine's answer, without maps that hold addresses or locks.
    fn ask(engine: &mut dyn Engine, program: &Arc<Program>) -> Answer {
        let subject = Subject::new(program.clone(), event(program.prog_type));
        let mut answer = engine.run(&subject).unwrap();
        answer.maps.retain(|map| map.name.ends_with(".bss"));
        assert_eq!(answer.maps.len(), 1);
        answer
    }

    if here::kernel().is_none() {
        return;
    }
    for (object, ..) in RETURNED {
        let object = Object::open(format!("tests/objects/{object}.bpf.o")).unwrap();
        for program in object.programs() {
            let program = Arc::new(program.unwrap());
            let ours = ask(&mut Ours::new(EngineKind::Checked), &program);
            let kernels = ask(&mut Kernel, &program);
            assert_eq!(ours.retval, kernels.retval, "{}", program.name);
            assert_eq!(ours.maps, kernels.maps, "{}", program.name);
        }
    }
}

/// Programs that the verifier rejects, and their faults at run time.
const MISUSES: &[(&str, &str)] = &[
    (
        "drops_twice",
        "kfunc bpf_obj_drop_impl: argument 1 is object of type item, which was freed, \
         expected an object that bpf_obj_new() made",
    ),
    (
        "writes_what_is_gone",
        "writes 8 bytes at object of type item, which was freed",
    ),
    (
        "writes_behind",
        "writes 8 bytes at object of type item+32, 8 bytes past its end (32 bytes)",
    ),
    (
        "pushes_without_the_lock",
        "kfunc bpf_list_push_front_impl: the lock beside the list's head in \
         map value .data.A[0] is not held",
    ),
    (
        "pushes_no_node",
        "kfunc bpf_list_push_front_impl: argument 2 is object of type item, \
         expected a bpf_list_node of an allocated object",
    ),
    (
        "moves_no_iterator",
        "kfunc bpf_iter_num_next: there is no iterator: \
         bpf_iter_num_new() makes one first",
    ),
    (
        "makes_an_iterator_twice",
        "kfunc bpf_iter_num_new: there is an iterator already: \
         bpf_iter_num_destroy() ends it first",
    ),
    (
        "leaves_no_section",
        "kfunc bpf_rcu_read_unlock: the program is in no RCU read section",
    ),
    (
        "restores_in_the_wrong_order",
        "kfunc bpf_local_irq_restore: interrupts are restored in another order \
         than they were saved in",
    ),
    (
        "gives_back_what_it_does_not_have",
        "kfunc bpf_task_release: argument 1 is a null pointer, \
         expected an object that the program holds a reference to",
    ),
    (
        "calls_what_nobody_knows",
        "kfunc bpf_strnlen_of_a_module: not implemented; \
         mock it: `vm.mock_kfunc(\"bpf_strnlen_of_a_module\", |call| Ok(0))`",
    ),
    (
        "throws_in_a_callback",
        "bpf_throw() called in a callback, where it is not allowed",
    ),
];

#[test]
fn misuse_is_named() {
    for (name, expected) in MISUSES {
        let mut vm = Vm::unverified(own("kfunc_misuse")).unwrap();
        let fault = match vm.run(name, &event(ProgType::Syscall)) {
            Err(Error::Fault(fault)) => fault,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(fault.kind.to_string(), *expected, "{name}");
    }
}

#[test]
fn what_is_not_given_back_is_told() {
    let mut vm = Vm::unverified(own("kfunc_misuse")).unwrap();
    for _ in 0..3 {
        let outcome = vm
            .run("keeps_everything", &event(ProgType::Syscall))
            .unwrap();
        let held: Vec<_> = outcome.unreleased.iter().map(ToString::to_string).collect();
        assert_eq!(
            held,
            [
                "object of type item",
                "iterator bpf_iter_num at stack of keeps_everything+496",
                "RCU read section",
                "state of interrupts saved at stack of keeps_everything+504",
            ]
        );
    }
    match vm.run("reads_what_is_gone", &event(ProgType::Syscall)) {
        Err(Error::Fault(fault)) => assert_eq!(
            fault.kind.to_string(),
            "reads 8 bytes at object of type item, which was freed"
        ),
        // Without a kernel's types the program is unjudged, and its loads are probe loads.
        Ok(outcome) => {
            assert_eq!(outcome.returned("reads_what_is_gone"), Some(0));
            assert_eq!(outcome.unreleased, []);
            assert_eq!(outcome.probed.len(), 1);
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn mocks_go_first_and_stand_for_functions_of_modules() {
    let mut vm = Vm::unverified(own("kfunc_misuse")).unwrap();
    vm.mock_kfunc("bpf_strnlen_of_a_module", |call| {
        Ok(call.read(1, 6)?.iter().position(|byte| *byte == 0).unwrap() as u64)
    })
    .unwrap();
    let name = "calls_what_nobody_knows";
    let outcome = vm.run(name, &event(ProgType::Syscall)).unwrap();
    assert_eq!(outcome.returned(name), Some(6));
    let unknown = vm.mock_kfunc("bpf_strnlen_of_another", |_| Ok(0));
    assert!(matches!(unknown, Err(Error::NoKfunc(_))));

    let mut vm = Vm::unverified(own("kfuncs")).unwrap();
    let mut left = 3u32;
    vm.mock_kfunc("bpf_iter_num_next", move |_| {
        left = left.saturating_sub(1);
        Ok(0)
    })
    .unwrap();
    let outcome = vm.run("numbers", &event(ProgType::Syscall)).unwrap();
    assert_eq!(outcome.returned("numbers"), Some(0));
}
