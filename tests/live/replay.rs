//! Recordings made in user space, replayed on every engine.

mod answers;
mod bare;
mod changes;
mod examples;
mod full_ring;
mod kinds;
mod made_up;
mod order;
mod other_object;
mod relay;
mod schema;
mod unjudged;
mod user_recording;

use bpflab::compare::replay::{ProgramReport, Replay, Report, Word};
use bpflab::harness::EngineKind;
use bpflab::program::Program;
use bpflab::spec::MapType;

use user_recording::UserRecording;

const ENGINES: [EngineKind; 3] = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit];

/// The report on a recording on one engine.
fn replayed_on(recording: &UserRecording, engine: EngineKind) -> Report {
    let replay =
        Replay::of_programs(&recording.programs, &recording.maps, recording.file()).unwrap();
    replay.run(engine).unwrap()
}

/// The report on a recording, which must be the same on each engine and each time.
fn replayed(recording: &UserRecording) -> Report {
    let replay =
        Replay::of_programs(&recording.programs, &recording.maps, recording.file()).unwrap();
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
/// `BPF_PSEUDO_MAP_IDX_VALUE`); all numbers if one is a map of maps.
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

/// Asserts that nothing differs, and that exactly the parts that can't be compared are named as
/// not compared: programs that did not run, maps that only they use, and maps that can't be read.
#[track_caller]
fn is_equal_as_far_as_it_can_be(recording: &UserRecording, report: &Report) {
    let ran = |program: &ProgramReport| program.firings + program.led_to > 0;
    let programs = report.programs.iter().filter(|program| !ran(program));
    let programs = programs.map(|program| ("program", program.name.clone()));
    let mut expected: Vec<_> = programs.collect();
    for (number, def) in recording.maps.iter().enumerate() {
        let is_output = matches!(def.map_type, MapType::Ringbuf | MapType::PerfEventArray);
        let users = recording.programs.iter().zip(&report.programs);
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
/// `cargo test --release --test live replay::speed -- --ignored --nocapture`.
#[test]
#[ignore = "takes its time"]
fn speed() {
    for file in ["write_hist", "runqlat", "execsnoop"] {
        let recording = examples::user_recording(file, 400_000, 1);
        let replay =
            Replay::of_programs(&recording.programs, &recording.maps, recording.file()).unwrap();
        for engine in ENGINES {
            let start = std::time::Instant::now();
            let report = replay.run(engine).unwrap();
            let ns = start.elapsed().as_secs_f64() * 1e9 / report.firings() as f64;
            assert_eq!(report.word(), Word::Equal, "{file} on {engine}");
            eprintln!("{file} on {engine}: {ns:.1} ns a firing");
        }
    }
}
