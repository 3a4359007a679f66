//! Campaigns and fuzz targets (`bpflab::fuzz`).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::shared::law;
use bpflab::Object;
use bpflab::btf::{Btf, Kind};
use bpflab::compare::{Engine, Ours, Subject};
use bpflab::fuzz::targets::TARGETS;
use bpflab::fuzz::{
    Campaign, CampaignOptions, Candidate, Counts, Finding, FuzzCase, Judge, Oracle, Problem, Seeds,
    Strategy, Summary, write_case,
};
use bpflab::r#gen::KernelTypes;
use bpflab::harness::EngineKind;
use bpflab::isa::{RawInsn, assemble, assemble_with};
use bpflab::object::Target;
use bpflab::object::cases::Cases;
use bpflab::program::{Initial, MapDef, Program};
use bpflab::spec::{MapType, ProgFlags, ProgType};
use bpflab::verifier::{Options, verify};

/// The strategies that need no kernel.
fn strategies() -> Vec<Strategy> {
    let all = Strategy::ALL.iter().map(|(strategy, ..)| *strategy);
    all.filter(|strategy| !strategy.needs_kernel_types())
        .collect()
}

/// A campaign of one thread without a kernel, which can be repeated.
fn options(programs: u64, oracles: Oracle) -> CampaignOptions {
    CampaignOptions {
        seed: 1,
        first: 0,
        threads: 1,
        time: None,
        programs: Some(programs),
        findings: 100,
        oracles,
        strategies: Vec::new(),
        kernel: false,
        other_build: None,
        reduces: true,
    }
}

fn campaign(programs: u64, oracles: Oracle, strategies: Vec<Strategy>) -> Summary {
    let options = CampaignOptions {
        strategies,
        ..options(programs, oracles)
    };
    let seeds = Seeds::default();
    Campaign::new(options, &seeds).run(|_| ()).unwrap()
}

/// The types of the kernel of the shared corpus; none without the corpus.
fn kernel_types() -> Option<Btf> {
    let path = crate::shared::corpus()?;
    let kernel = Target::file(path.with_file_name("vmlinux-6.18.44.btf.xz"));
    let Ok(Target::Kernel(btf)) = kernel else {
        panic!("no types of a kernel");
    };
    Some(btf)
}

/// What programs on that kernel are made from.
fn kernel_seeds() -> Option<Seeds> {
    let btf = kernel_types()?;
    Some(Seeds::new(Some(KernelTypes::new(&btf)), Vec::new()))
}

fn assert_nothing_found(summary: &Summary) {
    let findings = summary.findings.iter();
    let told: Vec<_> = findings
        .map(|finding| format!("{:?}\n{}", finding.problem, finding.candidate.listing()))
        .collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
}

/// Nothing is found, most programs are accepted, and a campaign can be repeated.
#[test]
fn campaigns_are_reproducible() {
    let oracles = Oracle::OF_VERIFIER - Oracle::VERDICT;
    let first = campaign(400, oracles, strategies());
    for finding in &first.findings {
        eprintln!("{:?}\n{}", finding.problem, finding.candidate.listing());
    }
    assert!(first.findings.is_empty());
    let counts = &first.counts;
    assert_eq!(counts.programs, 400);
    assert!(counts.accepted >= 240, "{counts:?}");
    assert!(counts.held > 1000 && counts.engine_runs > 100, "{counts:?}");
    assert_eq!(first.counts, campaign(400, oracles, strategies()).counts);
}

/// The padding of a record that a program submits is uninitialised; a zeroed record is not.
#[test]
fn uninitialised_bytes_are_a_problem_of_the_program() {
    let mut judge = Judge::new(Oracle::MEMORY, false);
    let mut judged = |file: &str, name: &str| {
        let object = Object::open(file).unwrap();
        let program = object
            .programs()
            .map(Result::unwrap)
            .find(|program| program.name == name);
        let problem = judge.judge(&Candidate::of_file(Arc::new(program.unwrap()), 1));
        problem.map(|problem| problem.other)
    };
    let text = judged("tests/objects/uninit.bpf.o", "record_padding").unwrap();
    assert!(text.contains("padding after field `comm_len`"), "{text}");
    assert_eq!(judged("tests/objects/uninit.bpf.o", "record_clean"), None);
}

