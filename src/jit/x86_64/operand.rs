//! Memory operands and opcodes.

use super::regs::Host;
use crate::isa::{AluOp, Size, Width};

/// The host address of an access: `base + index * 2^scale + off`. The index is not `rsp`.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub base: Host,
    pub index: Option<Host>,
    pub scale: u8,
    pub off: i32,
}

impl At {
    /// `base + off`.
    pub(super) const fn new(base: Host, off: i32) -> Self {
        Self {
            base,
            index: None,
            scale: 0,
            off,
        }
    }

    /// `base + index + off`.
    pub(super) const fn indexed(base: Host, index: Host, off: i32) -> Self {
        Self {
            base,
            index: Some(index),
            scale: 0,
            off,
        }
    }
}

/// An opcode and its prefixes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opcode {
    /// With 16 bits (`66`).
    pub is_word: bool,
    /// With 64 bits (`REX.W`).
    pub is_quad: bool,
    /// Only the lowest byte of the register is used.
    pub is_byte: bool,
    /// Two bytes, beginning with `0f`.
    pub is_long: bool,
    pub code: u8,
}

/// The same with 32 bits.
const fn plain(code: u8) -> Opcode {
    Opcode {
        is_word: false,
        is_quad: false,
        is_byte: false,
        is_long: false,
        code,
    }
}

impl Opcode {
    const fn quad(self) -> Self {
        Self {
            is_quad: true,
            ..self
        }
    }

    const fn long(self) -> Self {
        Self {
            is_long: true,
            ..self
        }
    }

    /// An operation on `size` bytes in memory with this opcode, or the preceding one for
    /// bytes.
    const fn sized(code: u8, size: Size) -> Self {
        let op = plain(code);
        match size {
            Size::B => Self {
                is_byte: true,
                code: code - 1,
                ..op
            },
            Size::H => Self {
                is_word: true,
                ..op
            },
            Size::W => op,
            Size::Dw => op.quad(),
        }
    }

    /// `mov [at], reg`.
    pub(super) const fn store(size: Size) -> Self {
        Self::sized(0x89, size)
    }

    /// `mov [at], imm`; the register is 0.
    pub(super) const fn store_imm(size: Size) -> Self {
        Self::sized(0xc7, size)
    }

    /// `mov reg, [at]`, zero-extended to 64 bits.
    pub(super) const fn load(size: Size) -> Self {
        match size {
            Size::B => plain(0xb6).long(),
            Size::H => plain(0xb7).long(),
            Size::W => plain(0x8b),
            Size::Dw => plain(0x8b).quad(),
        }
    }

    /// `movsx reg, [at]`, sign-extended to 64 bits.
    pub(super) const fn load_signed(size: Size) -> Self {
        match size {
            Size::B => plain(0xbe).long().quad(),
            Size::H => plain(0xbf).long().quad(),
            Size::W => plain(0x63).quad(),
            Size::Dw => plain(0x8b).quad(),
        }
    }

    /// `lea reg, [at]`, all 64 bits.
    pub(super) const LEA: Self = plain(0x8d).quad();
    /// The same, the lower half.
    pub(super) const LEA32: Self = plain(0x8d);

    /// `op [at], reg`; none where the host has no such instruction.
    pub(super) const fn update(op: AluOp, size: Size) -> Option<Self> {
        match Digit::of(op) {
            Some(Digit(digit)) => Some(Self::sized(digit << 3 | 1, size)),
            None => None,
        }
    }

    /// `op [at], imm`, and the opcode part in the register field; none where the host has
    /// no such instruction. The immediate has 8 bits if it fits, else those of the size.
    pub(super) fn update_imm(op: AluOp, size: Size, imm: i32) -> Option<(Self, Host)> {
        let is_small = i8::try_from(imm).is_ok() && size != Size::B;
        let code = if is_small { 0x83 } else { 0x81 };
        Some((Self::sized(code, size), Digit::of(op)?.0))
    }

    /// `cmp [at], imm`, with [`COMPARE`](Self::COMPARE) in the register field, as
    /// [`update_imm`](Self::update_imm).
    pub(super) fn compare_imm(size: Size, imm: i32) -> Self {
        let is_small = i8::try_from(imm).is_ok() && size != Size::B;
        Self::sized(if is_small { 0x83 } else { 0x81 }, size)
    }

    /// The register field of a comparison with an immediate.
    pub(super) const COMPARE: Host = Digit::CMP.0;

    /// `op reg, [at]`; none where the host has no such instruction.
    pub(super) const fn with_load(op: AluOp, width: Width) -> Option<Self> {
        let opcode = match (op, Digit::of(op)) {
            (AluOp::Mul, _) => plain(0xaf).long(),
            (_, Some(Digit(digit))) => plain(digit << 3 | 3),
            (_, None) => return None,
        };
        Some(match width {
            Width::W64 => opcode.quad(),
            Width::W32 => opcode,
        })
    }
}

/// The operation of an instruction with an immediate: a part of its opcode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Digit(pub u8);

impl Digit {
    pub(super) const ADD: Self = Self(0);
    pub(super) const OR: Self = Self(1);
    pub(super) const AND: Self = Self(4);
    pub(super) const SUB: Self = Self(5);
    pub(super) const XOR: Self = Self(6);
    pub(super) const CMP: Self = Self(7);

    const fn of(op: AluOp) -> Option<Self> {
        Some(match op {
            AluOp::Add => Self::ADD,
            AluOp::Or => Self::OR,
            AluOp::And => Self::AND,
            AluOp::Sub => Self::SUB,
            AluOp::Xor => Self::XOR,
            _ => return None,
        })
    }
}
