//! The encoder: instructions to slots.

use super::insn::{CallTarget, Insn, Operand};
use super::opcode::{ADDR_SPACE_CAST, LD_IMM64, SRC_X, call, class, mode, op};
use super::raw::RawInsn;
use super::reg::Reg;
use super::table::{AluOp, LOAD_ACQUIRE, STORE_RELEASE, SignedSize, Size, Width};

/// The slots of one instruction; dereferences to a slice of one or two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Encoded {
    slots: [RawInsn; 2],
    second: bool,
}

impl std::ops::Deref for Encoded {
    type Target = [RawInsn];

    fn deref(&self) -> &[RawInsn] {
        if self.second {
            &self.slots
        } else {
            &self.slots[..1]
        }
    }
}

impl Insn {
    /// The slots of the instruction: `encode(decode(x))` is `x`, except for the two fields
    /// that [`decode`](super::decode) ignores.
    ///
    /// ```
    /// use bpflab::isa::{Insn, Reg};
    ///
    /// let insn = Insn::LoadImm64 { dst: Reg::R1, value: 5 << 32 | 7 };
    /// let slots = insn.encode();
    /// assert_eq!(slots.len(), 2);
    /// assert_eq!((slots[0].opcode, slots[0].imm, slots[1].imm), (0x18, 7, 5));
    /// ```
    #[must_use]
    pub fn encode(&self) -> Encoded {
        let one = |slot| Encoded {
            slots: [slot, RawInsn::default()],
            second: false,
        };
        match *self {
            Self::LoadImm64 { dst, value } => {
                let [low, high] = halves(value);
                wide(dst, 0, low, high)
            }
            Self::LoadPseudo { dst, source } => {
                let (first, second) = source.imms();
                wide(dst, source.kind().src(), first, second)
            }
            _ => one(self.first_slot()),
        }
    }

    /// The opcode of the first slot.
    #[must_use]
    pub fn opcode(&self) -> u8 {
        self.encode()[0].opcode
    }

