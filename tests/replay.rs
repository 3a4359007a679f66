//! Recordings made in user space, replayed on every engine.

#[path = "replay/answers.rs"]
mod answers;
#[path = "replay/bare.rs"]
mod bare;
#[path = "replay/changes.rs"]
mod changes;
#[path = "replay/examples.rs"]
mod examples;
#[path = "replay/full_ring.rs"]
mod full_ring;
#[path = "replay/kinds.rs"]
mod kinds;
#[path = "replay/made_up.rs"]
mod made_up;
#[path = "replay/order.rs"]
mod order;
#[path = "replay/other_object.rs"]
mod other_object;
#[path = "replay/relay.rs"]
mod relay;
#[path = "replay/taped.rs"]
mod taped;
#[path = "replay/unjudged.rs"]
mod unjudged;

use bpflab::compare::replay::{ProgramReport, Replay, Report, Word};
use bpflab::harness::EngineKind;
use bpflab::program::Program;
use bpflab::spec::MapType;

use taped::Taped;

const ENGINES: [EngineKind; 3] = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit];

/// What is said of a recording on one engine.
fn replayed_on(taped: &Taped, engine: EngineKind) -> Report {
    let replay = Replay::of_programs(&taped.programs, &taped.maps, taped.file()).unwrap();
    replay.run(engine).unwrap()
}

/// What is said of a recording, which has to be the same on each engine, and each time.
fn replayed(taped: &Taped) -> Report {
    let replay = Replay::of_programs(&taped.programs, &taped.maps, taped.file()).unwrap();
    let mut reports = ENGINES.map(|engine| {
        let mut report = replay.run(engine).unwrap();
        assert_eq!(report, replay.run(engine).unwrap(), "the same each time");
        report.engine = EngineKind::Checked;
        for program in &mut report.programs {
            assert_eq!(program.engine, Some(engine), "{}", program.name);
            program.engine = None;
        }
        report
    });
    assert_eq!(reports[0], reports[1], "interp");
    assert_eq!(reports[0], reports[2], "jit");
    reports[0].engine = EngineKind::Jit;
    let [report, ..] = reports;
    report
}

/// The map types that a replay can't compare with a kernel's, as far as recorded programs can
/// use them.
const UNREADABLE: [MapType; 4] = [
    MapType::StackTrace,
    MapType::BloomFilter,
    MapType::ArrayOfMaps,
    MapType::HashOfMaps,
];

/// The numbers of the maps that a program's instructions name (`BPF_PSEUDO_MAP_IDX`,
/// `BPF_PSEUDO_MAP_IDX_VALUE`); all of them where one holds others.
fn maps_used(program: &Program) -> Vec<usize> {
    let loads = program.insns.iter().filter(|insn| {
        let bytes = insn.to_bytes();
        bytes[0] == 0x18 && matches!(bytes[1] >> 4, 5 | 6)
    });
    let named: Vec<_> = loads
        .map(|insn| insn.imm.cast_unsigned() as usize)
        .collect();
    let holds = |number: &usize| program.maps[*number].map_type.holds_maps();
    match named.iter().any(holds) {
        true => (0..program.maps.len()).collect(),
        false => named,
    }
}

/// Asserts that nothing differs, that the verdict names what was not compared, and that this
/// is what could not be: programs that did not run, maps that only they use, and those of
/// which nobody can read the contents.
#[track_caller]
fn is_equal_as_far_as_it_can_be(taped: &Taped, report: &Report) {
    let ran = |program: &ProgramReport| program.firings + program.led_to > 0;
    let programs = report.programs.iter().filter(|program| !ran(program));
    let programs = programs.map(|program| ("program", program.name.clone()));
    let mut expected: Vec<_> = programs.collect();
    for (number, def) in taped.maps.iter().enumerate() {
        let is_output = matches!(def.map_type, MapType::Ringbuf | MapType::PerfEventArray);
        let users = taped.programs.iter().zip(&report.programs);
        let mut users = users
            .filter(|(program, _)| maps_used(program).contains(&number))
            .peekable();
        let is_used = users.peek().is_some();
        let is_idle = !users.any(|(_, report)| ran(report));
        if !def.frozen && !is_output && is_used && (is_idle || UNREADABLE.contains(&def.map_type)) {
            expected.push(("map", def.name.clone()));
        }
    }
    let gaps = report.gaps();
    let named: Vec<_> = gaps
        .iter()
        .map(|gap| (gap.kind, gap.name.clone()))
        .collect();
    assert_eq!(named, expected, "{report:#?}");
    assert!(gaps.iter().all(|gap| !gap.why.is_empty()), "{gaps:?}");
    let word = match gaps.is_empty() {
        true => Word::Equal,
        false => Word::PartlyCompared,
    };
    assert_eq!(report.word(), word, "{report:#?}");
}

/// How long a firing takes on each engine, reading included:
/// `cargo test --release --test replay speed -- --ignored --nocapture`.
#[test]
#[ignore = "takes its time"]
fn speed() {
    for file in ["write_hist", "runqlat", "execsnoop"] {
        let taped = examples::taped(file, 400_000, 1);
        let replay = Replay::of_programs(&taped.programs, &taped.maps, taped.file()).unwrap();
        for engine in ENGINES {
            let start = std::time::Instant::now();
            let report = replay.run(engine).unwrap();
            let ns = start.elapsed().as_secs_f64() * 1e9 / report.firings() as f64;
            assert_eq!(report.word(), Word::Equal, "{file} on {engine}");
            eprintln!("{file} on {engine}: {ns:.1} ns a firing");
        }
    }
}
