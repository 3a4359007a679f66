//! Which operations preserve the contents of the spare registers.

use super::emitter::Emitter;
use super::pins::{Pins, Survey, is_frame_pointer, needs_second};
use super::regs::{Host, host};
use crate::engine::fast::POINTERS;
use crate::isa::{AluOp, Operand, Reg};
use crate::lower::{Branch, Function, Fused, Op};

impl Emitter<'_> {
    /// Prepares a function's code: determines what its spare registers hold, and which
    /// registers it changes and has to save.
    pub(super) fn survey(&mut self, function: &Function) {
        let survey = Survey::of(function, self.lowered, &self.loops);
        // Pointers that the run does not hold need calls.
        let pointers = &self.lowered.context().pointers;
        let at_hand = pointers.len() <= POINTERS && pointers.iter().all(|field| !field.2);
        let needs_second = || !at_hand || self.lowered.ops_of(function).iter().any(needs_second);
        self.pins = Pins::of(&survey, needs_second);
        self.calls = survey.used.calls;
        (self.tail_calls, self.counts_loops) = (survey.used.tail_calls, survey.used.loops);
        let is_pin = |host: &Host| self.pins.iter().any(|(_, pin)| pin == *host);
        let kept = [Reg::R6, Reg::R7, Reg::R8, Reg::R9];
        let used = |reg: &Reg| survey.used.regs.contains(*reg);
        let hosts = kept.into_iter().filter_map(|reg| Some((reg, host(reg)?)));
        let changed = hosts.filter(|(reg, host)| used(reg) || is_pin(host));
        self.changed = changed.map(|(_, host)| host).collect();
    }
}

impl Emitter<'_> {
    /// Whether the code of an operation preserves the first spare register, or has recorded
    /// what it holds.
    pub(super) fn keeps(&self, op: &Op) -> bool {
        match *op {
            Op::Alu { op, src, .. } => self.alu_keeps(op, src),
            Op::MovSx { src, .. } => src != Reg::R10,
            Op::Load { .. } | Op::LoadSx { .. } | Op::Store { .. } | Op::JumpIf { .. } => {
                !needs_second(op)
            }
            Op::Neg { .. }
            | Op::Endian { .. }
            | Op::LoadImm { .. }
            | Op::Known { .. }
            | Op::Jump { .. } => true,
            _ => false,
        }
    }

    fn alu_keeps(&self, op: AluOp, src: Operand) -> bool {
        match (op, src) {
            (AluOp::Div | AluOp::Mod | AluOp::Sdiv | AluOp::Smod, _) => false,
            (AluOp::Lsh | AluOp::Rsh | AluOp::Arsh, Operand::Reg(_)) => {
                self.features.bmi2 && !is_frame_pointer(src)
            }
            _ => !is_frame_pointer(src),
        }
    }

    /// The same for a fused operation.
    pub(super) fn fused_keeps(&self, fused: &Fused) -> bool {
        match *fused {
            Fused::Alu {
                op, left, right, ..
            } => left != Reg::R10 && self.alu_keeps(op, right),
            Fused::Rotate { src, .. } | Fused::Extract { src, .. } | Fused::Bits { src, .. } => {
                src != Reg::R10
            }
            Fused::ShiftAdd { base, index, .. } => base != Reg::R10 && index != Reg::R10,
            Fused::LoadIndexed { .. }
            | Fused::LoadAlu { .. }
            | Fused::Update { .. }
            | Fused::Copy { .. } => true,
            Fused::Branch(branch) | Fused::LoadBranch { branch, .. } => branch_keeps(&branch),
            Fused::AluBranch {
                copy,
                op,
                src,
                branch,
                ..
            } => {
                let copies_frame = copy.is_some_and(|(_, from)| from == Reg::R10);
                !copies_frame && self.alu_keeps(op, src) && branch_keeps(&branch)
            }
            Fused::Select { .. } => false,
        }
    }
}

fn branch_keeps(branch: &Branch) -> bool {
    branch.left != Reg::R10 && !is_frame_pointer(branch.right)
}
