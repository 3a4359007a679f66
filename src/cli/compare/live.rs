//! `bpflab compare OBJ -- COMMAND`: recorded and replayed in one go.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::Arguments;
use crate::cli::exit::{Exit, Failure};
use crate::cli::printer::Printer;
use crate::compare::live::{Live, LiveOptions, Summary};
use crate::compare::replay::{Replay, Source};
use crate::kernel::process::Stop;
use crate::object::Object;
use crate::report::CompareReport;

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    if arguments.command.is_empty() && arguments.pid.is_none() && !arguments.all {
        return Err(Failure::bad(
            "what is to happen? Name a command (-- COMMAND…), a process (--pid PID), or \
             everybody (--all)",
        ));
    }
    let path = arguments.object.as_deref().unwrap_or(Path::new(""));
    let mut object = arguments.kernel.open(path)?;
    for (program, target) in &arguments.attach {
        object.entry_mut(program)?.set_attach_target(target);
    }
    let (summary, source) = record(arguments, &object, printer.is_json())?;
    let replay = Replay::new(&object, source)?;
    let mut replays = Vec::new();
    for engine in arguments.engines() {
        let start = Instant::now();
        let report = replay.run(engine)?;
        replays.push((report, start.elapsed()));
    }
    let output = arguments.output.as_deref();
    let recording = output.map_or_else(|| "memory".into(), |path| path.display().to_string());
    let report = CompareReport::new(object.file(), &recording, summary, replays);
    if printer.is_json() {
        for row in report.json() {
            printer.row(&row)?;
        }
    } else {
        printer.text(&report)?;
    }
    Ok(if report.is_fine() {
        Exit::Fine
    } else {
        Exit::No
    })
}

/// Records what happens, into memory unless a file is named.
fn record(
    arguments: &Arguments,
    object: &Object,
    json: bool,
) -> Result<(Summary, Source), Failure> {
    let stop = Stop::on_signals()
        .map_err(|errno| Failure::bad(format!("signals can't be waited for: {errno}")))?;
    let options = LiveOptions {
        programs: arguments.programs.clone(),
        all: arguments.all,
        pid: arguments.pid,
        buffer: arguments.buffer,
        duration: arguments.duration,
        stop: Some(stop),
        frequency: arguments.frequency,
    };
    let mut live = Live::start(object, &options)?;
    let mut command = arguments.command(json);
    let Some(path) = &arguments.output else {
        let mut bytes = Vec::new();
        let summary = match &mut command {
            Some(command) => live.run(command, &mut bytes)?,
            None => live.watch(&mut bytes)?,
        };
        return Ok((summary, bytes.into()));
    };
    let file =
        File::create(path).map_err(|error| Failure::bad(format!("{}: {error}", path.display())))?;
    let summary = match &mut command {
        Some(command) => live.run(command, &file)?,
        None => live.watch(&file)?,
    };
    Ok((summary, path.clone().into()))
}

impl Arguments {
    fn command(&self, json: bool) -> Option<Command> {
        let (program, arguments) = self.command.split_first()?;
        let mut command = Command::new(program);
        command.args(arguments);
        if json {
            // Whoever reads our output wants values only.
            command.stdout(Stdio::from(std::io::stderr()));
        }
        Some(command)
    }
}
