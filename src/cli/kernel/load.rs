//! `bpflab kernel load`: the kernel's verdict on programs.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::exit::{Exit, Failure};
use crate::cli::input::KernelArguments;
use crate::cli::printer::Printer;
use crate::kernel::{Availability, LoadOptions, LoadedMaps, NoVerdict, load};
use crate::object::cases::{CaseError, Cases};
use crate::program::Program;
use crate::report::{VerdictRow, VerdictTally};
use crate::verifier::LogLevel;

/// Load programs into the running kernel and show its verdict
///
/// Each program is loaded with its maps and its types, judged, and unloaded; nothing is
/// attached. A program that the kernel did not judge (no rights, no memory, an unknown
/// feature, a map that can't be made) is an error, not a reject.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bpflab kernel load prog.bpf.o
  bpflab kernel load prog.bpf.o count_write --log 2     with the verifier's log
  bpflab kernel load --cases cases.jsonl --json | jq -r 'select(.verdict == \"reject\").message'")]
pub(super) struct Arguments {
    /// Object file
    #[arg(
        value_name = "OBJ",
        required_unless_present = "cases",
        conflicts_with = "cases"
    )]
    object: Option<PathBuf>,
    /// Programs, by the name of the C function [default: those that are loaded with
    /// the object]
    #[arg(value_name = "PROGRAM")]
    programs: Vec<String>,
    /// Load the cases of a file (JSON lines, plain or packed; - for the standard input).
    /// Their type ids are those of the kernel that --btf names, if it is given
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
    /// Print the verifier's log: 1 the path to the error, 2 every instruction walked; 4
    /// is added for statistics
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=7))]
    log: u32,
    #[command(flatten)]
    kernel: KernelArguments,
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    let kernel = Availability::probe();
    if !kernel.usable() {
        let text = kernel.missing().join("; ");
        return Err(Failure::with(Exit::Unavailable, text));
    }
    let mut judge = Judge {
        options: LoadOptions {
            log: LogLevel::from_bits_truncate(arguments.log),
        },
        log: arguments.log > 0,
        tally: VerdictTally::default(),
        printer,
    };
    match (&arguments.object, &arguments.cases) {
        (Some(object), _) => judge.object(object, arguments)?,
        (None, Some(cases)) => judge.cases(cases, arguments)?,
        (None, None) => {}
    }
    let tally = judge.tally;
    if !printer.is_json() {
        printer.text(format_args!("{tally}\n"))?;
    }
    Ok(if tally.all_accepted() {
        Exit::Fine
    } else {
        Exit::No
    })
}

/// Prints verdicts and counts them.
struct Judge<'a> {
    options: LoadOptions,
    log: bool,
    tally: VerdictTally,
    printer: &'a mut Printer,
}

impl Judge<'_> {
    /// The programs of an object, which share its maps.
    fn object(&mut self, path: &Path, arguments: &Arguments) -> Result<(), Failure> {
        let mut object = arguments.kernel.open(path)?;
        if !arguments.programs.is_empty() {
            object.load_only(arguments.programs.iter().map(String::as_str))?;
        }
        let file = object.file().to_owned();
        let mut maps: Option<LoadedMaps> = None;
        for program in object.programs() {
            let program = program?;
            let made = match maps.take() {
                Some(made) => made,
                None => match LoadedMaps::create(&program.maps, program.btf.as_ref()) {
                    Ok(made) => made,
                    Err(none) => {
                        let row = VerdictRow::of_program(&file, &program);
                        self.no_verdict(row, &none)?;
                        continue;
                    }
                },
            };
            let row = VerdictRow::of_program(&file, &program);
            self.program(row, &program, &made)?;
            maps = Some(made);
        }
        Ok(())
    }

    /// The cases of a file; a broken one is reported, and the next one follows.
    fn cases(&mut self, file: &Path, arguments: &Arguments) -> Result<(), Failure> {
        let opened = if file.as_os_str() == "-" {
            Cases::read("standard input", ".", BufReader::new(std::io::stdin()))
        } else {
            Cases::open(file)
        };
        // Not a line, the file itself can't be read.
        let unreadable =
            |error: CaseError| Failure::bad(format!("{}: {}", error.file, error.problem));
        let mut cases = opened.map_err(unreadable)?;
        if let Some(btf) = arguments.kernel.btf()? {
            cases.set_kernel(btf);
        }
        while let Some(case) = cases.next() {
            let case = match case {
                Ok(case) => case,
                Err(error) => {
                    self.show(VerdictRow::broken(&error.to_string()))?;
                    continue;
                }
            };
            let program = match cases.program(&case) {
                Ok(program) => program,
                Err(error) => {
                    let row = VerdictRow::broken(&error.to_string());
                    self.show(row.with_id(&case.id))?;
                    continue;
                }
            };
            let row = VerdictRow::of_program(&case.object, &program).with_id(&case.id);
            match LoadedMaps::create(&program.maps, program.btf.as_ref()) {
                Ok(maps) => self.program(row, &program, &maps)?,
                Err(none) => self.no_verdict(row, &none)?,
            }
        }
        Ok(())
    }

    fn program(
        &mut self,
        row: VerdictRow,
        program: &Program,
        maps: &LoadedMaps,
    ) -> Result<(), Failure> {
        if let Some(refused) = maps.btf_refused() {
            self.printer.warn(&refused.to_string())?;
        }
        match load(program, maps, &self.options) {
            Ok(loaded) => self.show(row.judged(&loaded.verdict, self.log)),
            Err(none) => self.no_verdict(row, &none),
        }
    }

    fn no_verdict(&mut self, row: VerdictRow, none: &NoVerdict) -> Result<(), Failure> {
        self.show(row.not_judged(none))
    }

    fn show(&mut self, row: VerdictRow) -> Result<(), Failure> {
        self.tally.add(&row);
        self.printer.show(&row)
    }
}
