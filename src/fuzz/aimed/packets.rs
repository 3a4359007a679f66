//! Packet pointers: comparisons with the packet's end in all forms, and accesses that just fit.

use super::super::random::Random;
use super::definitions::field;
use super::jumps::land;
use crate::isa::RawInsn;
use crate::program::Program;
use crate::spec::ProgType;
use crate::spec::helpers::id;

const START: u8 = 2;
const END: u8 = 3;
const AFTER: u8 = 4;
const MOVED: u8 = 5;
const CONTEXT: u8 = 6;
const BY: u8 = 7;
const SUM: u8 = 8;
/// A pointer with another variable offset.
const FURTHER: u8 = 9;

/// `>`, `>=`, `<`, `<=`.
const ORDERS: [u8; 4] = [0x20, 0x30, 0xa0, 0xb0];

struct Maker<'r> {
    random: &'r mut Random,
    insns: Vec<RawInsn>,
}

/// A program that reads its packet.
pub(in crate::fuzz) fn program(random: &mut Random) -> Program {
    let mut maker = Maker {
        random,
        insns: Vec::with_capacity(40),
    };
    match maker.random.below(25) {
        0 => return maker.flow_keys(),
        1 => return maker.legacy_loads(),
        _ => {}
    }
    maker.emit(0xbf, CONTEXT, 1, 0, 0);
    maker.emit(0xb7, SUM, 0, 0, 0);
    for _ in 0..1 + maker.random.below(3) {
        maker.compared();
    }
    maker.emit(0xbf, 0, SUM, 0, 0);
    maker.emit(0x57, 0, 0, 0, 3);
    maker.emit(0x95, 0, 0, 0, 0);
    let mut program = Program::new("packets", ProgType::Xdp, maker.insns);
    program.license = "GPL".to_owned();
    program
}

