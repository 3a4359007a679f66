//! All engines return the same results on the hardest cases, interpreters and machine code.
//! (Generated programs are in `equality`, those of others in `corpus_runs`.) An optimised
//! build (`cargo test --release --test library engines::`) tests the threaded form.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::shared::sample;
use bpflab::Vm;
use bpflab::btf::{Builder, Encoding, FuncInfo, Linkage};
use bpflab::compare::{Engine, Ours, Subject};
use bpflab::engine::{Step, Watch};
use bpflab::harness::{EngineKind, Fallback, RanOn};
use bpflab::isa::assemble_with;
use bpflab::lower::Passes;
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgFlags, ProgType};
use bpflab::util::Pc;
use bpflab::vm::events::Event;
use bpflab::vm::{Injection, World};

/// The engines compared with the checked interpreter: machine code if this build supports the
/// host.
const FAST: [EngineKind; 2] = [EngineKind::Interp, EngineKind::Jit];

/// Programs from assembly, all of one type; the first one runs, and prog arrays hold the
/// others by index.
fn programs(prog_type: ProgType, maps: &[MapDef], texts: &[&str]) -> Vec<Arc<Program>> {
    let of = |(number, text): (usize, &&str)| {
        let mut program = Program::new(format!("p{number}"), prog_type, Vec::new());
        program.maps = maps.into();
        program.license = "GPL".into();
        let assembly = assemble_with(text, &program).unwrap();
        program.insns = assembly.slots;
        if text.contains("bpf_loop") {
            give_types(&mut program, &assembly.labels);
        }
        Arc::new(program)
    };
    texts.iter().enumerate().map(of).collect()
}

/// Gives the functions of a program with a callback the BTF types that the kernel requires.
fn give_types(program: &mut Program, labels: &BTreeMap<String, Pc>) {
    let mut types = Builder::new();
    let int = types.int("int", 4, Encoding::Signed);
    let prototype = types.prototype(int, &[]);
    let starts = [
        ("p0", Pc(0)),
        ("triple", labels["triple"]),
        ("body", labels["body"]),
    ];
    for (name, start) in starts {
        let ty = types.function(name, prototype, Linkage::Static);
        let insn_off = start.0;
        program.func_info.push(FuncInfo { insn_off, ty });
    }
    program.btf = Some(types.build().unwrap());
}

/// The outcome of running the first program with a budget, as text; machine code counts
/// instructions or not. `prepare` may change the machine.
fn outcome(
    programs: &[Arc<Program>],
    engine: EngineKind,
    counts: bool,
    budget: Option<u64>,
    prepare: fn(&mut Vm),
) -> String {
    let mut vm = Vm::with_world(World::default());
    vm.set_engine(engine).set_counting(counts);
    if let Some(budget) = budget {
        vm.set_budget(budget);
    }
    let maps = programs[0].maps.clone();
    let handles = vm
        .load_unverified_programs(&maps, programs.to_vec())
        .unwrap();
    let is_array = |map: &&MapDef| map.map_type == MapType::ProgArray;
    if let Some(array) = maps.iter().find(is_array) {
        for (slot, handle) in (0..array.max_entries).zip(&handles) {
            vm.map(&array.name)
                .unwrap()
                .set_program(slot, *handle)
                .unwrap();
        }
    }
    prepare(&mut vm);
    let packet: Vec<u8> = (1..=64).collect();
    let outcome = vm.run(handles[0], &Event::packet(packet));
    let mut text = match outcome {
        Ok(mut outcome) => {
            for run in &mut outcome.runs {
                assert_eq!(run.ran_on.fallback.is_none(), run.ran_on.engine == engine);
                // Engines may differ only in this field.
                run.ran_on = RanOn::chosen(EngineKind::Checked);
                if !counts {
                    run.insns = None;
                }
            }
            format!("{outcome:?}\n")
        }
        Err(error) => format!("{error}\n"),
    };
    for (_, map) in vm.machine().maps() {
        for key in 0u32..4 {
            text += &format!("{:?}\n", map.read(&key.to_le_bytes()));
        }
    }
    text
}

/// Checks that the engines agree, and that the text of the outcome contains `end`.
#[track_caller]
fn agree(programs: &[Arc<Program>], end: &str) {
    agree_when(programs, None, |_| {}, end);
}

