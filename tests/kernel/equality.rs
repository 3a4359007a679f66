//! The running kernel is one more engine: generated programs with defined behaviour
//! (`bpflab::gen`) run there through `BPF_PROG_TEST_RUN`, and have the same return value,
//! packet, context, maps and records as in the checked engine. Skipped where no program can be
//! loaded.
//!
//! Undefined behaviour is not generated: reads of unwritten stack bytes, bits of addresses.
//! Machine-dependent helpers (time, random numbers, the CPU) are called, and their results
//! dropped; the tally counts them. Our machine is CPU 0, the kernel's run may be on any:
//! values of per-CPU maps are compared without the number of the CPU.

use crate::shared::here;
use crate::shared::law;
use crate::shared::tally;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use bpflab::Object;
use bpflab::compare::{Engine, Kernel, Ours, Subject, Unable, difference};
use bpflab::fuzz::{Campaign, CampaignOptions, Oracle, Seeds, Strategy};
use bpflab::r#gen::{KernelTypes, Options};
use bpflab::harness::EngineKind;
use bpflab::isa::{assemble, assemble_with};
use bpflab::kernel::{LoadOptions, LoadedMaps, TestRun, load, running_btf};
use bpflab::object::Target;
use bpflab::program::{Initial, MapDef, Program};
use bpflab::spec::{MapType, ProgFlags, ProgType};
use bpflab::verifier::{self, verify};
use bpflab::vm::events::Event;

use law::hold;
use tally::Tally;

/// The types that `BPF_PROG_TEST_RUN` runs and `bpflab::gen` generates.
const TYPES: [ProgType; 6] = [
    ProgType::Xdp,
    ProgType::SchedCls,
    ProgType::SocketFilter,
    ProgType::CgroupSkb,
    ProgType::Syscall,
    ProgType::RawTracepoint,
];

/// Runs a subject in the kernel, whose result has to equal the checked engine's.
fn as_in_the_kernel(tally: &mut Tally, subject: &Subject) -> Result<(), String> {
    let checked = tally.agree(subject, &mut [])?;
    let answer = match Kernel.run(subject) {
        Ok(answer) => answer,
        Err(Unable::Refused(why)) => return Err(format!("the kernel refuses it: {why}")),
        Err(error) => return Err(error.to_string()),
    };
    if let Some(difference) = difference(&checked, &answer) {
        return Err(format!("in the kernel: {difference}"));
    }
    *tally.runs.entry("kernel".to_owned()).or_default() += 1;
    Ok(())
}

#[test]
fn the_kernel_gives_the_same_answer() {
    gives_the_same_answer(None, 0.9);
}

/// Dynptrs, iterators and critical sections.
#[test]
fn the_kernel_gives_the_same_answer_with_objects() {
    let kernel = running_btf().map(KernelTypes::new);
    gives_the_same_answer(kernel.as_ref(), 0.7);
}

/// Runs programs of all types, of which at least this share is accepted.
fn gives_the_same_answer(kernel: Option<&KernelTypes>, share: f64) {
    if here::kernel().is_none() {
        return;
    }
    for prog_type in TYPES {
        let options = Options {
            prog_type: Some(prog_type),
            defined: true,
            kernel,
            ..Options::default()
        };
        let mut engines = fast();
        let tally = hold(prog_type.name(), 60, options, |tally, subject| {
            if kernel.is_some() {
                tally.agree(subject, &mut engines)?;
            }
            as_in_the_kernel(tally, subject)
        });
        tally.tell();
        assert!(tally.accepted() >= share && tally.faults == 0, "{tally:?}");
    }
}