impl Maker<'_> {
    /// A flow dissector that reads its keys, which may be at constant offsets only.
    fn flow_keys(mut self) -> Program {
        let keys = field(ProgType::FlowDissector, "flow_keys");
        self.emit(0x79, START, 1, keys, 0);
        self.emit(0x71, BY, START, 8, 0);
        match self.random.chance(30) {
            true => self.emit(0x57, BY, 0, 0, 7),
            false => self.emit(0xb7, BY, 0, 0, 8),
        }
        self.emit(0x0f, START, BY, 0, 0);
        let off = i16::from(self.random.byte(64));
        let size = self.random.pick(&[0x61, 0x69, 0x71, 0x79]);
        self.emit(size, SUM, START, off, 0);
        self.emit(0xb7, 0, 0, 0, 0);
        self.emit(0x95, 0, 0, 0, 0);
        let mut program = Program::new("packets", ProgType::FlowDissector, self.insns);
        program.license = "GPL".to_owned();
        program
    }

    /// `BPF_LD_ABS` and `BPF_LD_IND`: the context has to be in r6, no record may be held.
    fn legacy_loads(mut self) -> Program {
        let context = if self.random.chance(5) { 7 } else { CONTEXT };
        self.emit(0xbf, context, 1, 0, 0);
        if self.random.chance(5) {
            self.emit(0x07, context, 0, 0, 4);
        }
        self.emit(0xb7, SUM, 0, 0, 0);
        for _ in 0..1 + self.random.below(4) {
            let size = self.random.pick(&[0x00, 0x08, 0x10]);
            let off = match self.random.below(8) {
                0 => self.random.imm(),
                // Of the headers of layer 3 and 2 (`SKF_NET_OFF`, `SKF_LL_OFF`).
                1 => -0x10_0000 + self.random.int(20),
                2 => -0x20_0000 + self.random.int(20),
                _ => self.random.int(60),
            };
            if self.random.chance(50) {
                self.emit(0x20 | size, 0, 0, 0, off);
            } else {
                let index = self.random.pick(&[BY, BY, BY, SUM]);
                if index == BY {
                    self.emit(0xb7, BY, 0, 0, off);
                }
                self.emit(0x40 | size, 0, index, 0, 4);
            }
            self.emit(0x0f, SUM, 0, 0, 0);
            if self.random.chance(3) {
                // What the load overwrote.
                self.emit(0x0f, SUM, 2, 0, 0);
            }
        }
        self.emit(0xbf, 0, SUM, 0, 0);
        self.emit(0x57, 0, 0, 0, 3);
        self.emit(0x95, 0, 0, 0, 0);
        let types = [ProgType::SocketFilter, ProgType::SchedCls, ProgType::Xdp];
        let types = match self.random.chance(5) {
            true => &types[..],
            false => &types[..2],
        };
        let prog_type = self.random.pick(types);
        let mut program = Program::new("packets", prog_type, self.insns);
        program.license = "GPL".to_owned();
        program
    }

    fn emit(&mut self, opcode: u8, dst: u8, src: u8, off: i16, imm: i32) {
        self.insns.push(RawInsn::new(opcode, dst, src, off, imm));
    }

    fn jump(&mut self, opcode: u8, dst: u8, src: u8) -> usize {
        self.emit(opcode, dst, src, 0, 0);
        self.insns.len() - 1
    }

    fn land(&mut self, jump: usize) {
        land(&mut self.insns, jump);
    }

    /// A comparison with the end, and an access if it says that the bytes are there.
    fn compared(&mut self) {
        self.emit(0x61, START, CONTEXT, field(ProgType::Xdp, "data"), 0);
        self.emit(0x61, END, CONTEXT, field(ProgType::Xdp, "data_end"), 0);
        let mut skips = Vec::new();
        let (base, other) = match self.random.chance(35) {
            true => self.moved(&mut skips),
            false => (START, START),
        };
        let len = 1 + self.random.int(54);
        self.emit(0xbf, AFTER, base, 0, 0);
        self.emit(0x07, AFTER, 0, 0, len);
        let op = self.random.pick(&ORDERS);
        let after_first = self.random.chance(50);
        let (left, right) = if after_first {
            (AFTER, END)
        } else {
            (END, AFTER)
        };
        // Whether the bytes are there if the condition holds, and whether one more is.
        let is_below = matches!(op, 0xa0 | 0xb0) == after_first;
        let is_open = matches!(op, 0x20 | 0xa0) == is_below;
        let jump = self.jump(op | 0x0d, left, right);
        match is_below {
            true => {
                let other = self.jump(0x05, 0, 0);
                self.land(jump);
                skips.push(other);
            }
            false => skips.push(jump),
        }
        let (size, bytes) =
            self.random
                .pick(&[(0x10, 1), (0x10, 1), (0x08, 2), (0x00, 4), (0x18, 8)]);
        let there = len + i32::from(is_open);
        let off = match self.random.below(16) {
            0 => there - bytes + 1,
            1..10 => there - bytes,
            _ => self.random.int(40),
        };
        let (pointer, off) = match self.random.below(8) {
            0 => (AFTER, off - len),
            // Another variable offset, perhaps: its bytes are not known to be there.
            1 => (other, off),
            _ => (base, off),
        };
        let is_changed = self.random.chance(4);
        let pointer = match is_changed {
            true => self.change(pointer),
            false => pointer,
        };
        self.emit(0x61 | size, 1, pointer, i16::try_from(off).unwrap_or(0), 0);
        self.emit(0x0f, SUM, 1, 0, 0);
        for skip in skips {
            self.land(skip);
        }
        if !is_changed && self.random.chance(40) {
            // Decided on the path where the pointer is behind the end.
            let op = self.random.pick(&ORDERS);
            let (left, right) = self.random.pick(&[(AFTER, END), (END, AFTER)]);
            let skip = self.jump(op | 0x0d, left, right);
            self.emit(0x07, SUM, 0, 0, 1);
            self.land(skip);
        }
    }

    /// A helper moves the packet's start or end, which makes its pointers invalid: verifiers must
    /// not forget that for any register. Returns the one that has the pointer now.
    fn change(&mut self, pointer: u8) -> u8 {
        self.emit(0xbf, FURTHER, pointer, 0, 0);
        self.emit(0xbf, 1, CONTEXT, 0, 0);
        let by = 1 + self.random.int(60);
        let shorter = (id::xdp_adjust_tail, -by);
        let further = (id::xdp_adjust_head, by);
        let (helper, by) = self.random.pick(&[shorter, shorter, further]);
        self.emit(0xb7, 2, 0, 0, by);
        self.emit(0x85, 0, 0, 0, helper.0.cast_signed());
        FURTHER
    }

    /// Pointers with a variable offset, a byte of the packet: one to compare, and one to access,
    /// which may be another. What follows is skipped if there is no such byte.
    fn moved(&mut self, skips: &mut Vec<usize>) -> (u8, u8) {
        self.emit(0xbf, AFTER, START, 0, 0);
        self.emit(0x07, AFTER, 0, 0, 1);
        skips.push(self.jump(0x2d, AFTER, END));
        self.emit(0x71, BY, START, 0, 0);
        let mask = self.random.pick(&[1, 7, 15, 31]);
        self.emit(0x57, BY, 0, 0, mask);
        if self.random.chance(4) {
            // Verifiers refuse an offset that may be negative.
            self.emit(0x17, BY, 0, 0, mask);
        }
        self.emit(0xbf, MOVED, START, 0, 0);
        self.emit(0x0f, MOVED, BY, 0, 0);
        if self.random.chance(60) {
            return (MOVED, MOVED);
        }
        self.emit(0xbf, FURTHER, MOVED, 0, 0);
        self.emit(0x0f, FURTHER, BY, 0, 0);
        match self.random.chance(70) {
            true => (MOVED, FURTHER),
            false => (FURTHER, MOVED),
        }
    }
}