#[track_caller]
fn agree_when(programs: &[Arc<Program>], budget: Option<u64>, prepare: fn(&mut Vm), end: &str) {
    let checked = outcome(programs, EngineKind::Checked, true, budget, prepare);
    for engine in FAST {
        let fast = outcome(programs, engine, true, budget, prepare);
        assert_eq!(checked, fast, "on {engine}");
    }
    if budget.is_none() {
        let [checked, fast] = [EngineKind::Checked, EngineKind::Jit]
            .map(|engine| outcome(programs, engine, false, budget, prepare));
        assert_eq!(checked, fast, "without counts");
    }
    assert!(checked.contains(end), "{checked}");
}

/// Checks that the first program is verified and lowered.
#[track_caller]
fn is_fast(programs: &[Arc<Program>]) {
    let mut vm = Vm::with_world(World::default());
    let handles = vm
        .load_unverified_programs(&programs[0].maps.clone(), programs.to_vec())
        .unwrap();
    let verdict = &vm.verification("p0").unwrap().verdict;
    assert!(verdict.is_accepted(), "{}", verdict.message);
    assert_eq!(
        vm.engine_of(handles[0]).unwrap(),
        RanOn::chosen(EngineKind::default())
    );
}

/// A loop, a function with its own frame, a callback, a lookup: everything that affects the
/// instruction count.
const BUSY: &str = "
    r6 = 0
    r7 = 3
    again: r1 = r7
    call triple
    r6 += r0
    r7 += -1
    if r7 != 0 goto again
    *(u64 *)(r10 - 16) = r6
    r1 = 2
    r2 = body ll
    r3 = r10
    r3 += -16
    r4 = 0
    call bpf_loop
    r6 = *(u64 *)(r10 - 16)
    *(u32 *)(r10 - 4) = 1
    r1 = map[idx:0]
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    lock *(u64 *)(r0 + 0) += r6
    out: r0 = r6
    exit
    triple: *(u64 *)(r10 - 8) = r1
    r2 = *(u64 *)(r10 - 8)
    r0 = r2
    r0 *= 2
    r0 += r1
    exit
    body: r3 = *(u64 *)(r2 + 0)
    r3 += 100
    *(u64 *)(r2 + 0) = r3
    r0 = 0
    exit";

fn counts() -> MapDef {
    MapDef::new("counts", MapType::Array, 4, 8, 4)
}

#[test]
fn a_budget_ends_at_the_same_instruction() {
    let busy = programs(ProgType::Xdp, &[counts()], &[BUSY]);
    is_fast(&busy);
    agree(&busy, "r0: 218, insns: ");
    let whole = (1..1000)
        .find(|budget| {
            let done = outcome(&busy, EngineKind::Checked, true, Some(*budget), |_| {});
            done.contains("r0: 218")
        })
        .unwrap();
    assert!(whole > 60, "{whole}");
    for budget in 0..whole {
        agree_when(&busy, Some(budget), |_| {}, "budget");
    }
    for budget in [whole, whole + 1, 10 * whole, u64::MAX] {
        agree_when(&busy, Some(budget), |_| {}, "r0: 218");
    }
}

/// The last one's r0 depends on the first one's stack contents, which the frame keeps.
const JUMPS: &str = "
    r6 = r1
    *(u64 *)(r10 - 8) = 5
    r2 = map[idx:1]
    r3 = 1
    call bpf_tail_call
    r0 = 7
    exit";
const LANDS: &str = "
    r6 = *(u64 *)(r10 - 8)
    r7 = *(u64 *)(r10 - 64)
    r0 = r6
    r0 += r7
    exit";
/// The kernel rejects it: it reads an uninitialised register.
const REFUSED: &str = "
    *(u64 *)(r10 - 512) = 1
    r0 = r9
    r0 += 9
    exit";

fn jumps() -> MapDef {
    MapDef::new("jumps", MapType::ProgArray, 4, 4, 3)
}

#[test]
fn tail_calls_lead_to_the_same_place() {
    let maps = [counts(), jumps()];
    let two = programs(ProgType::Xdp, &maps, &[JUMPS, LANDS]);
    is_fast(&two);
    agree(&two, "r0: 5, insns: Some(10)");
    let to_itself = JUMPS.replace("r3 = 1", "r3 = 0");
    let one = programs(ProgType::Xdp, &maps, &[&to_itself]);
    agree(&one, "r0: 7, insns: Some(172)");
}

