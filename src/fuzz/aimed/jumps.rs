//! Targets of forward jumps.

use crate::isa::RawInsn;

/// Sets the target of a jump to the instruction that comes next.
pub(super) fn land(insns: &mut [RawInsn], jump: usize) {
    let by = insns.len() - jump - 1;
    if let Some(insn) = insns.get_mut(jump) {
        insn.off = i16::try_from(by).unwrap_or_default();
    }
}
