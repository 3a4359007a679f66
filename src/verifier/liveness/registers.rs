//! Live registers: those that may be read before they are written
//! (`compute_live_registers`, `kernel/bpf/verifier.c`).
//!
//! ```text
//! out(i) = ∪ in(s)                     for s that follow i
//! in(i)  = out(i) \ writes(i) ∪ reads(i)
//! ```
//!
//! As in the kernel, a call reads as many arguments as its prototype has, and a packet load
//! reads every register.

use crate::isa::{CallTarget, Code, DecodeError, Field, Insn, Problem, Reg, RegSet, decode};
use crate::util::Pc;
use crate::verifier::structure::graph::Graph;
use crate::verifier::structure::summary::Callees;

/// Every register, including bits that no instruction names.
const EVERYTHING: u16 = u16::MAX;

/// The live registers before each slot, as bit masks; empty for unreachable slots.
pub(in crate::verifier) fn live(code: &Code, graph: &Graph, callees: &Callees<'_>) -> Vec<u16> {
    let effects: Vec<(u16, u16)> = (0..code.len())
        .map(|at| effect(code, Pc::from_index(at), callees))
        .collect();
    let mut live = vec![0; code.len()];
    loop {
        let mut changed = false;
        for &pc in graph.postorder() {
            let after = graph
                .successors(pc)
                .fold(0, |set, next| set | live.get(next.index()).unwrap_or(&0));
            let (reads, writes) = effects.get(pc.index()).copied().unwrap_or_default();
            let before = after & !writes | reads;
            if let Some(slot) = live.get_mut(pc.index()) {
                changed |= *slot != before;
                *slot = before;
            }
        }
        if !changed {
            return live;
        }
    }
}

/// The registers that an instruction reads and writes.
fn effect(code: &Code, pc: Pc, callees: &Callees<'_>) -> (u16, u16) {
    let insn = match code.get(pc) {
        Some(Ok(insn)) => Some(insn),
        Some(Err(error)) if error.has_second_slot() => return (0, 0),
        Some(Err(error)) => stand_in(error),
        None => return (0, 0),
    };
    match insn {
        Some(Insn::LoadPacket { .. }) | None => (EVERYTHING, 0),
        Some(insn @ Insn::Call(target)) => {
            let summary = match target {
                CallTarget::Helper(helper) => callees.helper(helper),
                CallTarget::Kfunc { id, fd_index } => callees.kfunc(id, fd_index),
                CallTarget::Subprogram { .. } => None,
            };
            let reads = summary.map_or(insn.reads(), |it| RegSet::arguments(it.arguments));
            (mask(reads), mask(insn.writes()))
        }
        Some(insn) => (mask(insn.reads()), mask(insn.writes())),
    }
}

/// The instruction that an invalid slot would be without its invalid fields. An invalid
/// register becomes the frame pointer, whose liveness is not used.
fn stand_in(mut error: DecodeError) -> Option<Insn> {
    for _ in 0..4 {
        let mut raw = error.raw;
        match (error.field, error.problem) {
            (Field::Dst, Problem::NoSuchRegister) => {
                raw.regs = raw.regs & 0xf0 | Reg::FP.number();
            }
            (Field::Src, Problem::NoSuchRegister) => raw = raw.with_src(Reg::FP.number()),
            (Field::Dst, _) => raw.regs &= 0xf0,
            (Field::Src, _) => raw = raw.with_src(0),
            (Field::Off, _) => raw.off = 0,
            // Byte swaps have no size 0.
            (Field::Imm, _) => raw.imm = if raw.imm == 0 { 16 } else { 0 },
            (Field::Opcode | Field::SecondSlot | Field::SecondImm, _) => return None,
        }
        match decode(&[raw], error.pc) {
            Ok(insn) => return Some(insn),
            Err(next) => error = next,
        }
    }
    None
}

fn mask(set: RegSet) -> u16 {
    set.iter().fold(0, |mask, reg| mask | 1 << reg.number())
}
