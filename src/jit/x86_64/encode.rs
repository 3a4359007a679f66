//! Instructions with an operand in memory, whose form depends on registers and offsets.

use dynasmrt::DynasmApi;

use super::emitter::Emitter;
use super::operand::{At, Digit, Opcode};
use super::regs::Host;
use crate::isa::Width;

impl Emitter<'_> {
    /// `reg op= imm`, sign-extended, or a comparison of both.
    pub(super) fn with_immediate(&mut self, op: Digit, width: Width, reg: Host, imm: i32) {
        let rex = u8::from(width == Width::W64) << 3 | reg >> 3;
        if rex != 0 {
            self.code.push(0x40 | rex);
        }
        let operand = 0xc0 | op.0 << 3 | reg & 7;
        match i8::try_from(imm) {
            Ok(imm) => {
                self.code.push(0x83);
                self.code.push(operand);
                self.code.push_i8(imm);
            }
            Err(_) => {
                self.code.push(0x81);
                self.code.push(operand);
                self.code.push_i32(imm);
            }
        }
    }

    /// `dst = src * imm`.
    pub(super) fn multiply(&mut self, width: Width, dst: Host, src: Host, imm: i32) {
        let rex = u8::from(width == Width::W64) << 3 | dst >> 3 << 2 | src >> 3;
        if rex != 0 {
            self.code.push(0x40 | rex);
        }
        let small = i8::try_from(imm);
        self.code.push(if small.is_ok() { 0x6b } else { 0x69 });
        self.code.push(0xc0 | (dst & 7) << 3 | src & 7);
        match small {
            Ok(imm) => self.code.push_i8(imm),
            Err(_) => self.code.push_i32(imm),
        }
    }

    /// An instruction with a register, or a part of the opcode in its field, and memory.
    pub(super) fn with_memory(&mut self, op: Opcode, reg: Host, at: At) {
        if op.is_word {
            self.code.push(0x66);
        }
        let index = at.index.unwrap_or(0);
        let high = |reg: Host, bit: u8| (reg >> 3) << bit;
        let rex = high(reg, 2) | high(index, 1) | high(at.base, 0) | u8::from(op.is_quad) << 3;
        // Without the prefix `sil` and others would be `dh` and others.
        if rex != 0 || op.is_byte && reg >= 4 {
            self.code.push(0x40 | rex);
        }
        if op.is_long {
            self.code.push(0x0f);
        }
        self.code.push(op.code);
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
        match at.index {
            Some(index) => {
                self.code.push(head | 4);
                self.code
                    .push(at.scale << 6 | (index & 7) << 3 | at.base & 7);
            }
            // `rsp` and `r12` need a SIB byte.
            None if at.base & 7 == 4 => {
                self.code.push(head | 4);
                self.code.push(0x24);
            }
            None => self.code.push(head | at.base & 7),
        }
        match (mode, small) {
            (0, _) => {}
            (_, Ok(off)) => self.code.push_i8(off),
            (_, Err(_)) => self.code.push_i32(at.off),
        }
    }
}
