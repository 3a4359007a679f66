//! Tests of the whole module, with programs as text and with the corpus, if available.

use super::*;
use crate::isa::{RawInsn, assemble};
use crate::program::Program;
use crate::spec::ProgType;
use crate::verifier::attach;
use crate::verifier::verdict::LogLevel;

mod corpus;
mod errors;
mod info;
mod maps;
mod marks;
mod stack;

fn slots(text: &str) -> Vec<RawInsn> {
    assemble(text).unwrap()
}

fn program(prog_type: ProgType, text: &str) -> Program {
    Program::new("test", prog_type, slots(text))
}

fn structure(program: &Program) -> VerifyResult<Structure> {
    let attach = |functions: &[_]| attach::resolve(program, functions);
    let mut log = Log::new(LogLevel::empty());
    let caller = Caller::of(program.prog_type);
    check(program, &caller, &Options::default(), attach, &mut log).map(|(structure, _)| structure)
}

/// The structure of a program that is accepted.
pub(in crate::verifier) fn of(prog_type: ProgType, text: &str) -> Structure {
    structure(&program(prog_type, text)).unwrap()
}

/// The error number and line of a reject, or "ok".
fn verdict(program: &Program) -> String {
    match structure(program) {
        Ok(_) => "ok".to_owned(),
        Err(reject) => format!("{:?} {}", reject.errno(), reject.message()),
    }
}
