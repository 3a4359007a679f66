//! Zeroes memory in both forms, so that its former contents are no input.

use super::dataflow::Bytes;
use super::emit::pieces;
use super::patch::{Block, Patch};
use super::plan::Plan;
use crate::isa::{JumpOp, Reg, Size};

/// Inserts the zeros: into ring-buffer records when they are reserved, and at the start of
/// functions into stack that is read before it is written.
pub(super) fn insert(plan: &Plan, patch: &mut Patch) {
    for clear in &plan.clears {
        let null = patch.label();
        let mut block = Block::default();
        block.jump_if(JumpOp::Eq, Reg::R0, 0, null);
        for (at, size) in pieces(0, 8, clear.size) {
            block.store(size, Reg::R0, at, 0);
        }
        block.bind(null);
        patch.after(clear.pc, block);
    }
    for function in &plan.functions {
        if function.unwritten != Bytes::default() {
            let mut block = Block::default();
            for slot in function.unwritten.slots() {
                block.store(Size::Dw, Reg::FP, slot, 0);
            }
            patch.entry(function.start, block);
        }
    }
}
