//! Recordings made in user space, replayed on every engine.

#[path = "replay/changes.rs"]
mod changes;
#[path = "replay/examples.rs"]
mod examples;
#[path = "replay/made_up.rs"]
mod made_up;
#[path = "replay/taped.rs"]
mod taped;

use bpflab::compare::replay::{Replay, Report};
use bpflab::harness::EngineKind;

use taped::Taped;

const ENGINES: [EngineKind; 3] = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit];

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
