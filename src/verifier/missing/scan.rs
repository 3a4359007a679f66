//! Finds every use of a missing feature in a program, also in dead code.

use super::flow::{Flow, Holds, global_functions};
use super::{Feature, Missing};
use crate::isa::{CallTarget, Insn, Reg};
use crate::program::Program;
use crate::spec::call::{ArgSpec, Precondition};
use crate::spec::helpers::{Caller, helper};
use crate::util::Pc;
use crate::verifier::attach_target::needs_kernel_btf;
use crate::verifier::call::signature::{Argument, Signature};

/// Finds every use.
pub(in crate::verifier) fn scan(program: &Program, caller: &Caller<'_>) -> Vec<Missing> {
    let mut scan = Scan {
        program,
        caller,
        flow: Flow::new(program, caller),
        found: Vec::new(),
    };
    if let Some(feature) = Feature::of_type(program.prog_type) {
        scan.add(feature, None);
    }
    if program.attach_prog {
        scan.add(Feature::AttachProgram, None);
    }
    if needs_kernel_btf(program) {
        scan.add(Feature::KernelBtf, None);
    }
    for function in scan.takers_of_dynptrs() {
        scan.add(Feature::Dynptr, Some(function));
    }
    let insns: Vec<_> = scan.flow.insns().collect();
    for (pc, insn) in insns {
        scan.insn(pc, &insn);
    }
    scan.found
}

struct Scan<'p> {
    program: &'p Program,
    caller: &'p Caller<'p>,
    flow: Flow<'p>,
    found: Vec<Missing>,
}

impl Scan<'_> {
    fn add(&mut self, feature: Feature, pc: Option<Pc>) {
        let missing = Missing::new(self.program, feature, pc);
        if !self.found.contains(&missing) {
            self.found.push(missing);
        }
    }

    /// The global functions with a dynptr parameter, by their first instruction.
    fn takers_of_dynptrs(&self) -> Vec<Pc> {
        let takes =
            |(_, arguments): &(Pc, Signature)| arguments.arguments().contains(&Argument::Dynptr);
        let functions = global_functions(self.program).filter(takes);
        functions.map(|(start, _)| start).collect()
    }

    fn insn(&mut self, pc: Pc, insn: &Insn) {
        if let Some(feature) = Feature::of_insn(self.program, insn) {
            self.add(feature, Some(pc));
        }
        if let Insn::Call(CallTarget::Helper(id)) = insn {
            let prototype = helper(*id).and_then(|helper| helper.prototype(self.caller));
            if let Some(prototype) = prototype {
                for (reg, arg) in Reg::ARGUMENTS.into_iter().zip(prototype.arguments) {
                    let held = self.flow.holds(pc, reg);
                    let needs = Feature::of_argument(arg).or_else(|| passed(arg, held));
                    if let Some(feature) = needs {
                        self.add(feature, Some(pc));
                    }
                }
                if let Some(feature) = Feature::of_result(self.program, prototype.ret.kind) {
                    self.add(feature, Some(pc));
                }
            }
        }
        if let Some(target) = insn.subprogram_target(pc) {
            self.subprogram_call(pc, target);
        }
        if let Some((base, off, size)) = insn.memory() {
            let held = self.flow.holds(pc, base);
            let field = (i64::from(off), u64::from(size.bytes()));
            if held.contains(Holds::TYPED) {
                self.add(Feature::TypedPointer, Some(pc));
            }
            if held.contains(Holds::MAP) {
                self.add(Feature::MapField, Some(pc));
            }
            // Stores of constants and atomics are modelled.
            let judged = match insn {
                Insn::Store { src, .. } => src.reg().is_none(),
                Insn::Load { .. } => false,
                _ => true,
            };
            if !judged && held.contains(Holds::KPTR_VALUE) && self.flow.is_kptr(field, held) {
                self.add(Feature::Kptr, Some(pc));
            }
        }
    }

    /// Arguments of subprograms: dynptrs, and kernel objects for global functions.
    fn subprogram_call(&mut self, pc: Pc, target: i64) {
        let functions = self.program.subprograms.iter();
        let mut at = functions.filter(|function| i64::from(function.start.0) == target);
        if !at.next().is_some_and(|function| function.global) {
            return;
        }
        let takers = self.takers_of_dynptrs();
        if takers.iter().any(|start| i64::from(start.0) == target) {
            self.add(Feature::Dynptr, Some(pc));
        }
        let typed = |reg| self.flow.holds(pc, reg).contains(Holds::TYPED);
        if Reg::ARGUMENTS.into_iter().any(typed) {
            self.add(Feature::TypedPointer, Some(pc));
        }
    }
}

/// The feature that passing this value as an argument of a helper needs.
fn passed(arg: &ArgSpec, held: Holds) -> Option<Feature> {
    let is_named = |one: &Precondition| matches!(one, Precondition::Object(Some(_)));
    let takes_object = arg.takes_anything() || arg.is_size();
    let takes_object = takes_object || arg.preconditions.iter().any(is_named);
    if held.contains(Holds::TYPED) && !takes_object {
        return Some(Feature::TypedPointer);
    }
    (held.contains(Holds::BUFFER) && arg.region().is_some()).then_some(Feature::IteratorBuffer)
}
