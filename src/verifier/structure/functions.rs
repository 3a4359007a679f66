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

/// The number of the function that holds `pc`.
pub(super) fn containing(subprograms: &[SubprogramInfo], pc: Pc) -> usize {
    let after = subprograms.partition_point(|sub| sub.start <= pc);
    after.saturating_sub(1)
}
