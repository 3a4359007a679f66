//! What programs read of the kernel's structures by other ways than arguments of their hooks:
//! through map pointers and through untrusted arguments of global functions, on every engine.

use bpflab::harness::EngineKind;
use bpflab::object::Target;
use bpflab::spec::ProgType;
use bpflab::vm::Outcome;
use bpflab::vm::events::Event;
use bpflab::{Object, Vm};

const ENGINES: [EngineKind; 3] = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit];

/// A machine with the accepted programs of a test object.
fn machine(object: &str, target: Target, engine: EngineKind) -> Vm {
    let mut object = Object::open(format!("tests/objects/{object}.bpf.o")).unwrap();
    object.set_target(target);
    let mut vm = Vm::new(object).unwrap();
    vm.set_engine(engine);
    vm
}

#[test]
fn map_pointers_lead_to_the_attributes_of_the_map() {
    for target in [Target::Own, Target::bundled()] {
        for engine in ENGINES {
            let mut vm = machine("map_fields", target.clone(), engine);
            let outcome = vm.run("read_fields", &Event::bytes(vec![])).unwrap();
            let name = u32::from(b'c') << 8;
            assert_eq!(outcome.returned("read_fields"), Some(name), "{engine}");
            assert_eq!(outcome.probed, []);
            let fields = vm.map("fields").unwrap();
            let seen = [0u32, 1, 2, 3, 4].map(|at| fields.get::<u32, u64>(&at).unwrap().unwrap());
            // A hash map, without preallocation.
            assert_eq!(seen, [1, 12, 20, 300, 1], "{engine}");
            let id = fields.get::<u32, u64>(&5).unwrap().unwrap();
            assert_ne!(id, 0, "{engine}");
        }
    }
}

/// Runs a program with this first argument.
fn run(vm: &mut Vm, program: &str, argument: u64) -> Outcome {
    let event = vm.raw_tracepoint("sched_process_exec").unwrap();
    let event = event.set("args[0]", argument).unwrap();
    vm.run(program, &event).unwrap()
}

#[test]
fn loads_through_untrusted_arguments_that_lead_nowhere_give_zero() {
    for engine in ENGINES {
        let mut vm = machine("untrusted_arguments", Target::bundled(), engine);
        let world = vm.world();
        let task = world.kernel("task_struct").unwrap().set("pid", 4).unwrap();
        let task = task.set("real_parent.pid", 2).unwrap().address();
        let number = vm.world().kernel_bytes(&[7, 0, 0, 0]).unwrap().address();

        let outcome = run(&mut vm, "pids", task);
        let seen = (outcome.returned("pids"), outcome.probed.len());
        assert_eq!(seen, (Some(421), 0), "{engine}");
        let outcome = run(&mut vm, "numbers", number);
        assert_eq!(outcome.returned("numbers"), Some(8), "{engine}");

        // Null, a number, an address in kernel memory without an object.
        for nowhere in [0, 0x1234_5678, task + 0x10_0000] {
            let outcome = run(&mut vm, "pids", nowhere);
            // The pid, the parent, the parent's pid.
            let seen = (outcome.returned("pids"), outcome.probed.len());
            assert_eq!(seen, (Some(1), 3), "{engine}: {nowhere:#x}");
            let outcome = run(&mut vm, "numbers", nowhere);
            let seen = (outcome.returned("numbers"), outcome.probed.len());
            assert_eq!(seen, (Some(1), 1), "{engine}: {nowhere:#x}");
        }
    }
}

#[test]
fn netfilter_programs_read_their_state_and_packet() {
    for engine in ENGINES {
        let mut vm = machine("netfilter", Target::bundled(), engine);
        let world = vm.world();
        let state = world.kernel("nf_hook_state").unwrap();
        let state = state.set("hook", 3).unwrap().set("pf", 2).unwrap();
        let skb = world.kernel("sk_buff").unwrap().set("len", 999).unwrap();
        for (skb, passed, length, probed) in [(skb.address(), 1, 999, 0), (0, 1, 0, 1)] {
            let context = [state.address(), skb].map(u64::to_le_bytes).concat();
            let event = Event::input(ProgType::Netfilter, context);
            let outcome = vm.run("on_packet", &event).unwrap();
            assert_eq!(outcome.returned("on_packet"), Some(passed), "{engine}");
            assert_eq!(outcome.fallbacks().count(), 0, "{engine}");
            assert_eq!(outcome.probed.len(), probed, "{engine}");
            let seen = ["hook", "family", "length"].map(|name| vm.global(name).unwrap());
            assert_eq!(
                seen.map(|value| value.as_u64()),
                [3, 2, length].map(Some),
                "{engine}"
            );
        }
    }
}
