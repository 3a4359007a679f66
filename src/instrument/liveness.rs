//! Register liveness: registers that are not live can be used by inserted code.
//!
//! Unlike the kernel's register liveness, on which its count of processed instructions depends
//! (`verifier::liveness`), this analysis knows how many arguments subprograms read.

use super::calls::{self, Callee};
use crate::isa::{BlockId, CallTarget, Cfg, Code, Insn, Reg, RegSet};
use crate::program::Program;
use crate::util::Pc;

/// The live registers around each instruction.
#[derive(Debug, Clone)]
pub(super) struct Liveness {
    /// The live registers before and after each slot.
    around: Vec<(RegSet, RegSet)>,
}

impl Liveness {
    /// Analyses a program.
    pub(super) fn new(program: &Program, code: &Code, cfg: &Cfg) -> Self {
        let mut liveness = Self {
            around: vec![(RegSet::EMPTY, RegSet::EMPTY); code.len()],
        };
        // The arguments that functions read are found in the same iteration: the sets only
        // grow.
        let reads: Vec<RegSet> = (0..code.len())
            .map(|at| fixed_reads(program, code.insn(Pc::from_index(at))))
            .collect();
        while liveness.round(code, cfg, &reads) {}
        liveness
    }

    /// The registers live before an instruction.
    pub(super) fn before(&self, pc: Pc) -> RegSet {
        self.around.get(pc.index()).copied().unwrap_or_default().0
    }

    /// The registers live after an instruction.
    pub(super) fn after(&self, pc: Pc) -> RegSet {
        self.around.get(pc.index()).copied().unwrap_or_default().1
    }

    fn round(&mut self, code: &Code, cfg: &Cfg, reads: &[RegSet]) -> bool {
        let mut changed = false;
        for subprogram in cfg.subprograms() {
            for id in subprogram.reverse_postorder.iter().rev() {
                changed |= self.block(code, cfg, *id, reads);
            }
        }
        changed
    }

    fn block(&mut self, code: &Code, cfg: &Cfg, id: BlockId, reads: &[RegSet]) -> bool {
        let Some(block) = cfg.block(id) else {
            return false;
        };
        let starts = block.successors.iter().filter_map(|next| cfg.block(*next));
        let mut live = starts.fold(RegSet::EMPTY, |live, next| {
            live.union(self.before(next.start))
        });
        let slots: Vec<Pc> = (block.start.0..block.end.0).map(Pc).collect();
        let mut changed = false;
        for pc in slots.into_iter().rev() {
            let Some(insn) = code.insn(pc) else {
                continue;
            };
            let after = live;
            let reads = match insn {
                Insn::Call(CallTarget::Subprogram { .. }) => {
                    let callee = insn
                        .subprogram_target(pc)
                        .and_then(|to| u32::try_from(to).ok());
                    callee.map_or(insn.reads(), |to| {
                        let read = self.before(Pc(to));
                        RegSet::arguments(5).minus(RegSet::arguments(5).minus(read))
                    })
                }
                _ => reads.get(pc.index()).copied().unwrap_or_default(),
            };
            live = after
                .minus(insn.writes())
                .union(reads)
                .minus(RegSet::of(&[Reg::FP]));
            if let Some(slot) = self.around.get_mut(pc.index()) {
                changed |= *slot != (live, after);
                *slot = (live, after);
            }
        }
        changed
    }
}

/// The registers that an instruction reads, apart from arguments of subprograms.
fn fixed_reads(program: &Program, insn: Option<Insn>) -> RegSet {
    match insn {
        Some(Insn::Call(target)) => match calls::callee(program, target) {
            Ok(Callee::Outside(signature)) => {
                let count = u8::try_from(signature.roles.len()).unwrap_or(u8::MAX);
                RegSet::arguments(count)
            }
            _ => RegSet::arguments(5),
        },
        Some(insn) => insn.reads(),
        None => RegSet::EMPTY,
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
