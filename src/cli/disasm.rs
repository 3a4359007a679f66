//! `bpflab disasm`: the instructions of programs.

use std::path::PathBuf;

use clap::Args;

use super::exit::{Exit, Failure};
use super::input::{KernelArguments, no_program};
use super::printer::Printer;
#[cfg(feature = "jit")]
use crate::engine::Counting;
#[cfg(feature = "jit")]
use crate::harness::{EngineKind, Error, Vm};
#[cfg(feature = "jit")]
use crate::jit::emit_for;
#[cfg(feature = "jit")]
use crate::object::Object;
use crate::report::Listing;
#[cfg(feature = "jit")]
use crate::report::MachineListing;
#[cfg(feature = "jit")]
use crate::spec::context::Arch;
#[cfg(feature = "jit")]
use crate::vm::World;

/// Print the instructions of programs
///
/// The text is the kernel's, relocated, with the names of maps, helpers, kfuncs and global
/// variables.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bpflab disasm prog.bpf.o
  bpflab disasm --source prog.bpf.o handle_exec   one program, with C source lines
  bpflab disasm --btf own prog.bpf.o              with the compiler's own offsets
  bpflab disasm --jit --source prog.bpf.o         machine code beside the instructions
  bpflab disasm --jit=arm64 prog.bpf.o            that of another machine")]
pub(super) struct Arguments {
    /// Object file
    #[arg(value_name = "OBJ")]
    object: PathBuf,
    #[command(flatten)]
    kernel: KernelArguments,
    /// Programs to print, by the names of their C functions [default: all]
    #[arg(value_name = "PROGRAM")]
    programs: Vec<String>,
    /// Print the C source lines between the instructions
    #[arg(long)]
    source: bool,
    /// Print the machine code next to the instructions [default MACHINE: this one]
    #[cfg(feature = "jit")]
    #[arg(
        long,
        value_name = "MACHINE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "host"
    )]
    jit: Option<Machine>,
}

/// A machine to compile for.
#[cfg(feature = "jit")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Machine {
    /// This machine.
    Host,
    /// x86-64.
    #[value(name = "x86-64", alias = "x86_64")]
    X86,
    /// arm64.
    #[value(name = "arm64", alias = "aarch64")]
    Arm,
}

#[cfg(feature = "jit")]
impl From<Machine> for Arch {
    fn from(machine: Machine) -> Self {
        match machine {
            Machine::Host => Self::HOST,
            Machine::X86 => Self::X86_64,
            Machine::Arm => Self::Arm64,
        }
    }
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    let object = arguments.kernel.open(&arguments.object)?;
    let mut names: Vec<&str> = arguments.programs.iter().map(String::as_str).collect();
    if names.is_empty() {
        names.extend(object.entries().iter().map(|entry| entry.name()));
    }
    if names.is_empty() {
        return Err(no_program(&object));
    }
    #[cfg(feature = "jit")]
    if let Some(machine) = arguments.jit {
        let names = names.into_iter().map(str::to_owned).collect();
        return machine_code(object, names, machine.into(), arguments, printer);
    }
    let mut exit = Exit::Fine;
    for (index, name) in names.into_iter().enumerate() {
        let program = match object.program(name) {
            Ok(program) => program,
            Err(error) => {
                // One program that can't be relocated does not stop the others.
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

/// Prints the machine code of programs.
#[cfg(feature = "jit")]
fn machine_code(
    mut object: Object,
    names: Vec<String>,
    machine: Arch,
    arguments: &Arguments,
    printer: &mut Printer,
) -> Result<Exit, Failure> {
    let mut exit = Exit::Fine;
    let mut able = Vec::with_capacity(names.len());
    for name in names {
        match object.program(&name) {
            Ok(_) => able.push(name),
            Err(error) => exit = exit.max(printer.failure(error.into())?),
        }
    }
    object.load_only(able.iter().map(String::as_str))?;
    let mut vm = Vm::with_world(World::default());
    if let Some(btf) = arguments.kernel.btf()? {
        vm.set_kernel_btf(btf);
    }
    vm.load_unverified(object)?;
    for (index, program) in able.into_iter().enumerate() {
        let lowered = vm.lowered(vm.program_handle(&program)?);
        let emitted = lowered
            .and_then(|lowered| Some((lowered, emit_for(machine, lowered, Counting::Exact)?)));
        let Some((lowered, emitted)) = emitted else {
            let verdict = &vm.verification(&program)?.verdict;
            let why = match verdict.is_accepted() {
                true => "the JIT does not support it".to_owned(),
                false => format!("it is not verified: {}", verdict.message),
            };
            let engine = EngineKind::Jit;
            let error = Error::Engine {
                program,
                engine,
                why,
            };
            exit = exit.max(printer.failure(error.into())?);
            continue;
        };
        let listing = MachineListing::new(lowered, &emitted, machine, arguments.source);
        if printer.is_json() {
            listing.each(|insn| printer.row(insn))?;
        } else {
            let blank = if index == 0 { "" } else { "\n" };
            printer.text(format_args!("{blank}{listing}"))?;
        }
    }
    Ok(exit)
}
