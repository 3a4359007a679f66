//! `bpflab kernel`: queries the running kernel. One file per verb.

mod check;
mod judge;
mod load;
mod tracepoints;

pub(super) use judge::KernelJudge;

use clap::{Args, Subcommand};

use super::exit::{Exit, Failure};
use super::printer::Printer;

/// Query the running kernel (Linux, root)
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bpflab kernel check
  bpflab kernel load prog.bpf.o
  bpflab kernel tracepoints 'softirq*'")]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Check(check::Arguments),
    Load(Box<load::Arguments>),
    Tracepoints(tracepoints::Arguments),
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    match &arguments.verb {
        Verb::Check(arguments) => check::run(arguments, printer),
        Verb::Load(arguments) => load::run(arguments, printer),
        Verb::Tracepoints(arguments) => tracepoints::run(arguments, printer),
    }
}
