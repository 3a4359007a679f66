//! Instructions with an operand in memory, whose form depends on registers and offsets.

use super::emitter::Emitter;
use super::operand::{At, Digit, Opcode};
use super::regs::Host;
use crate::isa::Width;

impl Emitter<'_> {
    /// `reg op= imm`, sign-extended, or a comparison of both.
    pub(super) fn with_immediate(&mut self, op: Digit, width: Width, reg: Host, imm: i32) {
        let rex = u8::from(width == Width::W64) << 3 | reg >> 3;
        let operand = 0xc0 | op.0 << 3 | reg & 7;
        match i8::try_from(imm) {
            Ok(imm) => self.with_rex(rex, [0x83, operand], imm.into(), 1),
            Err(_) => self.with_rex(rex, [0x81, operand], imm, 4),
        }
    }

    /// `dst op= src`, or a comparison of both, by an instruction that has the second operand in
    /// its register field.
    pub(super) fn with_registers(&mut self, opcode: u8, width: Width, dst: Host, src: Host) {
        let rex = u8::from(width == Width::W64) << 3 | src >> 3 << 2 | dst >> 3;
        self.with_rex(rex, [opcode, 0xc0 | (src & 7) << 3 | dst & 7], 0, 0);
    }

    /// An instruction of an opcode, operands and `size` bytes of an immediate, after a prefix if
    /// it says something.
    fn with_rex(&mut self, rex: u8, [opcode, operands]: [u8; 2], imm: i32, size: usize) {
        let imm = u32::from_le_bytes(imm.to_le_bytes());
        let bytes = u64::from(opcode) | u64::from(operands) << 8 | u64::from(imm) << 16;
        match rex {
            0 => self.code.put(bytes, 2 + size),
            _ => self.code.put(bytes << 8 | u64::from(0x40 | rex), 3 + size),
        }
    }

    /// `dst = src * imm`.
    pub(super) fn multiply(&mut self, width: Width, dst: Host, src: Host, imm: i32) {
        let rex = u8::from(width == Width::W64) << 3 | dst >> 3 << 2 | src >> 3;
        let operands = 0xc0 | (dst & 7) << 3 | src & 7;
        match i8::try_from(imm) {
            Ok(imm) => self.with_rex(rex, [0x6b, operands], imm.into(), 1),
            Err(_) => self.with_rex(rex, [0x69, operands], imm, 4),
        }
    }

    /// `dst *= src`.
    pub(super) fn multiply_both(&mut self, width: Width, dst: Host, src: Host) {
        let rex = u8::from(width == Width::W64) << 3 | dst >> 3 << 2 | src >> 3;
        let bytes =
            u64::from_le_bytes([0x0f, 0xaf, 0xc0 | (dst & 7) << 3 | src & 7, 0, 0, 0, 0, 0]);
        match rex {
            0 => self.code.put(bytes, 3),
            _ => self.code.put(bytes << 8 | u64::from(0x40 | rex), 4),
        }
    }

    /// An instruction with a register, or a part of the opcode in its field, and memory.
    pub(super) fn with_memory(&mut self, op: Opcode, reg: Host, at: At) {
        let (mut bytes, mut len) = match op.is_long {
            true => (0x0f | u64::from(op.code) << 8, 2),
            false => (u64::from(op.code), 1),
        };
        let mut with_prefix = |prefix: u8| {
            bytes = bytes << 8 | u64::from(prefix);
            len += 1;
        };
        let index = at.index.unwrap_or(0);
        let high = |reg: Host, bit: u8| (reg >> 3) << bit;
        let rex = high(reg, 2) | high(index, 1) | high(at.base, 0) | u8::from(op.is_quad) << 3;
        // Without the prefix `sil` and others would be `dh` and others.
        if rex != 0 || op.is_byte && reg >= 4 {
            with_prefix(0x40 | rex);
        }
        if op.is_word {
            with_prefix(0x66);
        }
        self.code.put(bytes, len);
        self.memory(reg, at);
    }

    /// The memory operand in the shortest form.
    fn memory(&mut self, reg: Host, at: At) {
        let small = i8::try_from(at.off);
        // `rbp` and `r13` always have an offset.
        let mode = match small {
            Ok(0) if at.base & 7 != 5 => 0,
            Ok(_) => 1,
            Err(_) => 2,
        };
        let head = mode << 6 | (reg & 7) << 3;
        let sib = match at.index {
            Some(index) => Some(at.scale << 6 | (index & 7) << 3 | at.base & 7),
            // `rsp` and `r12` need a SIB byte.
            None if at.base & 7 == 4 => Some(0x24),
            None => None,
        };
        let off = u64::from(u32::from_le_bytes(at.off.to_le_bytes()));
        let size = match (mode, small) {
            (0, _) => 0,
            (_, Ok(_)) => 1,
            (_, Err(_)) => 4,
        };
        match sib {
            Some(sib) => {
                let bytes = u64::from(head | 4) | u64::from(sib) << 8 | off << 16;
                self.code.put(bytes, 2 + size);
            }
            None => self
                .code
                .put(u64::from(head | at.base & 7) | off << 8, 1 + size),
        }
    }
}
