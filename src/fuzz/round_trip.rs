//! The *round-trip* oracle: pairs of functions of which one undoes the other.

use super::listing::{LOAD_64, PSEUDO_FUNCTION};
use super::oracle::Oracle;
use super::problem::Problem;
use super::recorded;
use crate::btf::Btf;
use crate::isa::{RawInsn, assemble_with, decode_program, disassemble, encode};
use crate::object::cases::{Case, read_case};
use crate::program::Program;

/// The first pair that does not return what was given. `records` says whether recordings are
/// among them.
pub(super) fn check(program: &Program, records: bool) -> Option<Problem> {
    instructions(program)
        .or_else(|| text(program))
        .or_else(|| case(program))
        .or_else(|| types(program))
        .or_else(|| records.then(|| recording(program)).flatten())
}

fn differs(what: &str, given: impl Into<String>, back: impl Into<String>) -> Option<Problem> {
    Some(Problem::new(Oracle::ROUND_TRIP, what, given, back))
}

/// The opcode of `exit`.
const EXIT: u8 = 0x95;

/// The instructions with 0 in the fields that the kernel never checks, and which decoding ignores:
/// the offset of `exit`, and the upper half of a function's address.
pub(super) fn canonical(insns: &[RawInsn]) -> Vec<RawInsn> {
    let mut insns = insns.to_vec();
    let mut is_function = false;
    for insn in &mut insns {
        if is_function {
            insn.imm = 0;
        }
        is_function = insn.opcode == LOAD_64 && insn.src() == PSEUDO_FUNCTION;
        if insn.opcode == EXIT {
            insn.off = 0;
        }
    }
    insns
}

/// Decoding and encoding. What cannot be decoded has no round trip.
fn instructions(program: &Program) -> Option<Problem> {
    let decoded = decode_program(&program.insns).ok()?;
    let (given, back) = (canonical(&program.insns), encode(&decoded));
    if back == given {
        return None;
    }
    differs(
        "decode and encode",
        format!("{given:?}"),
        format!("{back:?}"),
    )
}

/// Disassembling and assembling.
fn text(program: &Program) -> Option<Problem> {
    decode_program(&program.insns).ok()?;
    // Names of maps are for readers: without them the text has their numbers.
    let nameless = Program::new("text", program.prog_type, program.insns.clone());
    let text = disassemble(&nameless.insns, &nameless);
    match assemble_with(&text, &nameless) {
        Ok(assembled) if assembled.slots == canonical(&program.insns) => None,
        Ok(assembled) => {
            let back = disassemble(&assembled.slots, &nameless);
            differs("disassemble and assemble", text, back)
        }
        Err(error) => differs("disassemble and assemble", text, error.to_string()),
    }
}

/// A case's JSON, and the program that it becomes.
fn case(program: &Program) -> Option<Problem> {
    let case = Case::from_program("round trip", program);
    let line = case.to_json().to_string();
    let read = match read_case(&line) {
        Ok(read) => read,
        Err(error) => return differs("case to JSON and back", line, error.to_string()),
    };
    if read != case {
        return differs("case to JSON and back", line, read.to_json().to_string());
    }
    let made = read.to_program(program.btf.clone(), program.kernel_btf.clone());
    match made {
        Ok(made) if made.insns == program.insns => None,
        Ok(made) => differs("case to program", line, format!("{:?}", made.insns)),
        Err(error) => differs("case to program", line, error.to_string()),
    }
}

/// BTF to bytes and back.
fn types(program: &Program) -> Option<Problem> {
    let btf = program.btf.as_ref()?;
    let bytes = btf.to_bytes();
    match Btf::parse(&bytes) {
        Ok(again) if again.to_bytes() == bytes => None,
        Ok(again) => differs(
            "BTF to bytes and back",
            format!("{} bytes", bytes.len()),
            format!("{} other bytes", again.to_bytes().len()),
        ),
        Err(error) => differs("BTF to bytes and back", "bytes", error.to_string()),
    }
}

/// A recording of the program, written and read.
fn recording(program: &Program) -> Option<Problem> {
    let failed = recorded::of_program(program).err()?;
    differs("recording to bytes and back", "", failed.to_string())
}
