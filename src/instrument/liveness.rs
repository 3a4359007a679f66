//! Register liveness: registers that are not live can be used by inserted code.
//!
//! Unlike the kernel's register liveness, on which its count of processed instructions depends
//! (`verifier::liveness`), this analysis knows how many arguments subprograms read.

use super::calls::{self, Callee};
use crate::analysis::{self, Cfg, Effect};
use crate::isa::{CallTarget, Code, Insn, Reg, RegSet};
use crate::program::Program;
use crate::util::Pc;

/// The live registers of a program, without the frame pointer, which is always live.
#[derive(Debug, Clone)]
pub(super) struct Liveness<'p> {
    cfg: &'p Cfg,
    registers: analysis::Liveness,
}

impl<'p> Liveness<'p> {
    /// Analyses a program.
    pub(super) fn new(program: &Program, code: &Code, cfg: &'p Cfg) -> Self {
        let slots = || (0..code.len()).map(Pc::from_index);
        let effects = slots().map(|pc| effect(program, code.insn(pc)));
        let calls = slots().filter_map(|pc| Some((pc.0, called(code.insn(pc)?, pc)?.0)));
        Self {
            cfg,
            registers: analysis::Liveness::across_calls(cfg.graph(), effects.collect(), calls),
        }
    }

    /// The registers live before an instruction.
    pub(super) fn before(&self, pc: Pc) -> RegSet {
        self.registers.before(pc.0)
    }

    /// The registers live after an instruction.
    pub(super) fn after(&self, pc: Pc) -> RegSet {
        self.registers.after(self.cfg.graph(), pc.0)
    }
}

/// The function of the program that an instruction calls.
pub(super) fn called(insn: Insn, pc: Pc) -> Option<Pc> {
    let Insn::Call(CallTarget::Subprogram { .. }) = insn else {
        return None;
    };
    let to = insn.subprogram_target(pc)?;
    u32::try_from(to).ok().map(Pc)
}

/// The registers that an instruction reads and writes. For a call of a subprogram: without
/// the arguments, which depend on the callee.
fn effect(program: &Program, insn: Option<Insn>) -> Effect {
    let Some(insn) = insn else {
        return Effect::default();
    };
    let reads = match insn {
        Insn::Call(CallTarget::Subprogram { .. }) => RegSet::EMPTY,
        Insn::Call(target) => match calls::callee(program, target) {
            Ok(Callee::Outside(signature)) => {
                let count = u8::try_from(signature.roles.len()).unwrap_or(u8::MAX);
                RegSet::arguments(count)
            }
            _ => RegSet::arguments(5),
        },
        insn => insn.reads(),
    };
    Effect {
        reads: reads.minus(RegSet::of(&[Reg::FP])),
        writes: insn.writes(),
    }
}

/// Scratch registers in order of preference: arguments first, since calls need the others.
pub(super) const BY_USE: [Reg; 10] = [
    Reg::R5,
    Reg::R4,
    Reg::R3,
    Reg::R2,
    Reg::R1,
    Reg::R0,
    Reg::R9,
    Reg::R8,
    Reg::R7,
    Reg::R6,
];
