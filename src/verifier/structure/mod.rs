//! STUB until the room is merged.
#![allow(clippy::all, missing_docs, unused)]
use crate::isa::{Code, RegSet};
use crate::util::Pc;
pub(crate) struct Structure { pub code: Code, pub subprograms: Vec<SubprogramInfo>, pub insns: Vec<InsnInfo> }
pub(crate) struct SubprogramInfo { pub start: Pc, pub end: Pc, pub name: String, pub global: bool, pub has_tail_call: bool, pub changes_pkt_data: bool, pub might_sleep: bool }
#[derive(Default)]
pub(crate) struct InsnInfo { pub prune_point: bool, pub jmp_point: bool, pub force_checkpoint: bool, pub calls_callback: bool, pub scc: u32, pub live: u16 }

pub(crate) fn check_constant(op: crate::isa::AluOp, width: crate::isa::Width, src: crate::isa::Operand) -> super::reject::Checked { Ok(()) }

impl Structure { pub fn subprogram_at(&self, _pc: Pc) -> Option<u32> { None } }
pub(crate) fn reserved(code: &Code, pc: Pc) -> super::reject::Reject { super::reject::Reject::new(crate::util::Errno::EINVAL, "unknown opcode") }
pub(crate) fn check(program: &crate::program::Program) -> super::reject::Checked<Structure> {
    let code = Code::new(&program.insns);
    let n = code.len();
    Ok(Structure { code, subprograms: vec![SubprogramInfo{start: Pc(0), end: Pc(n as u32), name: String::new(), global: true, has_tail_call: false, changes_pkt_data: false, might_sleep: false}], insns: (0..n).map(|_| InsnInfo { prune_point: false, jmp_point: false, force_checkpoint: false, calls_callback: false, scc: 0, live: u16::MAX }).collect() })
}
pub(crate) fn check_depth(_structure: &Structure, _program: &crate::program::Program, _depths: &[u32]) -> super::reject::Checked { Ok(()) }
