//! `bpflab reduce`: removes what a failure does not need from a program.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;

use super::exit::{Exit, Failure};
use super::printer::Printer;
use crate::btf::Btf;
use crate::fuzz::{Candidate, FuzzCase, Judge, Oracle, Problem, reduce, save_case};
use crate::isa::disassemble;
use crate::object::cases::{Case, Cases};
use crate::program::Program;
use crate::verifier::{Decision, Options, verify};

/// Reduce a program of a case file, as long as a condition holds
///
/// Removes instructions and turns them into constants, in smaller and smaller steps. The
/// condition is a verdict of bpflab (accept, reject, unjudged), a text in its error line
/// (message:TEXT), a problem that an oracle of `bpflab fuzz` has (oracle:NAME), or a shell command
/// (command:COMMAND) that ends with 0: it finds the case in the file $BPFLAB_CASE.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bpflab reduce case.jsonl --while reject
  bpflab reduce cases.jsonl --id 12 --while 'message:R2 !read_ok'
  bpflab reduce finding.jsonl --while oracle:state --output small.jsonl
  bpflab reduce case.jsonl --while 'command:bpflab kernel load --cases $BPFLAB_CASE | grep EINVAL'")]
pub(super) struct Arguments {
    /// Case file
    #[arg(value_name = "CASE")]
    file: PathBuf,
    /// Keep this condition true
    #[arg(long = "while", value_name = "CONDITION", value_parser = condition)]
    condition: Condition,
    /// Take the case with this id [default: the first]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Try at most N smaller programs
    #[arg(long, value_name = "N", default_value_t = 5000)]
    tries: usize,
    /// Read the types of the case's kernel from this BTF [default: the running kernel's]
    #[arg(long, value_name = "FILE")]
    btf: Option<PathBuf>,
    /// Write the reduced case to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What a reduced program must still have.
#[derive(Debug, Clone)]
enum Condition {
    Verdict(Decision),
    Message(String),
    Oracle(Oracle),
    Command(String),
}

fn condition(text: &str) -> Result<Condition, String> {
    let words = [Decision::Accept, Decision::Reject, Decision::Unjudged];
    if let Some(decision) = words.iter().find(|decision| decision.word() == text) {
        return Ok(Condition::Verdict(*decision));
    }
    match text.split_once(':') {
        Some(("message", text)) => Ok(Condition::Message(text.to_owned())),
        Some(("oracle", name)) => Oracle::named(name).map(Condition::Oracle).ok_or_else(|| {
            let names = Oracle::all().names().join(", ");
            format!("unknown oracle; there are {names}")
        }),
        Some(("command", command)) => Ok(Condition::Command(command.to_owned())),
        _ => Err(
            "one of accept, reject, unjudged, message:TEXT, oracle:NAME, command:COMMAND"
                .to_owned(),
        ),
    }
}

/// The result. Its fields are the keys of `--json`.
#[derive(Debug, Serialize)]
struct Reduced {
    kind: &'static str,
    id: String,
    insns_before: usize,
    insns: usize,
    tried: usize,
    file: Option<String>,
    listing: Vec<String>,
}

impl std::fmt::Display for Reduced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for line in &self.listing {
            writeln!(f, "{line}")?;
        }
        let Self {
            id,
            insns_before,
            insns,
            tried,
            ..
        } = self;
        write!(
            f,
            "{id}: {insns} of {insns_before} instructions left, {tried} programs tried"
        )?;
        if let Some(file) = &self.file {
            write!(f, "; written to {file}")?;
        }
        writeln!(f)
    }
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    let kernel = super::input::kernel_types(arguments.btf.as_deref())?;
    let (case, program) = find(arguments, kernel.as_ref())?;
    let unreadable = |error| Failure::bad(format!("{}: {error}", arguments.file.display()));
    let candidate = FuzzCase::candidate(&case, program, kernel.as_ref()).map_err(unreadable)?;
    let mut keeper = Keeper::new(&arguments.condition, &case, &candidate)?;
    let mut tried = 0;
    let mut failed = Ok(());
    let before = candidate.program.insns.len();
    let reduced = reduce(&candidate.program, arguments.tries, |program| {
        tried += 1;
        printer.working(format_args!("{tried} programs tried"));
        keeper.holds(program).unwrap_or_else(|error| {
            failed = Err(error);
            false
        })
    });
    failed?;
    let mut small = with_program(&case, &reduced);
    if let Some(own) = small
        .rest
        .get_mut("fuzz")
        .and_then(|own| own.as_object_mut())
    {
        let listing: Vec<_> = listing(&reduced);
        own.insert("listing".to_owned(), listing.into());
    }
    let written = arguments.output.as_ref().map(|file| {
        let unwritable = |error| Failure::bad(format!("{}: {error}", file.display()));
        save_case(file, &small, &reduced).map_err(unwritable)?;
        Ok::<_, Failure>(file.display().to_string())
    });
    printer.show(&Reduced {
        kind: "reduced",
        id: case.id.clone(),
        insns_before: before,
        insns: reduced.insns.len(),
        tried,
        file: written.transpose()?,
        listing: listing(&reduced),
    })?;
    Ok(Exit::Fine)
}

