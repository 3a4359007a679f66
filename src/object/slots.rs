//! The few raw instructions that a loader recognises and creates. They are slots, not
//! decoded instructions: an object's code isn't valid before relocation.

use crate::isa::{PseudoKind, RawInsn};

/// `BPF_JMP | BPF_CALL`.
pub(super) const CALL: u8 = 0x85;
/// `BPF_LD | BPF_IMM | BPF_DW`: an immediate of two slots.
pub(super) const LOAD_64: u8 = 0x18;

/// Source field of a call of a subprogram (`BPF_PSEUDO_CALL`).
pub(super) const SUBPROGRAM: u8 = 1;
/// Source field of a kfunc call (`BPF_PSEUDO_KFUNC_CALL`).
pub(super) const KFUNC: u8 = 2;

/// libbpf's immediate for a map that isn't created; the map's index is added.
const POISONED_MAP: i32 = 2_001_000_000;
/// libbpf's immediate for a missing kfunc; the extern's index is added.
const POISONED_KFUNC: i32 = 2_002_000_000;

/// Whether this calls a subprogram.
pub(super) fn calls_subprogram(insn: RawInsn) -> bool {
    insn.opcode == CALL && insn.regs == SUBPROGRAM << 4 && insn.off == 0
}

/// Whether this loads a subprogram's address.
pub(super) fn loads_function(insn: RawInsn) -> bool {
    insn.opcode == LOAD_64 && insn.src() == PseudoKind::Func.src()
}

/// An invalid helper call; its number in the verifier's "invalid func unknown#" identifies
/// the map.
pub(super) fn poisoned_map(index: usize) -> RawInsn {
    poisoned(POISONED_MAP, index)
}

/// An invalid helper call that replaces the call of a missing kfunc.
pub(super) fn poisoned_kfunc(index: usize) -> RawInsn {
    poisoned(POISONED_KFUNC, index)
}

fn poisoned(base: i32, index: usize) -> RawInsn {
    let index = i32::try_from(index).unwrap_or(i32::MAX);
    RawInsn::new(CALL, 0, 0, 0, base.saturating_add(index))
}

/// Whether an instruction refers to a map by file descriptor.
pub(super) fn names_descriptor(insn: RawInsn) -> bool {
    let kinds = [PseudoKind::MapFd, PseudoKind::MapValue];
    insn.opcode == LOAD_64 && kinds.iter().any(|kind| insn.src() == kind.src())
}
