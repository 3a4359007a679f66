//! The oracle finds no violation: our programs and those of the shared corpus
//! (`../shared/corpus`; skipped if missing) run on random packets, contexts and map
//! contents, and at each instruction some explored state must contain every register and
//! stack slot.
//!
//! `BPFLAB_SEED` selects other inputs; `BPFLAB_WHOLE_CORPUS=1` runs every case of the
//! corpus instead of every sixth.

use crate::shared;
use crate::shared::sample;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bpflab::btf::{Btf, Kind};
use bpflab::fuzz::{self, Inputs};
use bpflab::r#gen::{self, Choices, KernelTypes, make};
use bpflab::harness::{Oracle, OracleReport};
use bpflab::isa::{RawInsn, assemble_with, disassemble};
use bpflab::object::Target;
use bpflab::object::cases::Cases;
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgFlags, ProgType};
use bpflab::verifier::oracle::Trace;
use bpflab::verifier::{Options, trace};
use bpflab::vm::{ProgramHandle, World};
use bpflab::{Object, Vm};

/// The maximum number of recorded states of a program.
const STATES: u64 = 20_000;
/// The maximum number of checked instructions of a run.
const STEPS: u64 = 20_000;

fn machine(program: &Arc<Program>) -> (Vm, ProgramHandle) {
    let mut vm = Vm::with_world(World::with_cpus(4));
    vm.set_budget(200_000);
    let handles = vm.load_unverified_programs(&program.maps, vec![program.clone()]);
    (vm, handles.unwrap()[0])
}

fn assembled(prog_type: ProgType, text: &str, maps: Vec<MapDef>) -> Arc<Program> {
    let mut program = Program::new("test", prog_type, Vec::new());
    program.license = "GPL".into();
    program.maps = maps.into();
    program.insns = assemble_with(text, &program).unwrap().slots;
    Arc::new(program)
}

fn traced(program: &Arc<Program>) -> Trace {
    trace(program, &Options::default(), STATES).unwrap()
}

/// A verifier error: a state that the run violates, or an access that it should have
/// rejected.
fn fault(checked: &OracleReport) -> Option<String> {
    if let Some(violation) = &checked.violation {
        return Some(violation.to_string());
    }
    fuzz::fault(checked.outcome.as_ref().err()?)
}

/// Inputs with the seed of the environment variable.
fn seeded() -> Inputs {
    let seed = std::env::var("BPFLAB_SEED").ok();
    Inputs::new(seed.map_or(1, |seed| seed.parse().expect("BPFLAB_SEED is a number")))
}

/// One path reaches the division with r7 = 1, and the other, with r7 = 0, is pruned: a
/// division by zero is harmless. So the oracle must not require r7 = 1.
#[test]
fn a_walk_that_is_cut_off_makes_no_false_state() {
    let text = "r0 = *(u32 *)(r1 +0)\nr7 = 1\nif r0 != 0 goto +1\nr7 = 0\n\
                r0 = 100\nr0 /= r7\nexit\n";
    let program = assembled(ProgType::SocketFilter, text, Vec::new());
    let trace = traced(&program);
    assert!(trace.is_complete());
    let (mut vm, handle) = machine(&program);
    for len in [0, 64] {
        let event = bpflab::vm::events::Event::packet(vec![0; len]);
        let checked = Oracle::new(&trace).run(&mut vm, handle, &event);
        assert_eq!(checked.violation, None, "{len}");
    }
}

/// A helper with an impossible result is reported at the next instruction.
#[test]
fn a_false_state_is_found() {
    let text = "call bpf_get_smp_processor_id\nr6 = r0\nr0 = 0\nexit\n";
    let program = assembled(ProgType::SocketFilter, text, Vec::new());
    let trace = traced(&program);
    let (mut vm, handle) = machine(&program);
    let event = bpflab::vm::events::Event::packet(vec![0; 64]);
    let honest = Oracle::new(&trace).run(&mut vm, handle, &event);
    assert_eq!((honest.held, honest.violation), (4, None));
    vm.mock_helper("get_smp_processor_id", |_| Ok(1 << 40))
        .unwrap();
    let lying = Oracle::new(&trace).run(&mut vm, handle, &event);
    let told = lying.violation.unwrap();
    assert_eq!((told.pc.0, told.states, lying.held), (1, 1, 1));
    assert!(
        told.what.contains("R0 of frame 0 is 0x10000000000"),
        "{told}"
    );
    assert!(told.state.contains("R0=scalar("), "{told}");
}

