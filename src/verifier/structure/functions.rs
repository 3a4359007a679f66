//! The functions of a program.

use std::ops::Range;

use crate::util::{Pc, TypeId};

/// A function of the program.
#[derive(Debug, Clone)]
pub(crate) struct SubprogramInfo {
    /// The first instruction.
    pub start: Pc,
    /// The slot after the last.
    pub end: Pc,
    /// The name in BTF; empty without.
    pub name: String,
    /// The `BTF_KIND_FUNC` from `func_info`; `None` without `func_info`.
    pub type_id: Option<TypeId>,
    /// Whether it has global linkage in BTF, and is verified on its own
    /// (`subprog_is_global`).
    pub global: bool,
    /// Whether it contains a tail call.
    pub has_tail_call: bool,
    /// Whether it contains `ABS` or `IND` packet loads.
    pub has_ld_abs: bool,
    /// Whether it is the exception callback.
    pub is_exception_cb: bool,
    /// Whether it, or a callee, may move packet bytes.
    pub changes_pkt_data: bool,
    /// Whether it, or a callee, may sleep.
    pub might_sleep: bool,
    /// Stack offsets below this are spills of the `bpf_fastcall` pattern, unless other
    /// instructions access them.
    pub fastcall_stack_off: i16,
    /// Whether such a spill has to stay, because its call clobbers registers.
    pub keep_fastcall_stack: bool,
}

impl SubprogramInfo {
    /// The function of these slots, without any properties.
    pub(in crate::verifier) fn new(start: Pc, end: Pc) -> Self {
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
    pub(super) fn range(&self) -> Range<usize> {
        self.start.index()..self.end.index()
    }
}

/// The number of the function that contains `pc`.
pub(super) fn containing(subprograms: &[SubprogramInfo], pc: Pc) -> usize {
    let after = subprograms.partition_point(|sub| sub.start <= pc);
    after.saturating_sub(1)
}
