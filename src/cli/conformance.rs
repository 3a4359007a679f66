//! `bpflab conformance-plugin`: the plugin of the bpf_conformance suite.
//!
//! The suite starts a plugin for each of its tests. It passes the memory that the program works
//! on as an argument and the program on standard input, both in hexadecimal, and expects r0 in
//! hexadecimal on standard output. Any exit code but 0 is an error, which it compares with the
//! text on standard error.
//!
//! The fast engines run verified programs only, and no verified program gets bare memory. For
//! them the memory is the value of an array map, of exactly its size, and two instructions
//! before the program put its address and length into r1 and r2. The program may then do
//! whatever the verifier accepts; rejected programs are not run.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::io::Read;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;

use super::exit::{Exit, Failure};
use super::printer::Printer;
use super::run::Engine;
use crate::harness::{EngineKind, Vm};
use crate::isa::{AluOp, Insn, Operand, Pseudo, RawInsn, Reg, Width, encode};
use crate::object::Object;
use crate::program::{Initial, MapDef, Program};
use crate::spec::{MapType, ProgType};
use crate::util::{MapId, Pc};
use crate::vm::events::{Event, parse_hex};
use crate::vm::memory::{Region, SharedBytes};
use crate::vm::{Fallback, ProgramHandle, World};

/// Bytes of the packet that a wrapped program runs on and never reads.
const PACKET: usize = 64;

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
        object(&bytes)?
    } else {
        bare(&bytes)?
    };
    let r0 = match arguments.engine {
        Engine::Checked => run_bare(program, &memory)?,
        engine => run_wrapped(program, &memory, engine.into())?,
    };
    printer.show(&Result64 { r0 })?;
    Ok(Exit::Fine)
}

/// Runs a program on plain memory in the checked interpreter.
fn run_bare(program: Program, memory: &[u8]) -> Result<u64, Failure> {
    let mut vm = Vm::with_world(World::default());
    let handle = load(&mut vm, program)?;
    let mut args = [0; 5];
    if !memory.is_empty() {
        let region = Region::bytes("memory", Arc::new(SharedBytes::from_bytes(memory)));
        let space = &mut vm.machine().space;
        let address = space.insert(region).map_err(Failure::bad)?;
        args = [address.register(), memory.len() as u64, 0, 0, 0];
    }
    Ok(vm.execute(handle, args)?.r0)
}

/// Runs a program on the value of a map, if the verifier accepts it.
fn run_wrapped(program: Program, memory: &[u8], engine: EngineKind) -> Result<u64, Failure> {
    let mut vm = Vm::with_world(World::default());
    vm.set_engine(engine);
    let handle = load(&mut vm, wrapped(program, memory)?)?;
    let event = Event::packet(vec![0; PACKET]);
    let elsewhere = |why: Fallback| {
        let verdict = vm.verification(handle).map(|found| &found.verdict);
        let said = verdict.filter(|_| why.is_unverified());
        let said = said.map_or_else(String::new, |verdict| format!(": {}", verdict.message));
        Failure::with(
            Exit::Unavailable,
            format!("the program can't run on engine {engine}: {why}{said}"),
        )
    };
    if let Some(why) = vm.engine_of_handle(handle).fallback {
        return Err(elsewhere(why));
    }
    let outcome = vm.run_handle(handle, &event)?;
    let run = outcome.runs.first();
    let run = run.ok_or_else(|| Failure::bad("the program did not run"))?;
    match run.ran_on.fallback {
        Some(why) => Err(Failure::with(
            Exit::Unavailable,
            format!("the program did not run on engine {engine}: {why}"),
        )),
        None => Ok(run.r0),
    }
}

fn load(vm: &mut Vm, program: Program) -> Result<ProgramHandle, Failure> {
    let maps = program.maps.clone();
    let loaded = vm.load_unverified_programs(&maps, vec![Arc::new(program)])?;
    let first = loaded.first().copied();
    first.ok_or_else(|| Failure::bad("no program to run"))
}

/// The program after two instructions that set r1 and r2 as the suite does.
fn wrapped(mut program: Program, memory: &[u8]) -> Result<Program, Failure> {
    let set = |dst, imm| Insn::Alu {
        op: AluOp::Mov,
        width: Width::W64,
        dst,
        src: Operand::Imm(imm),
    };
    let len = u32::try_from(memory.len()).map_err(Failure::bad)?;
    let first = if memory.is_empty() {
        set(Reg::R1, 0)
    } else {
        let mut def = MapDef::new("memory", MapType::Array, 4, len, 1);
        def.initial.push(Initial::Bytes {
            key: vec![0; 4],
            value: memory.into(),
        });
        let index = MapId::from_index(program.maps.len()).0;
        program.maps = program.maps.iter().cloned().chain([def]).collect();
        let source = Pseudo::MapIdxValue { index, off: 0 };
        let dst = Reg::R1;
        Insn::LoadPseudo { dst, source }
    };
    let mut insns = encode(&[first, set(Reg::R2, len.cast_signed())]);
    let more = u32::try_from(insns.len()).map_err(Failure::bad)?;
    insns.append(&mut program.insns);
    program.insns = insns;
    // The main program starts with the two instructions; every other function moves.
    for function in program.subprograms.iter_mut().filter(|f| f.start != Pc(0)) {
        function.start.0 += more;
    }
    for info in program.func_info.iter_mut().filter(|i| i.insn_off != 0) {
        info.insn_off += more;
    }
    for line in program.lines.iter_mut().filter(|line| line.insn_off != 0) {
        line.insn_off += more;
    }
    for access in &mut program.accesses {
        access.pc.0 += more;
    }
    Ok(program)
}

/// A program of bare instructions.
fn bare(bytes: &[u8]) -> Result<Program, Failure> {
    let (insns, rest) = RawInsn::slots(bytes);
    if insns.is_empty() || !rest.is_empty() {
        return Err(Failure::bad(format!(
            "the program: {} bytes, not a positive multiple of 8",
            bytes.len()
        )));
    }
    Ok(Program::new("main", ProgType::Xdp, insns))
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