/// Each strategy makes programs that are accepted.
#[test]
fn every_strategy_is_accepted_at_times() {
    for strategy in strategies() {
        let counts = campaign(60, Oracle::empty(), vec![strategy]).counts;
        assert!(counts.accepted >= 6, "{strategy:?}: {counts:?}");
    }
}

/// The strategies on lists, trees, locks, arenas and structures of operations: most programs are
/// accepted, some are not, and nothing is found.
#[test]
fn strategies_on_the_kernels_functions_find_nothing() {
    let Some(seeds) = kernel_seeds() else { return };
    let programs = law::part(250).into();
    for strategy in [Strategy::Graphs, Strategy::Arenas, Strategy::StructOps] {
        let options = CampaignOptions {
            strategies: vec![strategy],
            ..options(programs, Oracle::OF_VERIFIER - Oracle::VERDICT)
        };
        let summary = Campaign::new(options, &seeds).run(|_| ()).unwrap();
        assert_nothing_found(&summary);
        let counts = &summary.counts;
        assert!(
            (programs * 13 / 25..programs).contains(&counts.accepted),
            "{counts:?}"
        );
        assert!(
            counts.held > 20 * programs && counts.engine_runs > programs * 6 / 5,
            "{counts:?}"
        );
    }
}

/// Programs that get objects as arguments have several attach points.
#[test]
fn objects_are_arguments_of_several_program_types() {
    let Some(seeds) = kernel_seeds() else { return };
    let made = |strategy| (0..300).map(move |number| (strategy, number));
    let all = made(Strategy::Objects).chain(made(Strategy::StructOps));
    let mut accepted = BTreeSet::new();
    for (strategy, number) in all {
        let program = seeds.candidate(1, number, &[strategy]).program;
        let is_accepted = || verify(&program, &Options::default()).verdict.is_accepted();
        let point = (program.prog_type, program.attach_target.clone());
        if !accepted.contains(&point) && is_accepted() {
            accepted.insert(point);
        }
    }
    let count = |prog_type| accepted.iter().filter(|point| point.0 == prog_type).count();
    assert_eq!(count(ProgType::Netfilter), 1);
    assert!(count(ProgType::Tracing) >= 8, "{accepted:?}");
    assert!(count(ProgType::StructOps) >= 10, "{accepted:?}");
}

/// Targets are accepted, and their extensions run in the place of functions.
#[test]
fn extensions_replace_functions() {
    let oracles = Oracle::OF_VERIFIER - Oracle::VERDICT;
    let summary = campaign(250, oracles, vec![Strategy::Extensions]);
    assert_nothing_found(&summary);
    let counts = &summary.counts;
    assert!((125..250).contains(&counts.accepted), "{counts:?}");
    assert!(counts.held > 5000 && counts.engine_runs > 300, "{counts:?}");
    let reached = |rule: &str| counts.rules.iter().any(|it| it.contains(rule));
    for rule in [
        "is not a global function",
        "relies on more than callers of",
        "changes packet data, while original does not",
        "can be sleepable",
    ] {
        assert!(reached(rule), "{rule}: {:?}", counts.rules);
    }

    let seeds = Seeds::default();
    let (mut extensions, mut others) = (0, 0);
    for number in 0..100 {
        let candidate = seeds.candidate(1, number, &[Strategy::Extensions]);
        let accepts = |program| verify(program, &Options::default()).verdict.is_accepted();
        let entry = candidate.entry();
        assert!(accepts(entry), "{number}: {}", candidate.listing());
        if candidate.target().is_none() || !accepts(&candidate.program) {
            continue;
        }
        let subject = candidate.subject();
        let ran = |subject: &Subject| {
            let answer = Ours::new(EngineKind::Checked).run(subject).unwrap();
            let outcome = answer.details.unwrap().outcome;
            (
                outcome.runs.iter().map(|run| run.insns).collect::<Vec<_>>(),
                answer.maps,
            )
        };
        extensions += 1;
        others += u32::from(ran(&subject) != ran(&subject.clone().with_extensions(Vec::new())));
    }
    assert!(
        extensions > 50 && others * 10 > extensions * 8,
        "{others} of {extensions}"
    );
}