/// The types of the reference kernel.
fn judge_btf() -> Option<Btf> {
    let path = shared::corpus()?.with_file_name("vmlinux-6.18.44.btf.xz");
    match Target::file(path) {
        Ok(Target::Kernel(btf)) => Some(btf),
        other => panic!("the types of the reference kernel: {other:?}"),
    }
}

/// A program that uses kfuncs by name (`kfunc NAME`).
fn with_kernel(text: &str) -> Option<Arc<Program>> {
    let btf = judge_btf()?;
    let lines = text.lines().map(|line| match line.strip_prefix("kfunc ") {
        Some(name) => {
            let id = btf.find(name, Kind::Func).unwrap().id();
            format!("call kernel-function#{}", id.0)
        }
        None => line.to_owned(),
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let program = assembled(ProgType::Syscall, &text, Vec::new());
    let mut program = Arc::unwrap_or_clone(program);
    program.kernel_btf = Some(btf);
    program.flags = ProgFlags::SLEEPABLE;
    Some(Arc::new(program))
}

/// The pointer that a kfunc returns must be an object of the type, with a reference.
#[test]
fn a_false_object_is_found() {
    let text = "r1 = 1\nkfunc bpf_task_from_pid\nif r0 == 0 goto out\nr1 = r0\n\
                kfunc bpf_task_release\nout:\nr0 = 0\nexit\n";
    let Some(program) = with_kernel(text) else {
        return;
    };
    let trace = traced(&program);
    let check = |of: Option<&'static str>, acquires: bool| {
        let (mut vm, handle) = machine(&program);
        let object = of.map(|of| vm.world().kernel(of).unwrap());
        let address = object.as_ref().map_or(0, |object| object.address());
        vm.mock_kfunc("bpf_task_from_pid", move |call| {
            if acquires {
                call.machine.acquire(address);
            }
            Ok(address)
        })
        .unwrap();
        let event = bpflab::vm::events::Event::bytes(Vec::new());
        Oracle::new(&trace).run(&mut vm, handle, &event).violation
    };
    assert_eq!(check(Some("task_struct"), true), None);
    assert_eq!(check(None, false), None);
    for (of, acquires, pc) in [("cgroup", true, 2), ("task_struct", false, 3)] {
        let violation = check(Some(of), acquires).unwrap();
        assert!(
            violation.pc.0 <= pc && violation.what.contains("R0"),
            "{violation}"
        );
    }
}

/// An iterator that ends before it began, and a section that is not left.
#[test]
fn false_iterators_and_sections_are_found() {
    let text = "r1 = r10\nr1 += -8\nr2 = 0\nr3 = 3\nkfunc bpf_iter_num_new\nagain:\n\
                r1 = r10\nr1 += -8\nkfunc bpf_iter_num_next\nif r0 != 0 goto again\n\
                r1 = r10\nr1 += -8\nkfunc bpf_iter_num_destroy\n\
                kfunc bpf_rcu_read_lock\nkfunc bpf_rcu_read_unlock\nr0 = 0\nexit\n";
    let Some(program) = with_kernel(text) else {
        return;
    };
    let trace = traced(&program);
    let check = |mocked: Option<&'static str>| {
        let (mut vm, handle) = machine(&program);
        if let Some(name) = mocked {
            vm.mock_kfunc(name, |_| Ok(0)).unwrap();
        }
        let event = bpflab::vm::events::Event::bytes(Vec::new());
        let checked = Oracle::new(&trace).run(&mut vm, handle, &event);
        checked.violation.map(|violation| violation.what)
    };
    assert_eq!(check(None), None);
    let found = |name| check(Some(name)).unwrap();
    assert!(found("bpf_iter_num_new").contains("fp-8"), "no iterator");
    assert!(
        found("bpf_iter_num_next").contains("fp-8"),
        "elements are left"
    );
    assert!(found("bpf_iter_num_destroy").contains("1 references"));
    assert!(found("bpf_rcu_read_lock").contains("critical sections"));
    assert!(found("bpf_rcu_read_unlock").contains("critical sections"));
}

