//! `bpflab conformance-plugin`: the plugin of the bpf_conformance suite.
//!
//! The suite starts a plugin for each of its tests. It passes the memory that the program works
//! on as an argument and the program on standard input, both in hexadecimal, and expects r0 in
//! hexadecimal on standard output. Any exit code but 0 is an error, which it compares with the
//! text on standard error.
//!
//! The fast engines run verified programs only ([`RawProgram::verified`]); rejected programs are
//! not run.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::io::Read;

use clap::Args;
use serde::Serialize;

use super::exit::{Exit, Failure};
use super::printer::Printer;
use super::run::Engine;
use crate::harness::{EngineKind, Error, RawProgram};
use crate::object::Object;
use crate::program::Program;
use crate::spec::ProgType;
use crate::verifier::Unverified;
use crate::vm::Fallback;
use crate::vm::events::parse_hex;

/// Run a program as a plugin of the bpf_conformance suite
///
/// Reads the program from standard input and prints r0, both in hexadecimal.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bpf_conformance_runner --test_file_directory tests --plugin_path $(which bpflab) \\
      --plugin_options conformance-plugin --cpu_version v4
  echo b7 00 00 00 2a 00 00 00 95 00 00 00 00 00 00 00 | bpflab conformance-plugin")]
pub(super) struct Arguments {
    /// Memory that r1 points to, in hexadecimal; r2 is its length
    #[arg(value_name = "MEMORY", default_value = "")]
    memory: String,
    /// Read an ELF file, not bare instructions, from standard input
    #[arg(long)]
    elf: bool,
    /// Run the program on this engine
    #[arg(long, value_enum, default_value_t = Engine::Checked)]
    engine: Engine,
}

/// The result that the suite reads.
#[derive(Debug, Serialize)]
struct Result64 {
    /// Register r0 at the end.
    r0: u64,
}

impl Display for Result64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:x}", self.r0)
    }
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    let memory = parse_hex(&arguments.memory)
        .map_err(|error| Failure::bad(format!("the memory: {error}")))?;
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(|error| Failure::bad(format!("standard input: can't be read: {error}")))?;
    let bytes = parse_hex(&text).map_err(|error| Failure::bad(format!("the program: {error}")))?;
    let program = if arguments.elf {
        object(&bytes)?.into()
    } else {
        RawProgram::from_bytes(&bytes)?
    };
    let r0 = run_on(arguments.engine.into(), program, &memory)?;
    printer.show(&Result64 { r0 })?;
    Ok(Exit::Fine)
}

/// Runs a program on the engine, verified unless it is the checked interpreter.
fn run_on(engine: EngineKind, program: RawProgram, memory: &[u8]) -> Result<u64, Failure> {
    if engine == EngineKind::Checked {
        return Ok(program.checked(memory)?.run()?.r0);
    }
    let elsewhere = |why: &dyn Display| {
        Failure::with(
            Exit::Unavailable,
            format!("the program can't run on engine {engine}: {why}"),
        )
    };
    let mut vm = match program.verified(memory) {
        Ok(vm) => vm,
        Err(Error::Unverified(programs)) => {
            let why = programs.first().map(|program| &program.why);
            let said = why.map(|why| match why {
                Unverified::Rejected(reject) => {
                    format!("{}: {}", Fallback::Rejected, reject.message())
                }
                Unverified::Unjudged(unjudged) => format!("{}: {unjudged}", Fallback::Unjudged),
            });
            return Err(elsewhere(&said.unwrap_or_default()));
        }
        Err(error) => return Err(error.into()),
    };
    vm.set_engine(engine);
    let repeated = vm.repeat(1)?;
    match (repeated.ran_on.fallback, repeated.fault) {
        (Some(why), _) => Err(elsewhere(&why)),
        (None, Some(fault)) => Err(Error::Fault(fault).into()),
        (None, None) => {
            let run = repeated.outcome.runs.first();
            Ok(run.map_or(0, |run| run.r0))
        }
    }
}

/// The program of an ELF file: the suite puts it into `.text` as function `main`.
fn object(bytes: &[u8]) -> Result<Program, Failure> {
    let mut object = Object::parse("standard input", bytes)?;
    if let [entry] = object.entries() {
        return Ok(object.program(entry.name())?);
    }
    object.add_entry("main", ProgType::Xdp)?;
    Ok(object.program("main")?)
}

/// Moves the verb to the front: the suite puts the memory before the plugin's options, among
/// which the verb is (`--plugin_path bpflab --plugin_options conformance-plugin`).
pub(super) fn put_verb_first(words: &mut [OsString]) {
    if let [_, memory, verb, ..] = words
        && verb == "conformance-plugin"
        && memory.to_str().is_some_and(|text| parse_hex(text).is_ok())
    {
        std::mem::swap(memory, verb);
    }
}
