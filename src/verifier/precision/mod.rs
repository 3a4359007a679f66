//! Precision: numbers that a path's safety rests on, found by walking back.
//!
//! Two states that differ only in numbers on which nothing rests are the same for
//! pruning. So no number is precise at first; where one is needed (as the offset of a
//! pointer, in a branch that goes one way only, as a size), it and what it was made of
//! are marked in the kept states that led here.

mod back;
mod chain;
mod marks;
#[cfg(test)]
mod tests;
mod trodden;

pub(crate) use chain::{Chain, before};
pub(crate) use marks::Marks;
pub(crate) use trodden::Trodden;

use super::env::Verifier;
use super::reject::{Checked, reject};
use super::state::LinkedSet;
use crate::isa::Reg;

impl Verifier<'_> {
    /// The path's safety rests on this register's number: marks it, and all that it
    /// was made of, on the way here (`mark_chain_precision`).
    pub(crate) fn mark_precise(&mut self, reg: Reg) -> Checked {
        if !self.reg(reg).is_scalar() {
            reject!(EFAULT, "verifier bug: backtracking misuse");
        }
        let mut marks = Marks::new(self.state.current());
        marks.set_reg(marks.frame, reg.index());
        self.mark_chain(marks)
    }

    /// The same for the number in a slot of a frame.
    pub(crate) fn mark_slot_precise(&mut self, frame: u8, slot: usize) -> Checked {
        let mut marks = Marks::new(self.state.current());
        marks.set_slot(frame.into(), slot);
        self.mark_chain(marks)
    }

    /// The same for registers and slots of several frames
    /// (`mark_chain_precision_batch`).
    pub(crate) fn mark_chain(&mut self, marks: Marks) -> Checked {
        let mut trodden = std::mem::take(&mut self.arena.trodden);
        let mut chain = Chain {
            program: self.program,
            maps: &self.maps,
            structure: &self.structure,
            arena: &mut self.arena,
            log: &mut self.log,
        };
        let done = chain.mark(&self.state, self.pc, marks, Some(&mut trodden));
        self.arena.trodden = trodden;
        done.map(|_| ())
    }

    /// Notes which operands of the comparison under way are pointers to the stack: the
    /// way back need not know their numbers (`INSN_F_DST_REG_STACK`,
    /// `INSN_F_SRC_REG_STACK`).
    pub(crate) fn note_compared_pointers(&mut self, dst: bool, src: bool) {
        if !dst && !src {
            return;
        }
        self.note_step(None, LinkedSet::default());
        if let Some(step) = self.state.history.last_mut() {
            step.stack_operands = (dst, src);
        }
    }
}
