//! Live registers: those that may be read before they are written
//! (`compute_live_registers`, `kernel/bpf/verifier.c`).
//!
//! As in the kernel, a call reads as many arguments as its prototype has, and a packet load
//! reads every register.

use crate::analysis::{Effect, Graph, Liveness};
use crate::isa::{CallTarget, Code, DecodeError, Field, Insn, Problem, Reg, RegSet, decode};
use crate::util::Pc;
use crate::verifier::structure::summary::Callees;

/// The live registers before each slot, with the early exits of the graph.
pub(in crate::verifier) fn live(code: &Code, graph: &Graph, callees: &Callees<'_>) -> Liveness {
    let slots = (0..code.len()).map(Pc::from_index);
    let effects = slots.map(|pc| effect(code, pc, callees));
    Liveness::new(graph, effects.collect())
}

/// The registers that an instruction reads and writes.
fn effect(code: &Code, pc: Pc, callees: &Callees<'_>) -> Effect {
    let insn = match code.get(pc) {
        Some(Ok(insn)) => Some(insn),
        Some(Err(error)) if error.has_second_slot() => return Effect::default(),
        Some(Err(error)) => stand_in(error),
        None => return Effect::default(),
    };
    match insn {
        Some(Insn::LoadPacket { .. }) | None => Effect {
            reads: RegSet::ALL,
            writes: RegSet::EMPTY,
        },
        Some(insn @ Insn::Call(target)) => {
            let summary = match target {
                CallTarget::Helper(helper) => callees.helper(helper),
                CallTarget::Kfunc { id, fd_index } => callees.kfunc(id, fd_index),
                CallTarget::Subprogram { .. } => None,
            };
            let reads = summary.map_or(insn.reads(), |it| RegSet::arguments(it.arguments));
            Effect {
                reads,
                writes: insn.writes(),
            }
        }
        Some(insn) => Effect {
            reads: insn.reads(),
            writes: insn.writes(),
        },
    }
}

/// The size bits of an opcode, and the opcodes without them whose registers do not depend on
/// the size in the kernel: atomic operations and sign-extending loads.
const SIZE: u8 = 0x18;
const ATOMIC: u8 = 0xc3;
const SIGNED_LOAD: u8 = 0x81;
/// An atomic operation's flag: the source register gets the old value (`BPF_FETCH`).
const FETCH: i32 = 1;

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
            (Field::Imm, _) if raw.opcode & !SIZE == ATOMIC => match raw.opcode & SIZE {
                // 32 or 64 bits.
                0 | SIZE => raw.imm &= FETCH,
                _ => raw.opcode |= SIZE,
            },
            // Byte swaps have no size 0.
            (Field::Imm, _) => raw.imm = if raw.imm == 0 { 16 } else { 0 },
            (Field::Opcode, _) if raw.opcode & !SIZE == SIGNED_LOAD => raw.opcode &= !SIZE,
            (Field::Opcode | Field::SecondSlot | Field::SecondImm, _) => return None,
        }
        match decode(&[raw], error.pc) {
            Ok(insn) => return Some(insn),
            Err(next) => error = next,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::RawInsn;

    #[test]
    fn an_invalid_size_has_registers() {
        let reads = |opcode, imm| {
            let raw = RawInsn::new(opcode, 1, 2, 0, imm);
            let found = stand_in(decode(&[raw], Pc(0)).unwrap_err());
            found.map(|insn| insn.reads())
        };
        let both = Some(RegSet::of(&[Reg::R1, Reg::R2]));
        assert_eq!([0xcb, 0xd3].map(|opcode| reads(opcode, 0x40)), [both; 2]);
        assert_eq!(reads(0xc3, 0x33), both);
        assert_eq!(reads(0x99, 0), Some(RegSet::of(&[Reg::R2])));
        assert_eq!(reads(0xa1, 0), None);
    }
}