/// Programs tail-call one another and themselves from functions, repeatedly, and the
/// callers continue with the results.
#[test]
fn tail_calls_come_back_as_in_the_kernel() {
    if here::kernel().is_none() {
        return;
    }
    for prog_type in TYPES.into_iter().filter(|ty| *ty != ProgType::Syscall) {
        let options = Options {
            prog_type: Some(prog_type),
            defined: true,
            tail_calls: true,
            ..Options::default()
        };
        let (mut engines, mut most) = (fast(), 0);
        let tally = hold(prog_type.name(), 40, options, |tally, subject| {
            let checked = tally.agree(subject, &mut engines)?;
            let waiting = checked.maps.iter().find(|map| map.name == "waiting");
            let waiting = waiting.and_then(|map| map.entries.first()?.1.first());
            most = most.max(*waiting.unwrap());
            as_in_the_kernel(tally, subject)
        });
        tally.tell();
        assert!(tally.accepted() >= 0.9 && tally.faults == 0, "{tally:?}");
        // The first of a program's functions leaves one frame waiting: 33 frames are 33
        // tail calls.
        assert!(most >= 33 || tally.made < 40, "{most} frames at most");
    }
}

/// All our engines except the checked one.
fn fast() -> Vec<Ours> {
    let interp = Ours::new(EngineKind::Interp);
    let jit = Ours::new(EngineKind::Jit);
    vec![
        interp.clone().with_loop(),
        interp,
        jit.clone(),
        jit.without_counts(),
    ]
}

/// The programs of one of our objects, each on a packet of 64 zeros or without input, with
/// the other programs in its program arrays.
fn subjects(name: &str) -> Vec<Subject> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/objects");
    let mut object = Object::open(path.join(name)).unwrap();
    object.set_target(Target::file("/sys/kernel/btf/vmlinux").unwrap());
    let programs: Vec<_> = object.programs().map(|it| Arc::new(it.unwrap())).collect();
    let subject = |program: &Arc<Program>| {
        let event = match program.prog_type {
            ProgType::Syscall => Event::bytes(Vec::new()),
            _ => Event::packet(vec![0; 64]),
        };
        let initial = program.maps.iter().flat_map(|map| map.initial.iter());
        let held: BTreeSet<&str> = initial
            .filter_map(|entry| match entry {
                Initial::Program { name, .. } => Some(name.as_str()),
                _ => None,
            })
            .collect();
        let is_other = |it: &&Arc<Program>| !Arc::ptr_eq(it, program);
        let others = programs.iter().filter(is_other);
        let others = others.filter(|it| held.contains(it.name.as_str()));
        Subject::new(program.clone(), event).with_others(others.cloned().collect())
    };
    programs.iter().map(subject).collect()
}

/// Run-time limits are the kernel's: each program of these objects asks for too much and
/// for just enough, and stores the results.
#[test]
fn limits_are_those_of_the_kernel() {
    if here::kernel().is_none() {
        return;
    }
    let mut tally = Tally::new("limits");
    let (mut engines, mut wrong, mut judged) = (fast(), Vec::new(), 0);
    for object in [
        "tail_calls_back",
        "tail_calls_thrown",
        "exceptions",
        "exceptions_deep",
        "arena_accesses",
        "arena_edges",
        "arena_faults",
        "limits",
        "limits_of_maps",
    ] {
        for subject in subjects(&format!("{object}.bpf.o")) {
            let name = format!("{object}: {}", subject.program.name);
            tally.made += 1;
            tally.allow_unverified(&subject.program, &subject.others);
            let is_fast = |program: &Arc<Program>| {
                let options = verifier::Options::default();
                verify(program, &options).verdict.is_accepted()
            };
            let fast = match subject.programs().all(is_fast) {
                true => &mut engines[..],
                false => &mut [],
            };
            judged += u64::from(!fast.is_empty());
            let result = tally.agree(&subject, fast);
            let result = result.and_then(|_| as_in_the_kernel(&mut tally, &subject));
            wrong.extend(result.err().map(|why| format!("{name}: {why}")));
        }
    }
    tally.tell();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tally.faults == 0 && tally.made >= 60, "{tally:?}");
    assert!(judged >= 60, "{judged} ran on all engines");
}