/// Beyond the limit of states nothing is claimed.
#[test]
fn a_walk_that_was_not_finished_claims_nothing() {
    let text = "r6 = 0\nagain:\nr6 += 1\nif r6 < 100 goto again\nr0 = 0\nexit\n";
    let program = assembled(ProgType::SocketFilter, text, Vec::new());
    let trace = trace(&program, &Options::default(), 50).unwrap();
    assert!(!trace.is_complete());
    assert_eq!(trace.len(), 50);
    let (mut vm, handle) = machine(&program);
    let event = bpflab::vm::events::Event::packet(vec![0; 64]);
    let checked = Oracle::new(&trace).run(&mut vm, handle, &event);
    assert_eq!((checked.held, checked.violation), (50, None));
    assert_eq!(checked.unknown, 203 - 50);
}

/// Maps, the packet, subprograms, spills: every kind of pointer is compared.
#[test]
fn pointers_are_followed() {
    let map = MapDef::new("counts", MapType::Array, 4, 24, 4);
    let text = "r6 = r1\nr2 = *(u32 *)(r6 +0)\nr3 = *(u32 *)(r6 +4)\n*(u64 *)(r10 -8) = r2\n\
                r4 = r2\nr4 += 20\nif r4 > r3 goto out\nr7 = *(u8 *)(r2 +3)\nr7 &= 3\n\
                *(u32 *)(r10 -16) = w7\nr2 = r10\nr2 += -16\nr1 = map[idx:0]\n\
                call bpf_map_lookup_elem\nif r0 == 0 goto out\nr0 += r7\n\
                r1 = *(u64 *)(r10 -8)\nr2 = r0\ncall add\nr0 = 2\nexit\n\
                out:\nr0 = 1\nexit\n\
                add:\nr3 = *(u8 *)(r1 +0)\n*(u8 *)(r2 +4) = w3\nr0 = 0\nexit\n";
    let program = assembled(ProgType::Xdp, text, vec![map]);
    let trace = traced(&program);
    let (mut vm, handle) = machine(&program);
    let mut inputs = Inputs::new(7);
    let mut held = 0;
    for _ in 0..50 {
        inputs.fill_maps(&mut vm);
        let event = inputs.event(&mut vm, &program);
        let checked = Oracle::new(&trace).run(&mut vm, handle, &event);
        assert_eq!(fault(&checked), None);
        held += checked.held;
    }
    assert!(held > 500, "{held}");
}

/// A case whose context has a socket, which is missing here: it reads as null, which never
/// happens in the kernel.
const NO_SOCKET: &str = "verifier_sockmap_mutate/test_sk_reuseport";

/// The results of many programs.
#[derive(Debug, Default)]
struct Tally {
    programs: usize,
    incomplete: usize,
    runs: usize,
    held: u64,
    unknown: u64,
    wrong: Vec<String>,
}

impl Tally {
    /// Runs a program several times on random inputs, if it is accepted.
    fn try_program(&mut self, name: &str, program: &Arc<Program>, runs: u32, inputs: &mut Inputs) {
        let Ok(trace) = trace(program, &Options::default(), STATES) else {
            return;
        };
        let mut vm = Vm::with_world(World::with_cpus(4));
        vm.set_budget(200_000);
        let Ok(handles) = vm.load_unverified_programs(&program.maps, vec![program.clone()]) else {
            return;
        };
        self.programs += 1;
        self.incomplete += usize::from(!trace.is_complete());
        let start = Instant::now();
        for _ in 0..runs {
            if start.elapsed() > Duration::from_millis(300) {
                break;
            }
            inputs.fill_maps(&mut vm);
            let event = inputs.event(&mut vm, program);
            let oracle = Oracle::new(&trace).with_limit(STEPS);
            let checked = oracle.run(&mut vm, handles[0], &event);
            self.runs += 1;
            self.held += checked.held;
            self.unknown += checked.unknown;
            if let Some(how) = fault(&checked) {
                self.wrong.push(format!("{name}: {how}"));
                break;
            }
            // A run that its budget ended has not released what it reserved.
            if checked.outcome.is_err() {
                break;
            }
        }
    }
}