/// What is written as a case is the same candidate when it is read.
#[test]
fn findings_are_cases() {
    let directory = std::env::temp_dir().join(format!("bpflab-findings-{}", std::process::id()));
    let seeds = Seeds::default();
    for (number, strategy) in (0..).zip(strategies()) {
        let candidate = seeds.candidate(5, number, &[strategy]);
        let finding = Finding {
            problem: Problem {
                oracle: Oracle::STATE,
                kind: "no real one".to_owned(),
                ours: "one".to_owned(),
                other: "another".to_owned(),
            },
            seed: 5,
            options: String::new(),
            insns_before: candidate.program.insns.len(),
            programs: 1,
            elapsed: Duration::ZERO,
            candidate,
        };
        let file = write_case(&directory, &finding).unwrap();
        let mut cases = Cases::open(&file).unwrap();
        let case = cases.next().unwrap().unwrap();
        let program = cases.program(&case).unwrap();
        let read_again = FuzzCase::candidate(&case, program, None).unwrap();
        let plain = |candidate: &Candidate| {
            let programs = candidate.programs();
            let programs: Vec<_> = programs
                .map(|program| (program.name.clone(), program.insns.clone()))
                .collect();
            let initial = candidate.program.maps.iter().map(|map| map.initial.len());
            let initial: Vec<_> = initial.collect();
            let input = candidate.input.clone();
            (programs, initial, input, candidate.seed, candidate.defined)
        };
        let (read, written) = (plain(&read_again), plain(&finding.candidate));
        assert_eq!((&read.0, &read.2), (&written.0, &written.2), "{strategy:?}");
        assert_eq!((read.3, read.4), (written.3, written.4), "{strategy:?}");
        assert_eq!(read.1, written.1, "{strategy:?}");
        assert_eq!(FuzzCase::of(&case).unwrap().oracle, "state");
        let function = |candidate: &Candidate| {
            let target = candidate.target()?;
            let btf = target.program.btf.as_ref()?;
            let name = btf.get(candidate.program.attach_btf_id?)?.name();
            Some((name.to_owned(), target.functions.clone()))
        };
        let other = seeds.candidate(5, number, &[strategy]);
        assert_eq!(function(&read_again), function(&other), "{strategy:?}");
        let is_extension = other.program.prog_type == ProgType::Ext;
        assert_eq!(is_extension, function(&other).is_some(), "{strategy:?}");
    }
    std::fs::remove_dir_all(directory).unwrap();
}

/// Linux 6.18 takes a number and its sign-extended fill for equal; bpflab does not.
#[test]
fn a_problem_of_linux_is_known() {
    let text = "r6 = r1\nr8 = *(u32 *)(r6 +8)\n*(u64 *)(r10 -8) = r8\nr1 = *(s32 *)(r10 -8)\n\
                r0 = 0\nif r1 != -1 goto +3\nr8 += 1\nr8 >>= 32\nr0 = r8\nexit";
    let mut program = Program::new("fill", ProgType::Syscall, assemble(text).unwrap());
    program.flags = ProgFlags::SLEEPABLE;
    // One program in 16 is compared with the kernel's log.
    let candidate = Candidate::new(Arc::new(program), vec![0xff; 64], 16);
    let judged = |oracles, kernel| {
        let mut judge = Judge::new(oracles, kernel);
        assert_eq!(judge.judge(&candidate), None);
        judge.counts
    };
    let counts = judged(Oracle::STATE, false);
    assert_eq!((counts.accepted, counts.known), (1, 0));
    assert!(counts.held > 0);
    let counts = judged(Oracle::VALUE | Oracle::SAFETY, false);
    assert_eq!((counts.known, counts.engine_runs), (0, 4));
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    if crate::shared::here::judge().is_some() {
        assert_eq!(judged(Oracle::STATE, true).known, 1);
    }
}

/// What a judge without a kernel counts of a program that is judged once for each of these inputs and
/// seeds. It has no problem with it that is not known.
#[track_caller]
fn judged(program: Program, oracles: Oracle, runs: impl Iterator<Item = (u8, u64)>) -> Counts {
    let program = Arc::new(program);
    let mut judge = Judge::new(oracles, false);
    for (byte, seed) in runs {
        let candidate = Candidate::new(program.clone(), vec![byte; 64], seed);
        assert_eq!(judge.judge(&candidate), None);
    }
    judge.counts
}