    fn first_slot(&self) -> RawInsn {
        match *self {
            Self::LoadImm64 { .. } | Self::LoadPseudo { .. } => RawInsn::default(),
            Self::Alu {
                op,
                width,
                dst,
                src,
            } => with_operand(op.code() | alu_class(width), dst, src, op.off()),
            Self::MovSx {
                width,
                from,
                dst,
                src,
            } => {
                let off = match (width, from) {
                    (Width::W32, SignedSize::S32) => 0,
                    _ => i16::from(from.bits()),
                };
                slot(op::MOV | SRC_X | alu_class(width), dst, src, off, 0)
            }
            Self::Neg { width, dst } => slot(op::NEG | alu_class(width), dst, Reg::R0, 0, 0),
            Self::Endian { op, size, dst } => {
                slot(op::END | op.code(), dst, Reg::R0, 0, i32::from(size.bits()))
            }
            Self::AddrSpaceCast { dst, src, to, from } => {
                let imm = (u32::from(to) << 16 | u32::from(from)).cast_signed();
                let opcode = AluOp::Mov.code() | SRC_X | class::ALU64;
                slot(opcode, dst, src, ADDR_SPACE_CAST, imm)
            }
            Self::Load {
                size,
                dst,
                base,
                off,
            } => slot(memory(class::LDX, mode::MEM, size), dst, base, off, 0),
            Self::LoadSx {
                from,
                dst,
                base,
                off,
            } => slot(
                memory(class::LDX, mode::MEMSX, from.size()),
                dst,
                base,
                off,
                0,
            ),
            Self::Store {
                size,
                base,
                off,
                src,
            } => match src {
                Operand::Reg(src) => slot(memory(class::STX, mode::MEM, size), base, src, off, 0),
                Operand::Imm(imm) => {
                    slot(memory(class::ST, mode::MEM, size), base, Reg::R0, off, imm)
                }
            },
            Self::Atomic {
                op,
                width,
                base,
                off,
                src,
            } => {
                let opcode = memory(class::STX, mode::ATOMIC, width.size());
                slot(opcode, base, src, off, op.imm())
            }
            Self::LoadAcquire {
                size,
                dst,
                base,
                off,
            } => slot(
                memory(class::STX, mode::ATOMIC, size),
                dst,
                base,
                off,
                LOAD_ACQUIRE,
            ),
            Self::StoreRelease {
                size,
                base,
                off,
                src,
            } => slot(
                memory(class::STX, mode::ATOMIC, size),
                base,
                src,
                off,
                STORE_RELEASE,
            ),
            Self::LoadPacket {
                size,
                index: None,
                off,
            } => slot(memory(class::LD, mode::ABS, size), Reg::R0, Reg::R0, 0, off),
            Self::LoadPacket {
                size,
                index: Some(index),
                off,
            } => slot(memory(class::LD, mode::IND, size), Reg::R0, index, 0, off),
            Self::Jump { off } => slot(op::JA | class::JMP, Reg::R0, Reg::R0, off, 0),
            Self::JumpLong { off } => slot(op::JA | class::JMP32, Reg::R0, Reg::R0, 0, off),
            Self::JumpIf {
                op,
                width,
                dst,
                src,
                off,
            } => with_operand(op.code() | jump_class(width), dst, src, off),
            Self::MayGoto { off } => slot(op::JCOND | class::JMP, Reg::R0, Reg::R0, off, 0),
            Self::Call(target) => {
                let (src, off, imm) = match target {
                    CallTarget::Helper(id) => (call::HELPER, 0, id.0.cast_signed()),
                    CallTarget::Subprogram { rel } => (call::SUBPROGRAM, 0, rel),
                    CallTarget::Kfunc { id, fd_index } => {
                        (call::KFUNC, fd_index, id.0.cast_signed())
                    }
                };
                RawInsn::new(op::CALL | class::JMP, 0, src, off, imm)
            }
            Self::CallReg { target } => slot(op::CALL | SRC_X | class::JMP, target, Reg::R0, 0, 0),
            Self::Exit => slot(op::EXIT | class::JMP, Reg::R0, Reg::R0, 0, 0),
        }
    }
}

/// The slots of a whole program.
#[must_use]
pub fn encode(insns: &[Insn]) -> Vec<RawInsn> {
    insns
        .iter()
        .flat_map(|insn| insn.encode().to_vec())
        .collect()
}

const fn slot(opcode: u8, dst: Reg, src: Reg, off: i16, imm: i32) -> RawInsn {
    RawInsn::new(opcode, dst.number(), src.number(), off, imm)
}

const fn with_operand(opcode: u8, dst: Reg, src: Operand, off: i16) -> RawInsn {
    match src {
        Operand::Reg(src) => slot(opcode | SRC_X, dst, src, off, 0),
        Operand::Imm(imm) => slot(opcode, dst, Reg::R0, off, imm),
    }
}

const fn wide(dst: Reg, src: u8, first: i32, second: i32) -> Encoded {
    Encoded {
        slots: [
            RawInsn::new(LD_IMM64, dst.number(), src, 0, first),
            RawInsn::new(0, 0, 0, 0, second),
        ],
        second: true,
    }
}

const fn halves(value: u64) -> [i32; 2] {
    let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
    [
        i32::from_le_bytes([a, b, c, d]),
        i32::from_le_bytes([e, f, g, h]),
    ]
}

const fn memory(class: u8, mode: u8, size: Size) -> u8 {
    class | mode | size.code()
}

const fn alu_class(width: Width) -> u8 {
    match width {
        Width::W32 => class::ALU,
        Width::W64 => class::ALU64,
    }
}

const fn jump_class(width: Width) -> u8 {
    match width {
        Width::W32 => class::JMP32,
        Width::W64 => class::JMP,
    }
}
