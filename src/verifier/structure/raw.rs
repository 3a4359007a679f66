//! Fields of raw slots, for the checks before exploration: the opcode, and the fields that
//! determine control flow. The slot may be an invalid instruction (the kernel finds this
//! out only on an explored path), or the second slot of a 64-bit immediate.

use crate::isa::{Flow, PseudoKind, RawInsn};
use crate::util::{HelperId, Pc, TypeId};

/// `BPF_JMP | BPF_CALL`.
const CALL: u8 = 0x85;
/// `BPF_JMP | BPF_EXIT`.
const EXIT: u8 = 0x95;
/// `BPF_JMP | BPF_JA` and `BPF_JMP32 | BPF_JA`.
const GOTO: [u8; 2] = [0x05, 0x06];
/// The class bits of an opcode.
const CLASS: u8 = 0x07;
/// `BPF_LDX`.
const LDX: u8 = 0x01;
/// `BPF_LDX | BPF_MEM` and `BPF_LDX | BPF_MEMSX`.
const LOAD_MODES: [u8; 2] = [0x61, 0x81];
/// The class and mode bits of an opcode.
const CLASS_AND_MODE: u8 = 0xe7;
/// `BPF_LD | BPF_ABS` and `BPF_LD | BPF_IND`.
const LD_PACKET: [u8; 2] = [0x20, 0x40];
/// The operation bits of arithmetic and jumps.
const OPERATION: u8 = 0xf0;
/// `BPF_X`: the second operand is a register.
const SRC_X: u8 = 0x08;
/// `BPF_ALU64 | BPF_MOV | BPF_X`.
const MOV64_X: u8 = 0xbf;
/// `BPF_STX | BPF_ATOMIC`.
const ATOMIC: u8 = 0xc3;
/// `BPF_STX | BPF_MEM | BPF_DW`.
const STORE_DW: u8 = 0x7b;
/// `BPF_LDX | BPF_MEM | BPF_DW`.
const LOAD_DW: u8 = 0x79;
/// `BPF_JMP | BPF_JCOND`.
const MAY_GOTO: u8 = 0xe5;

/// The number of the frame pointer.
const FP: u8 = 10;

/// The target of a `call`, by its source field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Callee {
    /// A helper.
    Helper(HelperId),
    /// The function that begins here.
    Subprogram(i64),
    /// A kfunc.
    Kfunc {
        /// Its BTF id.
        id: TypeId,
        /// The index of its module's BTF, 0 for the kernel.
        fd_index: i16,
    },
    /// No valid call has this source field.
    Nothing,
}

/// The callee of the slot at `pc`, if it is a call.
pub(super) fn callee(raw: RawInsn, pc: Pc) -> Option<Callee> {
    (raw.opcode == CALL).then(|| match raw.src() {
        0 => Callee::Helper(HelperId(raw.imm.cast_unsigned())),
        1 => Callee::Subprogram(relative(pc, raw)),
        2 => Callee::Kfunc {
            id: TypeId(raw.imm.cast_unsigned()),
            fd_index: raw.off,
        },
        _ => Callee::Nothing,
    })
}

/// The function whose address the slot at `pc` loads, if any.
pub(super) fn callback(raw: RawInsn, pc: Pc) -> Option<i64> {
    let loads = raw.is_wide() && raw.src() == PseudoKind::Func.src();
    loads.then(|| relative(pc, raw))
}

fn relative(pc: Pc, raw: RawInsn) -> i64 {
    i64::from(pc.0) + 1 + i64::from(raw.imm)
}

/// Whether it calls a function through a register, which the kernel doesn't support.
pub(super) fn is_call_of_register(raw: RawInsn) -> bool {
    raw.opcode == CALL | SRC_X
}

/// Whether it is an `ABS` or `IND` load.
pub(super) fn is_packet_load(raw: RawInsn) -> bool {
    LD_PACKET.contains(&(raw.opcode & CLASS_AND_MODE))
}

/// Whether it loads from memory, in any mode.
pub(super) fn is_load(raw: RawInsn) -> bool {
    raw.opcode & CLASS == LDX
}

/// Whether a load has one of the two valid modes.
pub(super) fn is_plain_load(raw: RawInsn) -> bool {
    LOAD_MODES.contains(&(raw.opcode & CLASS_AND_MODE))
}

/// Whether it can be the last instruction of a function.
pub(super) fn ends_function(raw: RawInsn) -> bool {
    raw.opcode == EXIT || GOTO.contains(&raw.opcode)
}

/// Whether it is a `may_goto`.
pub(super) fn is_may_goto(raw: RawInsn) -> bool {
    raw.opcode == MAY_GOTO && raw.src() == 0
}