/// A program with these maps.
fn with_maps(name: &str, prog_type: ProgType, maps: &[MapDef], text: &str) -> Program {
    let mut program = Program::new(name, prog_type, Vec::new());
    program.maps = maps.into();
    program.insns = assemble_with(text, &program).unwrap().slots;
    program
}

/// Half of a spilled pointer is loaded, or the pointer is multiplied: whether that is rejected depends
/// on the path that is explored first (`tests/verifier/findings.rs` has the kernel's verdicts). Which
/// change the oracle makes depends on the seed. Without pruning, the accepted program is rejected
/// each time.
#[test]
fn an_order_that_decides_a_verdict_is_known() {
    for load in ["r1 = *(u32 *)(r9 +0)", "r1 = *(u64 *)(r9 +0)\nr1 *= 31"] {
        for (branch, accepted) in [("== 0 goto +1", 0), ("!= 0 goto +1\ngoto +1", 64)] {
            let text = format!(
                "*(u64 *)(r10 -72) = 0\nr9 = r10\nr9 += -64\nif r9 {branch}\n*(u64 *)(r9 +0) = r9\n\
                 {load}\nr0 = 0\nexit"
            );
            let mut program = with_maps("order", ProgType::SchedCls, &[], &text);
            program.flags = ProgFlags::TEST_STATE_FREQ;
            let counts = judged(program, Oracle::SAMENESS, (0..64).map(|seed| (0, seed)));
            assert_eq!(counts.accepted, accepted);
            assert!(counts.known > accepted, "{load}, {branch}");
        }
    }
}

/// An odd number from 8 to 8 is taken for 9, which is too far. The path to it is pruned, or not.
#[test]
fn an_error_on_a_path_that_no_run_takes_is_known() {
    let text = "r5 = *(u16 *)(r1 +32)\n*(u64 *)(r10 -8) = 0\n*(u64 *)(r10 -16) = 0\n\
                r3 = *(u8 *)(r1 +0)\nif r3 != 0 goto odd\n\
                join:\nif r5 > 7 goto +0\nif r5 s> 8 goto out\nr2 = r10\nr2 += -16\nr2 += r5\n\
                r0 = *(u8 *)(r2 +7)\nout:\nr0 = 0\nexit\nodd:\nr5 |= 1\ngoto join";
    let mut program = with_maps("odd", ProgType::Syscall, &[], text);
    program.flags = ProgFlags::SLEEPABLE | ProgFlags::TEST_STATE_FREQ;
    let oracles = Oracle::SAMENESS | Oracle::SAFETY;
    let counts = judged(program, oracles, (0..8).map(|seed| (0, seed)));
    assert_eq!(counts.accepted, 8);
    assert!(counts.known >= 8, "without pruning each time");
    assert!(counts.runs >= 8, "the other oracle is asked");
}

/// The inner loop makes r8 unknown where no path has needed its value before, which pruning decides.
#[test]
fn an_error_behind_a_loop_that_made_a_scalar_unknown_is_known() {
    let text = "r0 = 0\nr7 = 0\nouter:\nr8 = 0\ninner:\nmay_goto after\nr1 = map[idx:0]\nr2 = 0\n\
                r3 = 0\nr4 = r10\nr4 += -112\ncall 198\nr1 = r10\nr1 += -112\nr2 = 0\ncall 199\n\
                r8 += 1\nif r8 < 3 goto inner\nafter:\nr7 += 1\nif r7 != 4 goto outer\n\
                if w8 s>= -5 goto out\nr0 = *(u8 *)(r10 +0)\nout:\nr0 = 0\nexit";
    let ring = MapDef::new("ring", MapType::Ringbuf, 0, 0, 4096);
    let program = with_maps("loops", ProgType::SchedCls, &[ring], text);
    let counts = judged(program, Oracle::SAMENESS, [(0, 0)].into_iter());
    assert_eq!((counts.accepted, counts.known), (1, 1));
}

