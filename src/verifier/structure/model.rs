//! What is known of a program before its first instruction is walked.

use super::graph::Graph;
use crate::isa::Code;
use crate::util::{MapId, Pc, TypeId};

/// A program whose structure the kernel takes.
#[derive(Debug)]
pub(crate) struct Structure {
    /// The instructions.
    pub code: Code,
    /// The functions in rising order, the main program first.
    pub subprograms: Vec<SubprogramInfo>,
    /// What is known of each slot.
    pub insns: Vec<InsnInfo>,
    /// Who follows whom.
    pub graph: Graph,
    /// The maps that the instructions name, in the order in which they first do.
    pub used_maps: Vec<MapId>,
    /// The function that exceptions end in, by number.
    pub exception_callback: Option<usize>,
    /// One more than the highest [`InsnInfo::scc`].
    pub scc_count: u32,
}

/// A function of the program.
#[derive(Debug, Clone)]
pub(crate) struct SubprogramInfo {
    /// The first instruction.
    pub start: Pc,
    /// The slot after the last.
    pub end: Pc,
    /// The name in BTF; empty without.
    pub name: String,
    /// The `BTF_KIND_FUNC` that `func_info` gives it; none without `func_info`.
    pub type_id: Option<TypeId>,
    /// It has global linkage in BTF, and is verified on its own (`subprog_is_global`).
    pub global: bool,
    /// It makes a tail call itself.
    pub has_tail_call: bool,
    /// It reads the packet by `ABS` or `IND` loads.
    pub has_ld_abs: bool,
    /// Exceptions end in it.
    pub is_exception_cb: bool,
    /// It, or what it calls, may move packet bytes.
    pub changes_pkt_data: bool,
    /// It, or what it calls, may sleep.
    pub might_sleep: bool,
    /// Stack offsets below this are those of spills around calls that keep registers,
    /// as long as nothing else touches them.
    pub fastcall_stack_off: i16,
    /// Such a spill has to stay, for a call does not keep the registers.
    pub keep_fastcall_stack: bool,
}

impl SubprogramInfo {
    /// The function of these slots, of which nothing is known.
    pub(super) fn new(start: Pc, end: Pc) -> Self {
        Self {
            start,
            end,
            name: String::new(),
            type_id: None,
            global: false,
            has_tail_call: false,
            has_ld_abs: false,
            is_exception_cb: false,
            changes_pkt_data: false,
            might_sleep: false,
            fastcall_stack_off: 0,
            keep_fastcall_stack: false,
        }
    }

    /// Its slots.
    pub(super) fn range(&self) -> std::ops::Range<usize> {
        self.start.index()..self.end.index()
    }
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
    /// The number of the function that holds `pc`.
    pub(crate) fn subprogram_of(&self, pc: Pc) -> usize {
        containing(&self.subprograms, pc)
    }

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

/// The number of the function that holds `pc`.
pub(super) fn containing(subprograms: &[SubprogramInfo], pc: Pc) -> usize {
    let after = subprograms.partition_point(|sub| sub.start <= pc);
    after.saturating_sub(1)
}
