//! STUB until the room is merged.
#![allow(clippy::all, missing_docs, unused)]
use crate::isa::{Code, RegSet};
use crate::util::Pc;
pub(crate) struct Structure {
    pub code: Code,
    pub subprograms: Vec<SubprogramInfo>,
    pub insns: Vec<InsnInfo>,
}
pub(crate) struct SubprogramInfo {
    pub start: Pc,
    pub end: Pc,
    pub name: String,
    pub global: bool,
    pub has_tail_call: bool,
    pub changes_pkt_data: bool,
    pub might_sleep: bool,
}
#[derive(Default)]
pub(crate) struct InsnInfo {
    pub prune_point: bool,
    pub jmp_point: bool,
    pub force_checkpoint: bool,
    pub calls_callback: bool,
    pub scc: u32,
    pub live: u16,
}

pub(crate) fn check_constant(
    op: crate::isa::AluOp,
    width: crate::isa::Width,
    src: crate::isa::Operand,
) -> super::reject::Checked {
    Ok(())
}

pub(crate) fn is_gpl_compatible(license: &str) -> bool {
    license == "GPL"
}