/// The target of the slot at `pc`, if it jumps.
pub(super) fn jump(raw: RawInsn, pc: Pc) -> Option<i64> {
    match Flow::of_raw(raw, pc) {
        Flow::Goto(to) | Flow::Branch(to) => Some(to),
        Flow::Next | Flow::Exit => None,
    }
}

/// The register and the offset of a 64-bit store to the stack.
pub(super) fn spill(raw: RawInsn) -> Option<(u8, i16)> {
    (raw.opcode == STORE_DW && raw.dst() == FP).then_some((raw.src(), raw.off))
}

/// The register and the offset of a 64-bit load from the stack.
pub(super) fn fill(raw: RawInsn) -> Option<(u8, i16)> {
    (raw.opcode == LOAD_DW && raw.src() == FP).then_some((raw.dst(), raw.off))
}

/// Instructions that share the kernel's check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Alu,
    Mov,
    Neg,
    End,
    Imm64,
    Packet,
    Load,
    Store,
    StoreReg,
    Atomic,
    Call,
    Goto,
    Exit,
    MayGoto,
    Branch,
    Unknown,
}

/// The family of an opcode.
pub(super) fn family(raw: RawInsn) -> Family {
    match (raw.opcode & CLASS, raw.opcode & OPERATION) {
        (0x00, _) if raw.is_wide() => Family::Imm64,
        (0x00, _) if is_packet_load(raw) => Family::Packet,
        (LDX, _) => Family::Load,
        (0x02, _) => Family::Store,
        (0x03, _) if raw.opcode & CLASS_AND_MODE == ATOMIC => Family::Atomic,
        (0x03, _) => Family::StoreReg,
        (0x04 | 0x07, 0x80) => Family::Neg,
        (0x04 | 0x07, 0xb0) => Family::Mov,
        (0x04 | 0x07, 0xd0) => Family::End,
        (0x04 | 0x07, 0x00..=0xc0) => Family::Alu,
        (0x05, 0x80) if raw.opcode == CALL => Family::Call,
        (0x05, 0x90) => Family::Exit,
        (0x05 | 0x06, 0x00) => Family::Goto,
        (0x05 | 0x06, 0xe0) => Family::MayGoto,
        (0x05 | 0x06, 0x10..=0xd0) if raw.opcode & OPERATION != 0x80 => Family::Branch,
        _ => Family::Unknown,
    }
}

/// Whether a move between registers is an address space cast.
pub(super) fn is_address_cast(raw: RawInsn) -> bool {
    raw.opcode == MOV64_X && raw.off == 1
}

/// Whether the source field of arithmetic, a load or a store is a register that is read.
pub(super) fn reads_source(raw: RawInsn) -> bool {
    match family(raw) {
        Family::Alu | Family::Mov => raw.opcode & SRC_X != 0,
        Family::Load | Family::StoreReg | Family::Atomic => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::assemble;

    fn slot(text: &str) -> RawInsn {
        assemble(text).unwrap()[0]
    }

    /// The opcodes are those of the instruction set.
    #[test]
    fn slots_are_seen_as_what_they_are() {
        assert_eq!(
            callee(slot("call 12"), Pc(0)),
            Some(Callee::Helper(HelperId(12)))
        );
        assert_eq!(
            callee(slot("call pc+4"), Pc(3)),
            Some(Callee::Subprogram(8))
        );
        assert!(slot("r1 = 5 ll").is_wide() && !slot("r1 = 5").is_wide());
        assert!(is_packet_load(slot("r0 = *(u8 *)skb[4]")));
        assert!(is_packet_load(slot("r0 = *(u32 *)skb[r7 + 4]")));
        assert!(!is_packet_load(slot("r1 = *(u32 *)(r7 + 4)")));
        for text in ["exit", "goto +0", "gotol +0"] {
            assert!(ends_function(slot(text)), "{text}");
        }
        assert!(!ends_function(slot("if r1 == 0 goto +0")));
        assert!(is_may_goto(slot("may_goto +1")));
        assert_eq!(jump(slot("gotol -3"), Pc(3)), Some(1));
        assert_eq!(jump(slot("may_goto +1"), Pc(3)), Some(5));
        assert_eq!(jump(slot("exit"), Pc(3)), None);
        assert_eq!(spill(slot("*(u64 *)(r10 - 16) = r3")), Some((3, -16)));
        assert_eq!(spill(slot("*(u32 *)(r10 - 16) = r3")), None);
        assert_eq!(fill(slot("r4 = *(u64 *)(r10 - 16)")), Some((4, -16)));
        assert_eq!(fill(slot("r4 = *(u64 *)(r9 - 16)")), None);
    }
}
