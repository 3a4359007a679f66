//! `bpflab conformance-plugin`: the plugin of the bpf_conformance suite.
//!
//! The suite starts a plugin for each of its tests, with the memory that the program
//! works on as an argument and the program on the standard input, both in hexadecimal,
//! and expects r0 in hexadecimal on the standard output. Any exit code but 0 is an
//! error, which it compares with the text on the standard error.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::io::Read;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;

use super::exit::{Exit, Failure};
use super::printer::Printer;
use super::run::Engine;
use crate::harness::Vm;
use crate::isa::RawInsn;
use crate::object::Object;
use crate::program::Program;
use crate::spec::ProgType;
use crate::vm::World;
use crate::vm::events::parse_hex;
use crate::vm::memory::{Region, SharedBytes};

/// Run a program as a plugin of the bpf_conformance suite
///
/// The program is read from the standard input; r0 is printed, both in hexadecimal.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bpf_conformance_runner --test_file_directory tests --plugin_path $(which bpflab) \\
      --plugin_options conformance-plugin --cpu_version v4
  echo b7 00 00 00 2a 00 00 00 95 00 00 00 00 00 00 00 | bpflab conformance-plugin")]
pub(super) struct Arguments {
    /// Memory that r1 points to, in hexadecimal; r2 is its length
    #[arg(value_name = "MEMORY", default_value = "")]
    memory: String,
    /// The program on standard input is an ELF file, not bare instructions
    #[arg(long)]
    elf: bool,
    /// Engine that runs the program
    #[arg(long, value_enum, default_value_t = Engine::Checked)]
    engine: Engine,
}

/// What the suite reads.
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
    if arguments.engine != Engine::Checked {
        return Err(Failure::with(
            Exit::Unavailable,
            "the suite's programs get bare memory, which is no context of a verified program: \
             --engine checked runs them",
        ));
    }
    let memory = parse_hex(&arguments.memory)
        .map_err(|error| Failure::bad(format!("the memory: {error}")))?;
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(|error| Failure::bad(format!("standard input: can't be read: {error}")))?;
    let bytes = parse_hex(&text).map_err(|error| Failure::bad(format!("the program: {error}")))?;
    let program = if arguments.elf {
        object(&bytes)?
    } else {
        bare(&bytes)?
    };

    let mut vm = Vm::with_world(World::default());
    let maps = program.maps.clone();
    let loaded = vm.load_programs(&maps, vec![Arc::new(program)])?;
    let mut args = [0; 5];
    if !memory.is_empty() {
        let region = Region::bytes("memory", Arc::new(SharedBytes::from_bytes(&memory)));
        let space = &mut vm.machine().space;
        let address = space.insert(region).map_err(Failure::bad)?;
        args = [address.register(), memory.len() as u64, 0, 0, 0];
    }
    for handle in loaded {
        let finished = vm.execute(handle, args)?;
        printer.show(&Result64 { r0: finished.r0 })?;
    }
    Ok(Exit::Fine)
}

/// A program of bare instructions.
fn bare(bytes: &[u8]) -> Result<Program, Failure> {
    let (insns, rest) = RawInsn::slots(bytes);
    if insns.is_empty() || !rest.is_empty() {
        return Err(Failure::bad(format!(
            "the program: {} bytes, which are no instructions of 8 bytes each",
            bytes.len()
        )));
    }
    Ok(Program::new("main", ProgType::Xdp, insns))
}

/// The program of an ELF file: the suite puts it into `.text`, as function `main`.
fn object(bytes: &[u8]) -> Result<Program, Failure> {
    let mut object = Object::parse("standard input", bytes)?;
    if let [entry] = object.entries() {
        return Ok(object.program(entry.name())?);
    }
    object.add_entry("main", ProgType::Xdp)?;
    Ok(object.program("main")?)
}

/// The suite puts the memory before the plugin's options, among which the verb is
/// (`--plugin_path bpflab --plugin_options conformance-plugin`); the verb is moved to
/// where it belongs.
pub(super) fn put_verb_first(words: &mut [OsString]) {
    if let [_, memory, verb, ..] = words
        && verb == "conformance-plugin"
        && memory.to_str().is_some_and(|text| parse_hex(text).is_ok())
    {
        std::mem::swap(memory, verb);
    }
}
