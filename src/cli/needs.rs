//! `bpflab needs`: the features of the kernel that an object uses.

use std::path::PathBuf;

use clap::Args;

use super::exit::{Exit, Failure};
use super::input::{KernelArguments, no_program};
use super::printer::Printer;
use crate::report::Needs;

/// List the kernel features that programs use
///
/// For each one the Linux release that added it, and the line of C that asks for it; then the
/// oldest kernel that has them all. That kernel's verifier may still reject a program: see
/// `verify --vm`. Hooks, fields of contexts and functions to attach to are not looked up.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 success; 1 the release of a feature is not known, or a program \
    can't be relocated.

Examples:
  bpflab needs prog.bpf.o
  bpflab needs --btf own prog.bpf.o      with the compiler's own types
  bpflab needs --json prog.bpf.o | jq -r .oldest"
)]
pub(super) struct Arguments {
    /// Object file
    #[arg(value_name = "OBJ")]
    object: PathBuf,
    #[command(flatten)]
    kernel: KernelArguments,
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    let object = arguments.kernel.open(&arguments.object)?;
    if object.entries().is_empty() {
        return Err(no_program(&object));
    }
    let needs = Needs::new(&object);
    printer.show(&needs)?;
    Ok(if needs.is_complete() {
        Exit::Fine
    } else {
        Exit::No
    })
}
