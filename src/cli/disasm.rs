//! `bpflab disasm`: the instructions of programs.

use std::path::PathBuf;

use clap::Args;

use super::exit::{Exit, Failure};
use super::input::KernelArguments;
use super::printer::Printer;
use crate::report::Listing;

/// Print the instructions of programs
///
/// In the kernel's text, relocated, with the names of maps, helpers, kernel functions
/// and global variables.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bpflab disasm prog.bpf.o
  bpflab disasm --source prog.bpf.o handle_exec   one program, lines of C in between
  bpflab disasm --btf own prog.bpf.o              offsets as the compiler saw them")]
pub(super) struct Arguments {
    /// Object file
    #[arg(value_name = "OBJ")]
    object: PathBuf,
    #[command(flatten)]
    kernel: KernelArguments,
    /// Programs to print, by the names of their C functions [default: all]
    #[arg(value_name = "PROGRAM")]
    programs: Vec<String>,
    /// Print the lines of C between the instructions
    #[arg(long)]
    source: bool,
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    let object = arguments.kernel.open(&arguments.object)?;
    let mut names: Vec<&str> = arguments.programs.iter().map(String::as_str).collect();
    if names.is_empty() {
        names.extend(object.entries().iter().map(|entry| entry.name()));
    }
    if names.is_empty() {
        return Err(Failure::bad(format!(
            "{}: no program in it; a program stands in a section such as 'xdp' or \
             'tp/syscalls/sys_enter_write'",
            object.file()
        )));
    }
    let mut exit = Exit::Fine;
    for (index, name) in names.into_iter().enumerate() {
        let program = match object.program(name) {
            Ok(program) => program,
            Err(error) => {
                // One program that can't be relocated does not hide the others.
                exit = exit.max(printer.failure(error.into())?);
                continue;
            }
        };
        let listing = Listing::new(&program, arguments.source);
        if printer.is_json() {
            for insn in listing.insns() {
                printer.row(&insn)?;
            }
        } else {
            let blank = if index == 0 { "" } else { "\n" };
            printer.text(format_args!("{blank}{listing}"))?;
        }
    }
    Ok(exit)
}
