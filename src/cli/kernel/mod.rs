//! `bpflab kernel`: queries the running kernel. One file per verb.

mod check;
mod exec;
mod functions;
mod judge;
mod load;
mod tracepoints;

pub(super) use judge::KernelJudge;

use clap::{Args, Subcommand};

use super::exit::{Exit, Failure};
use super::printer::Printer;
use super::vm::{GuestVerb, VmArguments};

/// Query the running kernel (Linux, root)
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bpflab kernel check
  bpflab kernel load prog.bpf.o
  bpflab kernel tracepoints 'softirq*'
  bpflab kernel functions 'vfs_*'")]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Check(check::Arguments),
    Load(Box<load::Arguments>),
    Tracepoints(tracepoints::Arguments),
    Functions(functions::Arguments),
    Exec(exec::Arguments),
}

impl Arguments {
    /// The options for virtual machines.
    pub(super) fn vm(&self) -> (&VmArguments, GuestVerb) {
        let other = GuestVerb::default();
        match &self.verb {
            Verb::Check(arguments) => (&arguments.vm, other),
            Verb::Load(arguments) => (&arguments.vm, GuestVerb::of_verdicts()),
            Verb::Tracepoints(arguments) => (&arguments.vm, other),
            Verb::Functions(arguments) => (&arguments.vm, other),
            Verb::Exec(arguments) => (&arguments.vm, GuestVerb::of_command()),
        }
    }
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    match &arguments.verb {
        Verb::Check(arguments) => check::run(arguments, printer),
        Verb::Load(arguments) => load::run(arguments, printer),
        Verb::Tracepoints(arguments) => tracepoints::run(arguments, printer),
        Verb::Functions(arguments) => functions::run(arguments, printer),
        Verb::Exec(arguments) => exec::run(arguments),
    }
}