/// A pointer to a map's value may get any offset, if no access follows: the address of other memory.
#[test]
fn a_pointer_may_lead_anywhere() {
    let text = "r1 = *(u64 *)(r1 +40)\nr1 &= 31\nr1 = bswap64 r1\nr2 = map[idx:0][0]+0\nr1 += r2\n\
                r0 = 0\nexit";
    let values = MapDef::new("values", MapType::Array, 4, 64, 1);
    let mut program = with_maps("far", ProgType::Syscall, &[values], text);
    program.flags = ProgFlags::SLEEPABLE;
    let counts = judged(program, Oracle::STATE, (0..32).map(|byte| (byte, 0)));
    assert_eq!((counts.accepted, counts.known), (32, 0));
}

/// A tail call leads to a program that is rejected, for a load which faults: no problem of the accepted
/// one.
#[test]
fn a_rejected_program_behind_a_tail_call_may_fault() {
    let mut jumps = MapDef::new("jumps", MapType::ProgArray, 4, 4, 1);
    let name = "faults".to_owned();
    jumps.initial.push(Initial::Program { index: 0, name });
    let calls = "r2 = map[idx:0]\nr3 = 0\ncall 12\nr0 = 0\nexit";
    let of = |name, text| {
        Arc::new(with_maps(
            name,
            ProgType::SocketFilter,
            &[jumps.clone()],
            text,
        ))
    };
    let mut candidate = Candidate::new(of("calls", calls), vec![0; 64], 0);
    candidate.others = vec![of("faults", "r1 = 1\nr0 = *(u64 *)(r1 +0)\nexit")];
    let mut judge = Judge::new(Oracle::SAFETY, false);
    assert_eq!(judge.judge(&candidate), None);
    assert_eq!(
        (judge.counts.accepted, judge.counts.runs),
        (1, 1),
        "the run faults"
    );
}

/// The verifier takes the node of each file of a cgroup for not null. The root has no `cgroup.events`.
#[test]
fn a_node_that_is_not_there_is_known() {
    let Some(types) = kernel_types() else { return };
    let id = |name, kind| types.find(name, kind).expect("a type").id();
    let call = |name| RawInsn::new(0x85, 0, 2, 0, id(name, Kind::Func).0.cast_signed());
    for (file, known) in [("procs_file.kn", 0), ("events_file.kn", 1)] {
        let node = types.field(id("cgroup", Kind::Struct), file).unwrap();
        let text = format!(
            "r1 = 1\ncall 1\nif r0 == 0 goto out\nr6 = *(u64 *)(r0 +{})\nr1 = r0\ncall 1\nout:\n\
             r0 = 0\nexit",
            node.bit_offset / 8
        );
        let mut program = with_maps("root", ProgType::SchedCls, &[], &text);
        program.insns[1] = call("bpf_cgroup_from_id");
        program.insns[5] = call("bpf_cgroup_release");
        program.license = "GPL".into();
        program.kernel_btf = Some(types.clone());
        let counts = judged(program, Oracle::STATE, [(0, 0)].into_iter());
        assert_eq!((counts.accepted, counts.known), (1, known), "{file}");
    }
}

/// Each target has a file of three lines, and its body takes any bytes.
#[test]
fn targets_take_any_bytes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let mut state = 1u64;
    for (name, body, _) in TARGETS {
        let file = root.join(format!("fuzz_targets/{name}.rs"));
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(
            text.lines().filter(|line| !line.is_empty()).count(),
            2,
            "{name}"
        );
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        body(&[]);
        for len in [1usize, 8, 64, 200, 200, 200] {
            let bytes: Vec<u8> = (0..len)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    state.to_le_bytes()[7]
                })
                .collect();
            body(&bytes);
        }
    }
}

/// The recordings of the examples read the same when they are written again.
#[test]
fn recordings_are_written_again() {
    let (_, body, _) = TARGETS
        .iter()
        .find(|(name, ..)| *name == "recording")
        .unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/recordings");
    for name in ["sizes.rec", "writes.rec"] {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        assert!(bpflab::compare::recording::Recording::new(&bytes[..]).is_ok());
        body(&bytes);
    }
}

/// Fields that the kernel never checks, and decoding ignores, have no round trip: the offset of
/// `exit`. libFuzzer found it in both targets.
#[test]
fn ignored_fields_are_no_difference() {
    let input = b"\x95\0\x20\0\0\0\0\0) exit\n";
    for wanted in ["decode", "asm_roundtrip"] {
        let (_, body, _) = TARGETS.iter().find(|(name, ..)| *name == wanted).unwrap();
        body(input);
        body(&input[..8]);
    }
}
