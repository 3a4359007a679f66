//! `bpflab kernel load`: shows the kernel's verdict on programs.

use clap::Args;

use super::judge::KernelJudge;
use crate::cli::exit::{Exit, Failure};
use crate::cli::printer::Printer;
use crate::cli::reports::{When, explain};
use crate::cli::subjects::{Found, ProgramArguments};
use crate::cli::vm::VmArguments;
use crate::explain::{Explained, Pasted};
use crate::kernel::Loader;
use crate::report::{VerdictRow, VerdictTable, VerdictTally};
use crate::verifier::{Decision, LogLevel};

/// Load programs into the running kernel and show its verdict
///
/// Loads each program with its maps and its BTF, prints the verdict, and unloads it; nothing is
/// attached. A program without a verdict (no permission, no memory, an unknown feature, a map
/// that can't be created) is an error, not a reject. A reject is explained from the kernel's log
/// of the path to the error, for which the program is loaded a second time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bpflab kernel load prog.bpf.o
  bpflab kernel load prog.bpf.o count_write --log 2     with the verifier's log
  bpflab kernel load --cases cases.jsonl --json | jq -r 'select(.verdict == \"reject\").message'")]
pub(super) struct Arguments {
    #[command(flatten)]
    programs: ProgramArguments,
    /// Print the verifier's log: 1 the path to the error, 2 every instruction explored; add 4
    /// for statistics
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=7))]
    log: u32,
    /// Explain rejects: for objects, but not for cases (auto), always, or never
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto)]
    report: When,
    #[command(flatten)]
    pub(super) vm: VmArguments,
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    let mut kernel = KernelJudge::new(
        LogLevel::from_bits_truncate(arguments.log),
        Loader::default(),
    )?;
    let explains = arguments.report.applies(!arguments.programs.are_cases());
    let mut exit = Exit::Fine;
    let mut tally = VerdictTally::default();
    let mut rows = Vec::new();
    arguments.programs.each(None, |found| {
        let mut lines = String::new();
        let mut row = match found {
            Found::Failed(failure) => {
                exit = exit.max(printer.failure(failure)?);
                return Ok(());
            }
            Found::Warning(text) => return printer.warn(&text),
            Found::Untyped(subject, text) => VerdictRow::untyped(subject, &text),
            Found::Broken(subject, text) => VerdictRow::broken(subject, &text),
            Found::Program(subject, program) => {
                printer.working(format_args!("loading {}", subject.name()));
                let row = VerdictRow::of(subject);
                match kernel.judge(&program, printer)? {
                    Ok(verdict) => {
                        let row = row.judged(&verdict, arguments.log > 0);
                        let rejected = verdict.decision == Decision::Reject && explains;
                        let log = rejected.then(|| kernel.path_log(&program, &verdict));
                        match log.flatten() {
                            None => row,
                            Some(log) => {
                                let log = Pasted::of_load(&program.name, verdict.errno, &log);
                                let explained = Explained::of(&log, Some(&program));
                                lines = explained.error.join("\n");
                                row.explained(explained)
                            }
                        }
                    }
                    Err(none) => row.not_judged(&none),
                }
            }
        };
        tally.add(&row);
        if printer.is_json() {
            return printer.row(&row);
        }
        explain(&mut row, &lines, printer)?;
        rows.push(row);
        Ok(())
    })?;
    if !printer.is_json() && !rows.is_empty() {
        printer.text(VerdictTable(&rows))?;
        printer.text(format_args!("{tally}\n"))?;
    }
    Ok(if tally.all_accepted() {
        exit
    } else {
        exit.max(Exit::No)
    })
}