#[test]
fn a_tail_call_to_a_program_that_is_not_verified_goes_on_checked() {
    let maps = [counts(), jumps()];
    let two = programs(ProgType::Xdp, &maps, &[JUMPS, REFUSED]);
    is_fast(&two);
    agree(&two, "r0: 9, insns: Some(9)");
}

/// The caller of a function that tail-calls continues in its own program.
#[test]
fn a_tail_call_in_a_function_comes_back_to_its_caller() {
    let maps = [counts(), jumps()];
    let text = "
        r6 = 1000
        call inner
        r0 += r6
        exit
        inner: *(u64 *)(r10 - 8) = 5
        r2 = map[idx:1]
        r3 = 1
        call bpf_tail_call
        r0 = 7
        exit";
    for target in [LANDS, REFUSED] {
        let two = programs(ProgType::Xdp, &maps, &[text, target]);
        let end = if target == LANDS {
            "r0: 1005"
        } else {
            "r0: 1009"
        };
        agree(&two, end);
    }
}

#[test]
fn a_program_that_calls_a_mock_runs_checked() {
    let text = "call bpf_get_smp_processor_id\nr0 *= 2\nexit";
    let program = programs(ProgType::Xdp, &[], &[text]);
    is_fast(&program);
    let mock = |vm: &mut Vm| {
        vm.mock_helper("bpf_get_smp_processor_id", |_| Ok(21))
            .unwrap();
    };
    agree_when(&program, None, mock, "r0: 42");
}

#[test]
fn every_kind_of_operation() {
    let text = "
        r0 = 0
        r6 = r1
        r7 = *(u32 *)(r1 + 0)
        r8 = *(u32 *)(r1 + 4)
        r9 = r7
        r9 += 34
        if r9 > r8 goto out
        r0 = *(u8 *)(r7 + 13)
        r1 = *(u16 *)(r7 + 23)
        r1 = be16 r1
        r2 = *(u32 *)(r7 + 26)
        r3 = *(u64 *)(r7 + 1)
        r4 = *(s8 *)(r7 + 3)
        r5 = (s16)r3
        r0 += r1
        w0 ^= w2
        r0 -= r3
        r0 s>>= 3
        r0 += r4
        r0 *= r5
        r0 = -r0
        w4 = w0
        w4 s/= 7
        r0 %= 1000
        r0 += r4
        *(u32 *)(r7 + 30) = r0
        *(u8 *)(r7 + 29) = 255
        *(u64 *)(r10 - 8) = r0
        *(u16 *)(r10 - 8) = -2
        r1 = 3
        lock *(u64 *)(r10 - 8) += r1
        r1 = atomic64_fetch_add((u64 *)(r10 - 8), r1)
        r0 += r1
        r0 = atomic64_cmpxchg((u64 *)(r10 - 8), r0, r1)
        r1 = 5
        r2 = 9 ll
        if w1 s< w2 goto less
        r0 = 1
        less: if r0 & 1 goto out
        r0 += 2
        out: r0 &= 0xffff
        exit";
    let program = programs(ProgType::Xdp, &[], &[text]);
    is_fast(&program);
    agree(&program, "insns: Some(41)");
}

/// Four bytes of the context hold an eight-byte pointer, also if they are loaded with all
/// checks.
#[test]
fn a_pointer_of_the_context_is_whole() {
    let text = "
        r0 = 1
        r7 = *(u32 *)(r1 + 0)
        r2 = *(u32 *)(r1 + 4)
        r3 = r7
        r3 += 8
        if r3 > r2 goto out
        r5 = r7
        r5 += 1
        *(u8 *)(r5 + 0) = 77
        r0 = *(u8 *)(r7 + 1)
        out: exit";
    let program = programs(ProgType::Xdp, &[], &[text]).remove(0);
    let subject = Subject::new(program, Event::packet(vec![0; 64]));
    for kind in [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit] {
        let mut engine = Ours::new(kind).without(Passes::CONTEXT);
        assert_eq!(engine.run(&subject).unwrap().retval, Some(77), "{kind}");
    }
}

