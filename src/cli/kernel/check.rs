//! `bpflab kernel check`: shows what the running kernel supports.

use clap::Args;

use crate::cli::exit::{Exit, Failure};
use crate::cli::printer::Printer;
use crate::kernel::Availability;
use crate::report::KernelCheck;

/// Show what the running kernel supports
///
/// Prints its release, this process's privileges, whether bpf() works, BTF, and the program
/// types that can be loaded. Nothing stays loaded. Exit code 3 if no program can be loaded,
/// with the reason.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bpflab kernel check
  bpflab kernel check --json | jq -r '.prog_types[] | select(.known | not) | .prog_type'")]
pub(super) struct Arguments {}

pub(super) fn run(Arguments {}: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    let check = KernelCheck::new(Availability::probe());
    printer.show(&check)?;
    Ok(if check.usable {
        Exit::Fine
    } else {
        Exit::Unavailable
    })
}