/// `BPF_F_TEST_RND_HI32` lets a kernel put random bits into the upper half of the result of
/// a 32-bit instruction, if the verifier saw no read of it: here `w3`, since the path that
/// reads it is pruned. So programs are compared without the flag.
#[test]
fn random_upper_halves_are_no_difference() {
    if here::kernel().is_none() {
        return;
    }
    let text = "
        r2 = *(u32 *)(r1 + 16)
        w3 = 8
        if r2 < 1 goto random
        r3 = 2
        random: r0 = 64
        r0 += r3
        r1 = r0
        r1 >>= 32
        r0 += r1
        exit";
    let mut program = Program::new("random", ProgType::Xdp, assemble(text).unwrap());
    // Checkpoints are frequent enough for such a short program.
    program.flags = ProgFlags::TEST_RND_HI32 | ProgFlags::TEST_STATE_FREQ;
    program.license = "GPL".into();
    let with_flag = |program: &Program| {
        let maps = LoadedMaps::create(&[], None).unwrap();
        let loaded = load(program, &maps, &LoadOptions::default()).unwrap();
        let run = TestRun::packet(&[0; 64]);
        loaded.program.unwrap().test_run(&run).unwrap().retval
    };
    let random: BTreeSet<u32> = (0..8).map(|_| with_flag(&program)).collect();
    let subject = Subject::new(Arc::new(program), Event::packet(vec![0; 64]));
    let mut tally = Tally::new("random upper halves");
    for _ in 0..8 {
        let checked = tally.agree(&subject, &mut fast()).unwrap();
        assert_eq!(checked.retval, Some(72));
        as_in_the_kernel(&mut tally, &subject).unwrap();
    }
    // The flag matters, or this tests nothing.
    assert!(random.len() > 1, "{random:?}");
}

/// Full maps, replaced elements, values of another CPU, records that are submitted or discarded:
/// return values, contents and records are the kernel's.
#[test]
fn small_maps_are_as_in_the_kernel() {
    if here::kernel().is_none() {
        return;
    }
    let options = CampaignOptions {
        seed: 1,
        first: 0,
        threads: 1,
        time: None,
        programs: Some(300),
        findings: 10,
        oracles: Oracle::VALUE,
        strategies: vec![Strategy::Maps],
        kernel: true,
        other_build: None,
        reduces: true,
    };
    let seeds = Seeds::default();
    let summary = Campaign::new(options, &seeds).run(|_| ()).unwrap();
    let findings = summary.findings.iter();
    let told: Vec<_> = findings
        .map(|finding| format!("{:?}\n{}", finding.problem, finding.candidate.listing()))
        .collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    assert!(summary.counts.kernel_runs >= 290, "{:?}", summary.counts);
}

/// A record that is discarded is not among the records of a run, neither here nor in the kernel.
#[test]
fn records_are_as_in_the_kernel() {
    if here::kernel().is_none() {
        return;
    }
    let mut program = Program::new("records", ProgType::Xdp, Vec::new());
    program.license = "GPL".into();
    program.maps = [MapDef::new("ring", MapType::Ringbuf, 0, 0, 4096)].into();
    let once = |value: u8, end: &str| {
        format!(
            "r1 = map[idx:0]\nr2 = 8\nr3 = 0\ncall bpf_ringbuf_reserve\nif r0 == 0 goto +4\n\
             *(u64 *)(r0 + 0) = {value}\nr1 = r0\nr2 = 0\ncall bpf_ringbuf_{end}\n"
        )
    };
    let text = once(1, "submit") + &once(2, "discard") + &once(3, "submit") + "r0 = 2\nexit";
    program.insns = assemble_with(&text, &program).unwrap().slots;
    let subject = Subject::new(Arc::new(program), Event::packet([0; 64]));
    let record = |value: u8| vec![value, 0, 0, 0, 0, 0, 0, 0];
    let ours = Ours::new(EngineKind::Checked).run(&subject).unwrap();
    let kernels = Kernel.run(&subject).unwrap();
    assert_eq!(ours.records, [[record(1), record(3)]]);
    assert_eq!(kernels.records, ours.records);
    let mut lost = kernels.clone();
    lost.records[0].pop();
    assert_eq!(difference(&ours, &lost).unwrap().what, "ring buffers");
}
