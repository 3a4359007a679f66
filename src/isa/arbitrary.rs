//! Generated instructions for the property tests of this folder.

use proptest::prelude::*;
use proptest::sample::select;

use super::insn::{CallTarget, Insn, Operand};
use super::raw::RawInsn;
use super::reg::Reg;
use super::table::{
    AluOp, AtomicOp, EndianOp, EndianSize, JumpOp, PseudoKind, SignedSize, Size, Width,
};
use crate::util::{HelperId, TypeId};

fn reg() -> impl Strategy<Value = Reg> {
    select(Reg::ALL.to_vec())
}

fn width() -> impl Strategy<Value = Width> {
    select(Width::ALL)
}

fn size() -> impl Strategy<Value = Size> {
    select(Size::ALL)
}

/// Boundary values and arbitrary ones, equally often.
fn imm() -> impl Strategy<Value = i32> {
    prop_oneof![any::<i32>(), -3..=3, Just(i32::MIN), Just(i32::MAX)]
}

fn off() -> impl Strategy<Value = i16> {
    prop_oneof![any::<i16>(), -3i16..=3, Just(i16::MIN), Just(i16::MAX)]
}

fn operand() -> impl Strategy<Value = Operand> {
    prop_oneof![reg().prop_map(Operand::Reg), imm().prop_map(Operand::Imm)]
}

fn arithmetic() -> impl Strategy<Value = Insn> {
    let extension = select(vec![
        (Width::W32, SignedSize::S8),
        (Width::W32, SignedSize::S16),
        (Width::W64, SignedSize::S8),
        (Width::W64, SignedSize::S16),
        (Width::W64, SignedSize::S32),
    ]);
    let alu = (select(AluOp::ALL), width(), reg(), operand());
    let endian = (select(EndianOp::ALL), select(EndianSize::ALL), reg());
    prop_oneof![
        6 => alu.prop_map(|(op, width, dst, src)| Insn::Alu { op, width, dst, src }),
        1 => (extension, reg(), reg())
            .prop_map(|((width, from), dst, src)| Insn::MovSx { width, from, dst, src }),
        1 => (width(), reg()).prop_map(|(width, dst)| Insn::Neg { width, dst }),
        1 => endian.prop_map(|(op, size, dst)| Insn::Endian { op, size, dst }),
        1 => (reg(), reg(), 0u16..2)
            .prop_map(|(dst, src, to)| Insn::AddrSpaceCast { dst, src, to, from: 1 - to }),
    ]
}

fn memory() -> impl Strategy<Value = Insn> {
    let packet = (
        select(vec![Size::B, Size::H, Size::W]),
        proptest::option::of(reg()),
        imm(),
    );
    prop_oneof![
        (size(), reg(), reg(), off()).prop_map(|(size, dst, base, off)| Insn::Load {
            size,
            dst,
            base,
            off
        }),
        (select(SignedSize::ALL), reg(), reg(), off()).prop_map(|(from, dst, base, off)| {
            Insn::LoadSx {
                from,
                dst,
                base,
                off,
            }
        }),
        (size(), reg(), off(), operand()).prop_map(|(size, base, off, src)| Insn::Store {
            size,
            base,
            off,
            src
        }),
        (select(AtomicOp::ALL), width(), reg(), off(), reg()).prop_map(
            |(op, width, base, off, src)| Insn::Atomic {
                op,
                width,
                base,
                off,
                src
            }
        ),
        (size(), reg(), reg(), off()).prop_map(|(size, dst, base, off)| Insn::LoadAcquire {
            size,
            dst,
            base,
            off
        }),
        (size(), reg(), off(), reg()).prop_map(|(size, base, off, src)| Insn::StoreRelease {
            size,
            base,
            off,
            src
        }),
        packet.prop_map(|(size, index, off)| Insn::LoadPacket { size, index, off }),
        (reg(), any::<u64>()).prop_map(|(dst, value)| Insn::LoadImm64 { dst, value }),
        (reg(), 0u64..10).prop_map(|(dst, value)| Insn::LoadImm64 { dst, value }),
        (reg(), select(PseudoKind::ALL), imm(), imm()).prop_map(|(dst, kind, first, second)| {
            Insn::LoadPseudo {
                dst,
                source: kind.with_imms(first, second),
            }
        }),
    ]
}

fn control() -> impl Strategy<Value = Insn> {
    let condition = (select(JumpOp::ALL), width(), reg(), operand(), off());
    let call = prop_oneof![
        any::<u32>().prop_map(|id| CallTarget::Helper(HelperId(id))),
        (0u32..212).prop_map(|id| CallTarget::Helper(HelperId(id))),
        imm().prop_map(|rel| CallTarget::Subprogram { rel }),
        (any::<u32>(), off()).prop_map(|(id, fd_index)| CallTarget::Kfunc {
            id: TypeId(id),
            fd_index
        }),
    ];
    prop_oneof![
        1 => off().prop_map(|off| Insn::Jump { off }),
        1 => imm().prop_map(|off| Insn::JumpLong { off }),
        3 => condition
            .prop_map(|(op, width, dst, src, off)| Insn::JumpIf { op, width, dst, src, off }),
        1 => off().prop_map(|off| Insn::MayGoto { off }),
        2 => call.prop_map(Insn::Call),
        1 => reg().prop_map(|target| Insn::CallReg { target }),
        1 => Just(Insn::Exit),
    ]
}

/// Any valid instruction.
pub(crate) fn insn() -> impl Strategy<Value = Insn> {
    prop_oneof![arithmetic(), memory(), control()]
}

/// Any slot, most of them close to a valid instruction: zero and small field values are
/// frequent.
pub(super) fn raw() -> impl Strategy<Value = RawInsn> {
    let reg = || prop_oneof![Just(0u8), 0u8..12, 0u8..16];
    let small = prop_oneof![4 => Just(0i16), 2 => select(vec![1i16, 8, 16, 32]), 1 => any::<i16>()];
    let constants = select(vec![
        1, 0x10, 0x20, 0x40, 0x100, 0x110, 0xe1, 0xf1, 0x1_0000,
    ]);
    let imm = prop_oneof![4 => Just(0i32), 2 => constants, 1 => any::<i32>()];
    (any::<u8>(), reg(), reg(), small, imm)
        .prop_map(|(opcode, dst, src, off, imm)| RawInsn::new(opcode, dst, src, off, imm))
}