/// A branch depends on the stack value that an atomic operation returned. It is constant on
/// the path that is explored first, but not on the second path.
#[test]
fn what_an_atomic_operation_found_is_not_taken_for_certain() {
    let found = |operation: &str, register: &str| {
        let text = format!(
            "r0 = 1
            r2 = 0
            r6 = *(u32 *)(r1 + 12)
            *(u64 *)(r10 - 8) = 1
            if r6 != 0 goto other
            both: {operation}
            if {register} == 1 goto one
            r0 = 42
            exit
            one: r0 = 7
            exit
            other: r6 = *(u32 *)(r1 + 16)
            *(u64 *)(r10 - 8) = r6
            goto both"
        );
        let mut program = programs(ProgType::Xdp, &[], &[&text]).remove(0);
        // Checkpoints at every opportunity.
        Arc::make_mut(&mut program).flags |= ProgFlags::TEST_STATE_FREQ;
        program
    };
    for (operation, register) in [
        ("r0 = cmpxchg_64(r10 - 8, r0, r2)", "r0"),
        ("r2 = atomic_fetch_add((u64 *)(r10 - 8), r2)", "r2"),
        ("r2 = xchg_64(r10 - 8, r2)", "r2"),
    ] {
        let program = found(operation, register);
        is_fast(std::slice::from_ref(&program));
        agree(&[program], "r0: 42");
    }
}

#[test]
fn loops_that_may_go_on_end_alike() {
    let rounds = sample::cases(100_000);
    let text = format!(
        "
        r0 = 0
        again: r0 += 1
        if r0 == {rounds} goto out
        may_goto out
        goto again
        out: exit"
    );
    let program = programs(ProgType::Xdp, &[], &[&text]);
    agree(&program, &format!("r0: {rounds}"));
}

/// If a function of the threaded form kept its stack frame, this stack would overflow.
#[test]
fn a_long_run_takes_no_stack() {
    let run = || {
        let loops = "
            r6 = r1
            r9 = 2000
            again: r7 = *(u32 *)(r6 + 0)
            r8 = *(u32 *)(r6 + 4)
            r1 = r7
            r1 += 16
            if r1 > r8 goto out
            r2 = *(u16 *)(r7 + 3)
            r2 = be16 r2
            r3 = *(u64 *)(r7 + 5)
            r2 += r3
            *(u8 *)(r7 + 1) = r2
            *(u64 *)(r10 - 8) = r2
            r4 = *(s8 *)(r10 - 8)
            *(u32 *)(r10 - 12) = 1
            r1 = r4
            call twice
            r2 = r10
            r2 += -12
            r1 = map[idx:0]
            call bpf_map_lookup_elem
            if r0 == 0 goto out
            r5 = 3
            r5 = atomic64_fetch_add((u64 *)(r0 + 0), r5)
            r5 s/= 7
            *(u64 *)(r0 + 0) = r5
            r9 -= 1
            if r9 s> 0 goto again
            r0 = 77
            exit
            out: r0 = 1
            exit
            twice: r0 = r1
            r0 <<= 1
            exit";
        let program = programs(ProgType::Xdp, &[counts()], &[loops]);
        is_fast(&program);
        outcome(&program, EngineKind::Interp, true, None, |_| {})
    };
    let small = std::thread::Builder::new().stack_size(256 << 10);
    let outcome = small.spawn(run).unwrap().join().unwrap();
    assert!(outcome.contains("r0: 77, insns: "), "{outcome}");
}

/// The engine that ran the first of these programs.
fn ran_on(
    vm: &mut Vm,
    programs: &[Arc<Program>],
    engine: EngineKind,
    change: fn(&mut Vm),
) -> RanOn {
    vm.set_engine(engine);
    let maps = programs[0].maps.clone();
    let handles = vm
        .load_unverified_programs(&maps, programs.to_vec())
        .unwrap();
    if let [array] = &maps[..] {
        let array = vm.map(&array.name).unwrap();
        array.set_program(1, handles[1]).unwrap();
    }
    change(vm);
    let event = Event::packet(vec![0; 64]);
    let begins = vm.runner(handles[0], &event).unwrap().ran_on();
    let repeated = vm
        .runner(handles[0], &event)
        .expect("it is its event")
        .repeat(2)
        .unwrap();
    let outcome = vm.run(handles[0], &event).unwrap();
    let ran_on = outcome.runs[0].ran_on;
    // A run ends on the engine on which it started, except after a tail call.
    if ran_on.fallback != Some(Fallback::TailCall) {
        assert_eq!(begins, ran_on);
    }
    assert_eq!(repeated.ran_on, ran_on);
    assert_eq!(repeated.outcome.runs[0].ran_on, ran_on);
    let fallbacks: Vec<_> = outcome.fallbacks().map(|run| run.ran_on).collect();
    assert_eq!(fallbacks.len(), usize::from(ran_on.fallback.is_some()));
    ran_on
}

