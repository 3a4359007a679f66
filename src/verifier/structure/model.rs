//! What is known of a program before its first instruction is walked.

use std::sync::Arc;

use super::functions::SubprogramInfo;
use super::graph::Graph;
use crate::isa::Code;
use crate::util::Pc;

/// A program whose structure the kernel takes.
#[derive(Debug)]
pub(crate) struct Structure {
    /// The instructions.
    pub code: Arc<Code>,
    /// The functions in rising order, the main program first.
    pub subprograms: Vec<SubprogramInfo>,
    /// What is known of each slot.
    pub insns: Vec<InsnInfo>,
    /// Who follows whom.
    pub graph: Graph,
    /// The function that exceptions end in, by number.
    pub exception_callback: Option<usize>,
}

/// What is known of an instruction (`struct bpf_insn_aux_data`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct InsnInfo {
    /// States are compared and kept before it.
    pub prune_point: bool,
    /// It can be arrived at by a jump, a call or a return: the way is remembered.
    pub jmp_point: bool,
    /// A state is always kept before it.
    pub force_checkpoint: bool,
    /// It calls a helper that calls a subprogram before it returns.
    pub calls_callback: bool,
    /// A jump or a call leads to it.
    pub jump_target: bool,
    /// It belongs to a spill and fill around a call.
    pub fastcall_pattern: bool,
    /// At a call that keeps registers: how many spills before it can go.
    pub fastcall_spills: u8,
    /// Registers that may be read from here on before they are written: a bit each,
    /// bit 0 that of `r0`.
    pub live: u16,
    /// The loop that it belongs to: instructions with the same number above 0 can
    /// reach one another.
    pub scc: u32,
}

impl Structure {
    /// The number of the function that begins at `pc`.
    pub(crate) fn subprogram_at(&self, pc: Pc) -> Option<usize> {
        self.subprograms
            .binary_search_by_key(&pc, |sub| sub.start)
            .ok()
    }

    /// What is known of the instruction at `pc`; of none, nothing.
    pub(crate) fn info(&self, pc: Pc) -> InsnInfo {
        self.insns.get(pc.index()).copied().unwrap_or_default()
    }
}