/// A case with another program, which has the same maps and types.
fn with_program(case: &Case, program: &Program) -> Case {
    let made = Case::from_program(&case.id, program);
    let mut small = case.clone();
    small.insns = made.insns;
    small.fixups = made.fixups;
    small.func_info = made.func_info;
    small.maps = made.maps;
    small.btf = made.btf;
    // What the kernel said was about the whole program.
    small.kernel = None;
    small.runs.clear();
    small
}

fn listing(program: &Program) -> Vec<String> {
    let text = disassemble(&program.insns, program);
    text.lines().map(str::to_owned).collect()
}

/// The case that was asked for.
fn find(arguments: &Arguments, kernel: Option<&Btf>) -> Result<(Case, Program), Failure> {
    let file = &arguments.file;
    let unreadable = |error: crate::object::cases::CaseError| Failure::bad(error.to_string());
    let mut cases = Cases::open(file).map_err(unreadable)?;
    if let Some(btf) = kernel {
        cases.set_kernel(btf.clone());
    }
    while let Some(case) = cases.next() {
        let case = case.map_err(unreadable)?;
        if arguments.id.as_ref().is_none_or(|id| *id == case.id) {
            let program = cases.program(&case).map_err(unreadable)?;
            return Ok((case, program));
        }
    }
    let text = match &arguments.id {
        Some(id) => format!("{}: no case with the id `{id}`", file.display()),
        None => format!("{}: no case", file.display()),
    };
    Err(Failure::bad(text))
}

/// Whether a condition holds.
struct Keeper<'a> {
    condition: &'a Condition,
    case: &'a Case,
    candidate: &'a Candidate,
    judge: Judge,
    problem: Option<Problem>,
    scratch: PathBuf,
}

impl<'a> Keeper<'a> {
    /// Of a case for which the condition must hold.
    fn new(
        condition: &'a Condition,
        case: &'a Case,
        candidate: &'a Candidate,
    ) -> Result<Self, Failure> {
        let oracle = match condition {
            Condition::Oracle(oracle) => *oracle,
            _ => Oracle::empty(),
        };
        let mut keeper = Self {
            condition,
            case,
            candidate,
            judge: Judge::new(oracle, super::fuzz::kernel().0),
            problem: None,
            scratch: std::env::temp_dir().join(format!("bpflab-reduce-{}", std::process::id())),
        };
        if keeper.holds(&candidate.program)? {
            return Ok(keeper);
        }
        Err(Failure::bad(format!(
            "{}: the condition of --while does not hold for the case",
            case.id
        )))
    }

    fn holds(&mut self, program: &Arc<Program>) -> Result<bool, Failure> {
        let verdict = || verify(program, &Options::default()).verdict;
        Ok(match self.condition {
            Condition::Verdict(decision) => verdict().decision == *decision,
            Condition::Message(text) => verdict().message.contains(text),
            Condition::Oracle(_) => {
                let found = self
                    .judge
                    .judge(&self.candidate.with_program(program.clone()));
                let Some(found) = found else {
                    return Ok(false);
                };
                let first = self.problem.get_or_insert_with(|| found.clone());
                found.is_like(first)
            }
            Condition::Command(command) => self.succeeds(command, program)?,
        })
    }

    /// Whether a command ends with 0.
    fn succeeds(&self, command: &str, program: &Program) -> Result<bool, Failure> {
        let file = self.scratch.join("case.jsonl");
        let failed = |error| Failure::bad(format!("{}: {error}", file.display()));
        save_case(&file, &with_program(self.case, program), program).map_err(failed)?;
        let output = Command::new("sh")
            .args(["-c", command])
            .env("BPFLAB_CASE", &file)
            .output()
            .map_err(|error| Failure::bad(format!("the command of --while: {error}")))?;
        Ok(output.status.success())
    }
}

impl Drop for Keeper<'_> {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}
