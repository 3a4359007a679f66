//! The whole room, over programs in text, and over a corpus where there is one.

use std::collections::BTreeMap;

use super::*;
use crate::isa::assemble;
use crate::program::Program;
use crate::spec::ProgType;
use crate::verifier::attach_target::AttachTarget;
use crate::verifier::verdict::LogLevel;

fn silent() -> Log {
    Log::new(LogLevel::empty())
}

fn program(prog_type: ProgType, text: &str) -> Program {
    Program::new("test", prog_type, assemble(text).unwrap())
}

fn structure(program: &Program) -> Checked<Structure> {
    let attach = || AttachTarget::resolve(program);
    let checked = check(
        program,
        &Caller::of(program.prog_type),
        attach,
        &mut silent(),
    );
    checked.map(|(structure, _)| structure)
}

mod corpus;
