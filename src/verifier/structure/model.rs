//! The results of the checks before exploration.

use std::sync::Arc;

use super::functions::SubprogramInfo;
use crate::analysis::{Graph, Postorder};
use crate::isa::Code;
use crate::util::Pc;
use crate::verifier::precision::affected::Affected;

/// A program with a valid structure.
#[derive(Debug)]
pub(crate) struct Structure {
    /// The instructions.
    pub code: Arc<Code>,
    /// The functions in ascending order, the main program first.
    pub subprograms: Vec<SubprogramInfo>,
    /// The properties of each slot.
    pub insns: Vec<InsnInfo>,
    /// The control-flow graph.
    pub graph: Graph,
    /// The reachable instructions of each function in postorder (`compute_postorder`).
    pub postorder: Postorder,
    /// The number of the exception callback.
    pub exception_callback: Option<usize>,
    /// Whether the program refers to an arena.
    pub has_arena: bool,
}

/// The properties of an instruction (`struct bpf_insn_aux_data`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct InsnInfo {
    /// Whether states are compared and checkpoints created before it.
    pub prune_point: bool,
    /// Whether it can be reached by a jump, a call or a return: the history records it.
    pub jmp_point: bool,
    /// Whether a checkpoint is always created before it.
    pub force_checkpoint: bool,
    /// Whether it calls a helper that calls a subprogram before it returns.
    pub calls_callback: bool,
    /// Whether it calls a kfunc that advances an iterator (`is_iter_next`).
    pub advances_iterator: bool,
    /// Whether it is the target of a jump or a call.
    pub jump_target: bool,
    /// Whether it is part of a `bpf_fastcall` spill and fill.
    pub fastcall_pattern: bool,
    /// At a `bpf_fastcall` call: the number of spills before it that can be removed.
    pub fastcall_spills: u8,
    /// The registers that are live before it, as a bit mask with bit 0 for `r0`.
    pub live: u16,
    /// What a step back over it may change during backtracking.
    pub affected: Affected,
    /// The number of its loop, or 0: instructions with the same number can reach each
    /// other.
    pub scc: u32,
}

impl Structure {
    /// The number of the function that begins at `pc`.
    pub(crate) fn subprogram_at(&self, pc: Pc) -> Option<usize> {
        self.subprograms
            .binary_search_by_key(&pc, |sub| sub.start)
            .ok()
    }

    /// The properties of the instruction at `pc`; the default if there is none.
    pub(crate) fn info(&self, pc: Pc) -> InsnInfo {
        self.insns.get(pc.index()).copied().unwrap_or_default()
    }
}
