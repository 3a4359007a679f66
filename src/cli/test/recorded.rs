//! Tests with a recording in place of events.

use std::path::Path;

use super::run::{self, Ran};
use super::suite::{Suite, Test};
use crate::cli::exit::Failure;
use crate::cli::map_values;
use crate::compare::replay::{Replay, Word};
use crate::harness::EngineKind;
use crate::report::ReplayView;

/// Replays a recording with the object of the suite on an engine. The test passes if everything
/// is equal; after bare events, if maps and globals are as expected.
pub(super) fn run(
    suite: &Suite,
    test: &Test,
    recording: &Path,
    engine: EngineKind,
) -> Result<Ran, Failure> {
    let setup = suite.setup.with(&test.setup);
    let options = run::options(&setup)?;
    let mut object = options.setup.kernel.open(&suite.object)?;
    for (name, value) in &setup.globals {
        map_values::set_global_json(&mut object, name, value.clone())?;
    }
    let path = suite.folder.join(recording);
    let file = path.display().to_string();
    let in_file = |error| Failure::of_replay(&file, error);
    let replay = Replay::new(&object, path.as_path()).map_err(in_file)?;
    let expect = &test.expect;
    if replay.is_bare() {
        if expect.is_empty() || expect.needs_runs() {
            return Err(Failure::bad(format!(
                "{file}: a recording of events without programs: expect: has to have maps or \
                 globals, and nothing else"
            )));
        }
        let bare = replay.run_bare(&object, engine).map_err(in_file)?;
        let stood_in = bare
            .report
            .programs
            .iter()
            .find_map(|one| one.stood_in(engine));
        if let Some(other) = stood_in {
            return Ok(Ran::skipped(&format!("it runs on {other}")));
        }
        let differences = run::left(suite, test, &options.setup, bare.vm)?;
        return Ok(Ran {
            differences,
            ..Ran::default()
        });
    }
    if !expect.is_empty() {
        return Err(Failure::bad(format!(
            "{file}: a recording of programs, which says what is expected: leave out expect:"
        )));
    }
    let report = replay.run(engine).map_err(in_file)?;
    let stood_in = report.programs.iter().find_map(|one| one.stood_in(engine));
    let is_gap = matches!(report.word(), Word::NothingCompared | Word::PartlyCompared);
    if let Some(other) = stood_in.filter(|_| is_gap) {
        return Ok(Ran::skipped(&format!("it runs on {other}")));
    }
    if report.is_fine() {
        return Ok(Ran::default());
    }
    let view = ReplayView {
        recording: &file,
        object: object.file(),
        report: &report,
        elapsed: None,
    };
    Ok(Ran::failed(view.to_string().trim_end().to_owned()))
}
