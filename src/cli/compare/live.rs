//! `bpflab compare OBJ -- COMMAND`: records and replays in one go.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::Arguments;
use crate::cli::exit::{Exit, Failure};
use crate::cli::files::write_text;
use crate::cli::live::record_to;
use crate::cli::printer::Printer;
use crate::compare::live::{Live, LiveOptions, Summary};
use crate::compare::replay::{RecordingSource, Replay};
use crate::object::Object;
use crate::report::CompareReport;

pub(super) fn run(
    path: &Path,
    arguments: &Arguments,
    printer: &mut Printer,
) -> Result<Exit, Failure> {
    let options = arguments.live.options(&arguments.programs)?;
    let object = arguments.live.open(path, &arguments.kernel)?;
    let command = arguments.live.command(printer.is_json());
    let (summary, source) = record(&object, &options, command, arguments.output.as_deref())?;
    let output = arguments.output.as_deref();
    let recording = output.map_or_else(|| "memory".into(), |path| path.display().to_string());
    let failed = |error| Failure::of_replay(&recording, error);
    let replay = Replay::new(&object, source).map_err(failed)?;
    let mut replays = Vec::new();
    for engine in arguments.engines() {
        printer.working(format_args!("replaying on {engine}"));
        let start = Instant::now();
        let report = replay.run(engine).map_err(failed)?;
        replays.push((report, start.elapsed()));
    }
    let report = CompareReport::new(object.file(), &recording, summary, replays);
    if printer.is_json() {
        for row in report.json() {
            printer.row(&row)?;
        }
    } else {
        printer.text(&report)?;
    }
    if let Some(to) = &arguments.html {
        write_text(to, &report.page())?;
    }
    Ok(if report.is_fine() {
        Exit::Fine
    } else {
        Exit::No
    })
}

/// Records into memory, or into a file if one is named.
fn record(
    object: &Object,
    options: &LiveOptions,
    mut command: Option<Command>,
    output: Option<&Path>,
) -> Result<(Summary, RecordingSource), Failure> {
    let mut live = Live::start(object, options)?;
    let mut record = |sink: &mut (dyn Write + Send)| match &mut command {
        Some(command) => live.run(command, sink),
        None => live.watch(sink),
    };
    let Some(path) = output else {
        let mut bytes = Vec::new();
        return Ok((record(&mut bytes)?, bytes.into()));
    };
    let summary = record_to(path, |mut file| record(&mut file))?;
    Ok((summary, path.to_owned().into()))
}
