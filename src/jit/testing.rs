//! Lowered programs for tests.

use std::sync::Arc;

use crate::isa::assemble_with;
use crate::lower::{Bindings, EscapingFrames, Lowered, Passes, lower};
use crate::program::{MapDef, Program};
use crate::spec::{MapType, ProgType};
use crate::verifier::{Options, verify};
use crate::vm::memory::Region;
use crate::vm::{Machine, World, maps};

/// A program of this text, with an array named `counts`.
pub(super) fn lowered(text: &str) -> Lowered {
    let counts = MapDef::new("counts", MapType::Array, 4, 8, 4);
    let mut program = Program::new("p", ProgType::Xdp, Vec::new());
    program.maps = [counts.clone()].into();
    program.insns = assemble_with(text, &program).unwrap().slots;
    let verification = verify(&Arc::new(program), &Options::default());
    let verified = verification.outcome.unwrap();
    let mut machine = Machine::new(World::default());
    let map = machine.add_map(maps::create(&counts, 1).unwrap()).unwrap();
    let functions = machine.space.insert(Region::opaque("functions")).unwrap();
    let bindings = Bindings {
        machine: &machine,
        maps: &[map],
        functions,
        escaping: &EscapingFrames::of(verified.code()),
    };
    lower(&verified, bindings, Passes::all()).unwrap()
}
