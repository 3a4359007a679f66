//! `bpflab kernel check`: shows what the running kernel supports.

use clap::Args;

use crate::cli::exit::{Exit, Failure};
use crate::cli::printer::Printer;
use crate::cli::vm::VmArguments;
use crate::kernel::{Availability, running_btf, running_config};
use crate::report::KernelCheck;

/// Show what the running kernel supports
///
/// Prints its release, this process's privileges, whether bpf() works, BTF, the kfuncs and how
/// many of them bpflab knows, judges and has a body for, the changes of later kernels that a build
/// of Linux 6.18 has taken, and the program types that can be loaded. Nothing stays loaded. Exit
/// code 3 if no program can be loaded, with the reason.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bpflab kernel check
  bpflab kernel check --json | jq -r '.prog_types[] | select(.known | not) | .prog_type'")]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) vm: VmArguments,
}

pub(super) fn run(_: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    // A kernel that gives no verdicts says so below.
    let config = running_config().unwrap_or_default();
    let check = KernelCheck::new(Availability::probe(), running_btf(), config.backports);
    printer.show(&check)?;
    Ok(if check.usable {
        Exit::Fine
    } else {
        Exit::Unavailable
    })
}
