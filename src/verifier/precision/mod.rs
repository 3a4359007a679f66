//! Precision: finds the scalars on whose value the safety of a path depends, by
//! backtracking.
//!
//! Rule: a scalar is *precise* if the verifier used its range: as a pointer's offset, as a
//! size, or to decide a branch. Pruning ignores all other scalars. So every scalar starts
//! as imprecise. Where its range is used, the scalar and its origins are marked as precise
//! in the checkpoints on the path.
//!
//! ```text
//!    0: call 7                   ; bpf_get_prandom_u32
//!    1: r6 = -1000
//!    2: if r0 != 0 goto +1
//!    3: r6 = -8                  ; explored first
//!    4: r1 = r10                 ; checkpoint with r6 = -8
//!    5: r1 += r6                 ; marks r6 precise in the checkpoint
//!    6: *(u8 *)(r1 + 0) = 0
//! ```
//!
//! Without the mark, the checkpoint at 4 would prune the other path, whose `r6 = -1000`
//! writes outside the stack.

pub(super) mod affected;
mod back;
pub(super) mod backtrack_cache;
mod chain;
mod marks;
#[cfg(test)]
mod tests;

pub(crate) use chain::Chain;
pub(crate) use marks::Marks;

use super::env::Verifier;
use super::history::LinkedSet;
use super::reject::{VerifyResult, reject};
use crate::isa::Reg;

impl Verifier<'_> {
    /// Marks the scalar in this register, and its origins on the path, as precise
    /// (`mark_chain_precision`).
    pub(crate) fn mark_precise(&mut self, reg: Reg) -> VerifyResult {
        if !self.privileges.bpf_capable {
            return Ok(());
        }
        if !self.reg(reg).is_scalar() {
            reject!(EFAULT, "verifier bug: backtracking misuse");
        }
        let mut marks = Marks::new(self.state.current());
        marks.set_reg(marks.frame, reg.index());
        self.mark_chain(marks)
    }

    /// Marks the scalar in a slot of a frame.
    pub(crate) fn mark_slot_precise(&mut self, frame: u8, slot: usize) -> VerifyResult {
        let mut marks = Marks::new(self.state.current());
        marks.set_slot(frame.into(), slot);
        self.mark_chain(marks)
    }

    /// Marks the scalars in registers and slots of several frames
    /// (`mark_chain_precision_batch`).
    pub(crate) fn mark_chain(&mut self, marks: Marks) -> VerifyResult {
        if !self.privileges.bpf_capable {
            // Every scalar is precise.
            return Ok(());
        }
        let mut chain = Chain {
            program: self.program,
            maps: &self.maps,
            structure: self.structure,
            arena: &mut self.arena,
            log: &mut self.log,
        };
        let cache = Some(&mut self.backtrack_cache);
        chain
            .mark(&self.state, self.position.pc(), marks, cache)
            .map(|_| ())
    }

    /// Records which operands of the current comparison are stack pointers: backtracking
    /// doesn't need their values (`INSN_F_DST_REG_STACK`, `INSN_F_SRC_REG_STACK`).
    pub(crate) fn note_compared_pointers(&mut self, dst: bool, src: bool) {
        if !dst && !src {
            return;
        }
        self.note_step(None, LinkedSet::default());
        self.state.history.note_stack_operands(dst, src);
    }
}
