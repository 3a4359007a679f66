//! `bpflab cover`: coverage of the C source.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::exit::{Exit, Failure};
use super::files::write_text;
use super::input::KernelArguments;
use super::printer::Printer;
use crate::coverage::{Measured, Source, Unit, collector, read};
use crate::report::{CoverageReport, FailUnder, cobertura, coverage_page, lcov};
use crate::verifier::{Options, verify};

/// Report which lines of C were executed
///
/// Adds up what tests, runs and replays executed while the environment variable BPFLAB_COVERAGE
/// named the folder. A line is covered, missed, or dead: the verifier proved that no run executes
/// it. Dead lines don't count for the percentages.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 success; 1 fewer lines are covered than --fail-under-lines; \
    2 no coverage data, or damaged.

Examples:
  BPFLAB_COVERAGE=cov cargo test
  BPFLAB_COVERAGE=cov bpflab run prog.bpf.o --events events.jsonl
  bpflab cover cov
  bpflab cover cov --show-missing-lines --fail-under-lines 80
  bpflab cover cov *.bpf.o                       also programs that nothing loaded
  bpflab cover cov --lcov lcov.info              for genhtml, editors and services
  bpflab cover cov --cobertura coverage.xml      for GitLab
  bpflab cover cov --html coverage.html          the source with counts, for a browser"
)]
pub(super) struct Arguments {
    /// Folder with the counts
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Objects whose programs must not be missing: those that no process loaded are added, as
    /// missed if another program of the object was loaded, otherwise as not measured
    #[arg(value_name = "OBJ")]
    objects: Vec<PathBuf>,
    #[command(flatten)]
    kernel: KernelArguments,
    /// Write the coverage to a trace file of lcov
    #[arg(long, value_name = "FILE")]
    lcov: Option<PathBuf>,
    /// Write the coverage as XML of Cobertura
    #[arg(long, value_name = "FILE")]
    cobertura: Option<PathBuf>,
    /// Write a page with the source and its counts, which needs no other files
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print the numbers of the missed lines
    #[arg(long)]
    show_missing_lines: bool,
    /// Exit with 1 if fewer than this share of the lines are covered
    #[arg(long, value_name = "PERCENT")]
    fail_under_lines: Option<FailUnder>,
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    let measured = read(&arguments.dir).map_err(Failure::bad)?;
    let mut source = Source::of(&measured);
    for object in &arguments.objects {
        add_object(object, &arguments.kernel, &measured, &mut source)?;
    }
    if let Some(file) = &arguments.lcov {
        write_text(file, &lcov(&source))?;
    }
    if let Some(file) = &arguments.cobertura {
        write_text(file, &cobertura(&source))?;
    }
    if let Some(file) = &arguments.html {
        let read = |name: &str| std::fs::read_to_string(name).ok();
        write_text(file, &coverage_page(&source, read))?;
    }
    let report = CoverageReport::new(&source, arguments.show_missing_lines);
    if printer.is_json() {
        for row in report.rows() {
            printer.row(row)?;
        }
    } else {
        printer.text(&report)?;
    }
    let under = arguments
        .fail_under_lines
        .and_then(|limit| report.is_under(limit));
    if let Some(text) = under {
        printer.complain(&text)?;
        return Ok(Exit::No);
    }
    Ok(Exit::Fine)
}

/// Adds the programs of an object that no process loaded.
fn add_object(
    file: &Path,
    kernel: &KernelArguments,
    measured: &[Measured],
    source: &mut Source,
) -> Result<(), Failure> {
    let object = kernel.open(file)?;
    let mut units = Vec::new();
    for entry in object.entries() {
        let program = Arc::new(object.program(entry.name())?);
        let verification = verify(&program, &Options::default());
        units.extend(Unit::of(&program, verification.outcome.as_ref().ok()));
    }
    let is_loaded = |unit: &Unit| measured.iter().any(|one| one.unit.is_same_source(unit));
    let (loaded, others): (Vec<_>, Vec<_>) = units.iter().partition(|unit| is_loaded(unit));
    for unit in others {
        match loaded.is_empty() {
            true => source.add_unmeasured(unit),
            false => source.add_missed(unit),
        }
    }
    Ok(())
}

/// Whether the counts of this process were written, if coverage is measured.
pub(super) fn all_written() -> Result<(), Failure> {
    match collector().map(|collector| collector.check()) {
        Some(Err(error)) => Err(Failure::bad(error)),
        Some(Ok(())) | None => Ok(()),
    }
}
