//! Finds the uses of missing features that an instruction shows by itself, also in dead code.

use super::{Feature, Missing};
use crate::isa::{CallTarget, Code, Insn};
use crate::program::{AttachProgram, Program};
use crate::spec::helpers::{Caller, helper};
use crate::spec::{ProgType, struct_ops};
use crate::util::Pc;
use crate::verifier::attach_target::needs_kernel_btf;

/// Finds the uses that an instruction shows by itself.
pub(in crate::verifier) fn scan(program: &Program, caller: &Caller<'_>) -> Vec<Missing> {
    let mut scan = Scan {
        program,
        caller,
        found: Vec::new(),
    };
    if is_unknown_operation(program) {
        scan.add(Feature::StructOps, None);
    }
    match program.attach_prog {
        AttachProgram::None if program.prog_type == ProgType::Ext => {
            scan.add(Feature::Extension, None);
        }
        AttachProgram::Unknown => scan.add(Feature::AttachProgram, None),
        _ => {}
    }
    if needs_kernel_btf(program) {
        scan.add(Feature::KernelBtf, None);
    }
    for (pc, insn) in Code::new(&program.insns).iter() {
        if let Ok(insn) = insn {
            scan.insn(pc, &insn);
        }
    }
    scan.found
}

/// Whether a program implements a structure of operations whose rules are not known.
fn is_unknown_operation(program: &Program) -> bool {
    let types = program.kernel_btf.as_ref();
    let structure = types.zip(program.attach_btf_id);
    let structure = structure.and_then(|(btf, id)| btf.get(id));
    program.prog_type == ProgType::StructOps
        && structure.is_some_and(|ty| struct_ops::find(ty.name()).is_none())
}

struct Scan<'p> {
    program: &'p Program,
    caller: &'p Caller<'p>,
    found: Vec<Missing>,
}

impl Scan<'_> {
    fn add(&mut self, feature: Feature, pc: Option<Pc>) {
        let missing = Missing::new(self.program, feature, pc);
        if !self.found.contains(&missing) {
            self.found.push(missing);
        }
    }

    fn insn(&mut self, pc: Pc, insn: &Insn) {
        if let Some(feature) = Feature::of_insn(self.program, insn) {
            self.add(feature, Some(pc));
        }
        if let Insn::Call(CallTarget::Kfunc { id, fd_index }) = insn
            && let Some(feature) = Feature::of_kfunc(self.program, *id, *fd_index)
        {
            self.add(feature, Some(pc));
        }
        if let Insn::Call(CallTarget::Helper(id)) = insn
            && let Some(helper) = helper(*id)
            && let Some(prototype) = helper.prototype(self.caller)
            && let Some(feature) = Feature::of_result(self.program, prototype.ret.kind)
        {
            self.add(feature, Some(pc));
        }
    }
}
