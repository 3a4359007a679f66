//! Recordings made in user space, replayed on every engine.

#[path = "replay/bare.rs"]
mod bare;
#[path = "replay/changes.rs"]
mod changes;
#[path = "replay/examples.rs"]
mod examples;
#[path = "replay/full_ring.rs"]
mod full_ring;
#[path = "replay/made_up.rs"]
mod made_up;
#[path = "replay/order.rs"]
mod order;
#[path = "replay/relay.rs"]
mod relay;
#[path = "replay/taped.rs"]
mod taped;
#[path = "replay/unjudged.rs"]
mod unjudged;

use bpflab::compare::replay::{Replay, Report, Word};
use bpflab::harness::EngineKind;

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
