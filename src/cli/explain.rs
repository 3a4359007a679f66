//! `bpflab explain`: explains a kernel's verifier log.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::{Exit, Failure};
use super::files::read_text;
use super::input::KernelArguments;
use super::printer::Printer;
use crate::explain::{Explained, Pasted, logs};
use crate::program::Program;
use crate::report::ExplainedRow;

/// Explain a verifier log of the kernel, and say what to change
///
/// Shows the C line, the reason, and where the value came from.
/// Takes the logs of any kernel from 5.10 to 7.3 out of what libbpf, bpftool, cilium/ebpf, aya or
/// dmesg print. Exit code 0 if there is advice for each log; 1 if an error line is unknown or
/// missing, or bpflab's own verdict on --object differs; 2 if there is no log.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bpflab explain --log verifier.log
  bpftool prog load prog.bpf.o /sys/fs/bpf/p 2>&1 | bpflab explain --log -
  bpflab explain --log verifier.log --object prog.bpf.o
  bpflab explain --log verifier.log --json | jq -r .report.help")]
pub(super) struct Arguments {
    /// File with the log, as it was printed; - for standard input
    #[arg(long, value_name = "FILE")]
    log: PathBuf,
    /// Object that was loaded: use its source lines and names, and say whether bpflab's own
    /// verdict differs
    #[arg(long, value_name = "OBJ")]
    object: Option<PathBuf>,
    /// Program of the log [default: the one that the log names, or whose instructions fit]
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    #[command(flatten)]
    kernel: KernelArguments,
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    let file = arguments.log.display().to_string();
    let logs = logs(&text(&arguments.log)?);
    if logs.is_empty() {
        return Err(Failure::bad(format!(
            "{file}: no verifier log; expected instructions such as `0: (b7) r0 = 0` or an error \
             line of the verifier"
        )));
    }
    let programs = arguments.programs(printer)?;
    let mut exit = Exit::Fine;
    let of_name = |log: &&Pasted| {
        let wanted = arguments
            .program
            .as_deref()
            .filter(|_| arguments.object.is_none());
        wanted.is_none_or(|wanted| log.program.as_deref().is_none_or(|name| name == wanted))
    };
    for log in logs.iter().filter(of_name) {
        let program = match &arguments.object {
            Some(object) => {
                let found = arguments.fitting(log, &programs);
                if let Err(why) = &found {
                    printer.warn(&format!(
                        "{}: {why}; explained without it",
                        object.display()
                    ))?;
                    exit = Exit::No;
                }
                found.ok()
            }
            None => None,
        };
        let mut row = ExplainedRow::new(&file, log, Explained::new(log, program));
        if let Some(program) = program {
            row.object = arguments.object.as_ref().map(|it| it.display().to_string());
            row.program = Some(program.name.clone());
        }
        if !row.is_explained() {
            exit = Exit::No;
        }
        if printer.is_json() {
            printer.row(&row)?;
        } else {
            printer.text(row.styled())?;
        }
    }
    Ok(exit)
}

/// The text, whatever its bytes are: logs are pasted from anywhere.
fn text(file: &Path) -> Result<String, Failure> {
    if file != Path::new("-") {
        return match std::fs::read(file) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(_) => read_text(file),
        };
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::bad(format!("standard input can't be read: {error}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Arguments {
    /// The object's programs that can be relocated.
    fn programs(&self, printer: &mut Printer) -> Result<Vec<Program>, Failure> {
        let Some(file) = &self.object else {
            return Ok(Vec::new());
        };
        let mut object = self.kernel.open(file)?;
        let untyped: Vec<_> = object.untyped().map(|it| it.name().to_owned()).collect();
        for name in &untyped {
            object.entry_mut(name)?.set_autoload(false);
        }
        let mut programs = Vec::new();
        for program in object.programs() {
            match program {
                Ok(program) => programs.push(program),
                Err(error) => printer.warn(&error.to_string())?,
            }
        }
        Ok(programs)
    }

    /// The program of a log: by its name, otherwise the only one whose instructions are those of
    /// the log.
    fn fitting<'p>(&self, log: &Pasted, programs: &'p [Program]) -> Result<&'p Program, String> {
        let name = self.program.as_deref().or(log.program.as_deref());
        if let Some(name) = name {
            let mut named = programs.iter().filter(|program| program.name == name);
            let Some(program) = named.next() else {
                return Err(format!("no program {name}"));
            };
            return match Explained::differs(log, program) {
                None => Ok(program),
                Some(pc) => Err(format!(
                    "instruction {} of {name} is not the one in the log",
                    pc.0
                )),
            };
        }
        let fits = |program: &&Program| Explained::differs(log, program).is_none();
        let fitting: Vec<_> = programs.iter().filter(fits).collect();
        match fitting.as_slice() {
            [program] => Ok(program),
            [] => Err("no program has the instructions of the log".to_owned()),
            _ => Err("several programs have the instructions of the log: use --program".to_owned()),
        }
    }
}
