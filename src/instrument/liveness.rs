//! Which registers are still needed: those that are not can be used by inserted code.
//!
//! Unlike the kernel's liveness of registers, on which its number of walked instructions
//! depends (`verifier::liveness`), this one knows how many arguments the program's own
//! functions read.

use super::calls::{self, Callee};
use crate::isa::{BlockId, CallTarget, Cfg, Code, Insn, Reg, RegSet};
use crate::program::Program;
use crate::util::Pc;

/// Which registers are needed where.
#[derive(Debug, Clone)]
pub(super) struct Liveness {
    /// Before and after each slot.
    around: Vec<(RegSet, RegSet)>,
}

impl Liveness {
    /// That of a program.
    pub(super) fn new(program: &Program, code: &Code, cfg: &Cfg) -> Self {
        let mut liveness = Self {
            around: vec![(RegSet::EMPTY, RegSet::EMPTY); code.len()],
        };
        // What functions read of their arguments is found out together with the rest:
        // it only grows.
        let reads: Vec<RegSet> = (0..code.len())
            .map(|at| fixed_reads(program, code.insn(Pc::from_index(at))))
            .collect();
        while liveness.round(code, cfg, &reads) {}
        liveness
    }

    /// The registers that the instruction or what follows it reads.
    pub(super) fn before(&self, pc: Pc) -> RegSet {
        self.around.get(pc.index()).copied().unwrap_or_default().0
    }

    /// The registers that what follows the instruction reads.
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

/// What an instruction reads, whatever the program's functions do.
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

/// The registers, in the order in which code that needs some takes them: arguments first,
/// since calls need the others.
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