#[test]
fn a_run_names_its_engine_and_the_reason() {
    const JUMP: &str = "r3 = 1\nr2 = map[idx:0]\ncall bpf_tail_call\nr0 = 5\nexit";
    const CPU: &str = "call bpf_get_smp_processor_id\nexit";
    /// Programs, a change of the machine, and the reason why the first does not run on a fast
    /// engine.
    type Case = (&'static [&'static str], fn(&mut Vm), Option<Fallback>);
    const NOTHING: fn(&mut Vm) = |_| {};
    let cases: &[Case] = &[
        (&["r0 = 1\nexit"], NOTHING, None),
        (&["r0 = r2\nexit"], NOTHING, Some(Fallback::Rejected)),
        (
            &[CPU],
            |vm| {
                vm.mock_helper("bpf_get_smp_processor_id", |_| Ok(3))
                    .unwrap();
            },
            Some(Fallback::Mocked),
        ),
        (
            &[CPU],
            |vm| {
                vm.inject(Injection::call("bpf_map_update_elem")).unwrap();
            },
            Some(Fallback::Injected),
        ),
        (&[JUMP, "r0 = 1\nexit"], NOTHING, None),
        (&[JUMP, "r0 = r2\nexit"], NOTHING, Some(Fallback::TailCall)),
    ];
    let has_code = EngineKind::default() == EngineKind::Jit;
    for (texts, change, why) in cases {
        let maps = match texts.len() {
            1 => vec![],
            _ => vec![jumps()],
        };
        let programs = programs(ProgType::Xdp, &maps, texts);
        for engine in [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit] {
            let mut vm = Vm::with_world(World::default());
            let found = ran_on(&mut vm, &programs, engine, *change);
            let expected = match (engine, why) {
                (EngineKind::Checked, _) => (engine, None),
                (_, Some(why)) => (EngineKind::Checked, Some(*why)),
                (EngineKind::Jit, None) if !has_code => {
                    (EngineKind::Interp, Some(Fallback::NoCode))
                }
                (_, None) => (engine, None),
            };
            let found = (found.engine, found.fallback);
            assert_eq!(found, expected, "{texts:?} on {engine}");
        }
    }
}

/// A context smaller than the program may read, and a watched run.
#[test]
fn a_smaller_context_and_a_watched_run_are_named() {
    struct Watcher;
    impl Watch for Watcher {
        fn before(&mut self, step: &Step<'_>) {
            assert_eq!(step.program().name, "p0");
            if step.pc.0 == 0 {
                let context = step.frames[0].regs[1];
                assert_eq!(step.read(context, 168), Ok(vec![0; 168]));
                assert!(step.read(context, 169).is_err());
            }
        }
    }
    let text = "
        r0 = 0
        r2 = *(u64 *)(r1 + 0)
        if r2 == 0 goto end
        r0 = *(u64 *)(r1 + 112)
        end: exit";
    let programs = programs(ProgType::Kprobe, &[], &[text]);
    for engine in FAST {
        let mut vm = Vm::with_world(World::default());
        vm.set_engine(engine);
        let handle = vm.load_unverified_programs(&[], programs.clone()).unwrap()[0];
        let event = |len| Event::bytes(vec![0; len]);
        let small = vm.run(handle, &event(16)).unwrap().runs[0].ran_on;
        assert_eq!(small, RanOn::checked(Fallback::Context));
        let whole = vm.run(handle, &event(168)).unwrap().runs[0].ran_on;
        assert_eq!(whole, vm.engine_of(handle).unwrap());
        let watched = vm.run_watched(handle, &event(168), &mut Watcher).unwrap();
        assert_eq!(watched.runs[0].ran_on, RanOn::checked(Fallback::Watched));
    }
}