/// Programs whose callbacks the oracle does not follow yet: those that compare nodes of a tree, and
/// those of exceptions.
const NOT_FOLLOWED: [&str; 2] = ["kfuncs.bpf.o trees", "exceptions.bpf.o handled"];

#[test]
fn our_programs_do_what_the_verifier_believed() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut inputs = seeded();
    let mut tally = Tally::default();
    for folder in ["tests/objects", "examples/bpf"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        for entry in entries.step_by(sample::step()) {
            let path = entry.unwrap().path();
            let Some(object) = Object::open(&path).ok() else {
                continue;
            };
            for program in object.programs().filter_map(Result::ok) {
                let name = format!("{} {}", path.display(), program.name);
                if NOT_FOLLOWED.iter().any(|end| name.ends_with(end)) {
                    continue;
                }
                tally.try_program(&name, &Arc::new(program), 20, &mut inputs);
            }
        }
    }
    eprintln!("{tally:#?}");
    assert!(tally.wrong.is_empty(), "{}", tally.wrong.join("\n"));
    let (programs, held) = (sample::cases(30), sample::cases(1000));
    assert!(tally.programs >= programs && tally.held > held, "{tally:?}");
}

/// Programs that use typed pointers, dynptrs and iterators (`bpflab::gen`).
#[test]
fn generated_programs_do_what_the_verifier_believed() {
    let Some(btf) = judge_btf() else { return };
    let kernel = KernelTypes::new(&btf);
    let mut inputs = seeded();
    let (mut tally, mut throwing) = (Tally::default(), 0);
    let count = std::env::var("BPFLAB_RANDOM_COUNT").map_or(300, |count| count.parse().unwrap());
    for number in 0..count {
        let mut choices = Choices::seeded(inputs.bits(), 500);
        let options = r#gen::Options {
            kernel: Some(&kernel),
            // More of these are accepted.
            defined: number % 3 != 0,
            ..r#gen::Options::default()
        };
        let made = make(&mut choices, options);
        let name = made.program.prog_type.name().to_owned();
        let (before, accepted) = (tally.wrong.len(), tally.programs);
        tally.try_program(&name, &made.program, 3, &mut inputs);
        let throw = btf.find("bpf_throw", Kind::Func).expect("a kfunc").id();
        let throws = |insn: &RawInsn| {
            (insn.opcode, insn.src(), insn.imm) == (0x85, 2, throw.0.cast_signed())
        };
        let throws = made.program.insns.iter().any(throws);
        throwing += usize::from(throws && tally.programs > accepted);
        if tally.wrong.len() > before {
            let text = disassemble(&made.program.insns, &*made.program);
            let target = made.program.attach_btf_id.map(|id| btf.ty(id).name());
            let target = target.unwrap_or_default();
            tally.wrong.push(format!("attached to '{target}':\n{text}"));
        }
    }
    eprintln!("{tally:#?}, {throwing} with exceptions");
    assert!(tally.wrong.is_empty(), "{}", tally.wrong.join("\n"));
    assert!(tally.programs > count / 5 && tally.held > 1000, "{tally:?}");
    assert!(throwing > 0);
}

#[test]
fn the_corpus_does_what_the_verifier_believed() {
    let Some(path) = shared::corpus() else { return };
    let whole = std::env::var_os("BPFLAB_WHOLE_CORPUS").is_some();
    let mut cases = Cases::open(&path).unwrap();
    let all: Vec<_> = cases.by_ref().collect::<Result<_, _>>().unwrap();
    let mut inputs = seeded();
    let mut tally = Tally::default();
    for case in all.iter().step_by(if whole { 1 } else { 6 }) {
        let accepted = case.kernel.as_ref().is_some_and(|says| says.accepts());
        if accepted && case.id != NO_SOCKET {
            let program = Arc::new(cases.program(case).unwrap());
            tally.try_program(&case.id, &program, 8, &mut inputs);
        }
    }
    eprintln!("{tally:#?}");
    assert!(tally.wrong.is_empty(), "{}", tally.wrong.join("\n"));
    assert!(tally.held > 1000, "{tally:?}");
}
