//! `bpflab replay`: runs a recording again in user space.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde_json::json;

use super::exit::{Exit, Failure};
use super::files::write_text;
use super::input::KernelArguments;
use super::printer::Printer;
use super::run::Engine;
use crate::compare::replay::{Bare, RecordingSource, Replay};
use crate::coverage::collector;
use crate::harness::{EngineKind, Vm};
use crate::object::Object;
use crate::report::{HistogramRule, MapContents, ReplayPage, ReplayView};

/// Replay a recording in user space, and compare everything
///
/// Runs each firing of the recording again from its own inputs, without the kernel and without
/// root, and compares return values, writes, outputs and the final contents of maps with those
/// in the kernel.
#[derive(Debug, Args)]
#[command(
    allow_missing_positional = true,
    after_help = "Exit codes: 0 everything was compared and is equal (also if the order of \
    writes to a map is unknown: the verdict says so); 1 a difference, or something is missing or \
    was not compared; 2 not a recording, or one of another object.

Examples:
  bpflab replay writes.rec
  bpflab replay --engine checked --engine jit writes.rec
  bpflab replay writes.rec --html replay.html
  bpflab replay write_hist.bpf.o writes.rec        with an object that was built anew
  bpflab replay --btf vmlinux.btf prog.bpf.o other-machine.rec   its kernel's types"
)]
pub(super) struct Arguments {
    /// Object file that was recorded [default: the one in the recording]
    #[arg(value_name = "OBJ")]
    object: Option<PathBuf>,
    /// Recording
    #[arg(value_name = "FILE")]
    recording: PathBuf,
    #[command(flatten)]
    kernel: KernelArguments,
    /// Run the programs on this engine (repeatable) [default: jit, if this machine has one]
    #[arg(long, value_enum)]
    engine: Vec<Engine>,
    /// Print the time per firing
    #[arg(long)]
    time: bool,
    /// Write a page for a browser, which needs no other files: the verdicts, and the first difference
    /// side by side
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Runs the verb.
pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    let file = arguments.recording.display().to_string();
    let source = RecordingSource::File(arguments.recording.clone());
    let in_file = |error| Failure::of_replay(&file, error);
    let object = match &arguments.object {
        Some(object) => arguments.kernel.open(object)?,
        None => {
            let recorded = source.object().map_err(in_file)?.ok_or_else(|| {
                Failure::bad(format!(
                    "{file}: the recording has no object, as it is of events without programs, or \
                     the object's file could not be read: give one: bpflab replay OBJ {file}"
                ))
            })?;
            arguments.kernel.apply(recorded)?
        }
    };
    let replay = Replay::new(&object, source).map_err(in_file)?;
    let engines: Vec<EngineKind> = match arguments.engine[..] {
        // The engine that measures.
        [] if collector().is_some() => vec![EngineKind::Checked],
        [] => vec![EngineKind::default()],
        ref engines => engines.iter().copied().map(EngineKind::from).collect(),
    };
    let mut exit = Exit::Fine;
    let mut page = ReplayPage::default();
    for engine in engines {
        printer.working(format_args!("replaying {file} on {engine}"));
        let start = Instant::now();
        let (report, bare) = if replay.is_bare() {
            let Bare {
                report,
                vm,
                unwanted,
            } = replay.run_bare(&object, engine).map_err(in_file)?;
            (report, Some((vm, unwanted)))
        } else {
            (replay.run(engine).map_err(in_file)?, None)
        };
        let elapsed = start.elapsed();
        let view = ReplayView {
            recording: &file,
            object: object.file(),
            report: &report,
            elapsed: arguments.time.then_some(elapsed),
        };
        printer.show(&view)?;
        page.add(&view);
        if let Some((vm, unwanted)) = bare {
            show_bare(&object, &vm, &unwanted, &mut page, printer)?;
        }
        if !report.is_fine() {
            exit = exit.max(Exit::No);
        }
    }
    if let Some(to) = &arguments.html {
        write_text(to, &page.finish())?;
    }
    Ok(exit)
}

/// Shows the results for a recording of events without programs: the events that no program
/// handles, and the contents of maps.
fn show_bare(
    object: &Object,
    vm: &Vm,
    unwanted: &[(String, u64)],
    page: &mut ReplayPage,
    printer: &mut Printer,
) -> Result<(), Failure> {
    for (event, samples) in unwanted {
        let why = format!("no program of {} is for {event}", object.file());
        page.add_line(format_args!("{samples} events skipped: {why}"));
        if printer.is_json() {
            printer.row(&json!({ "event": event, "samples": samples, "why": why }))?;
        } else {
            printer.text(format!("{samples} events skipped: {why}\n"))?;
        }
    }
    let maps = vm.maps();
    for map in maps.filter(|map| !map.def().frozen && !map.def().map_type.holds_maps()) {
        if let Some(contents) = MapContents::new(&map, HistogramRule::default())? {
            if !printer.is_json() {
                printer.text("\n")?;
            }
            printer.show(&contents)?;
            page.add_map(&contents);
        }
    }
    Ok(())
}
