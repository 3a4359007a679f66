//! Paths that meet with other links between numbers: a bound of one register then holds for other
//! copies.

use super::{AREA, CONTEXT, FP, JUMPS, Maker, VALUE};

/// The register of which others are copies.
const COPIED: u8 = 1;

impl Maker {
    /// Registers that are copies of one number on one path, and of two on the other; some are bounded,
    /// others used.
    pub(super) fn join_links(&mut self) {
        const COPIES: [u8; 4] = [2, 3, 4, 5];
        for (number, opcode) in [(0, 0x61), (1, 0x69)] {
            let off = i16::from(self.random.byte(8)) * 8;
            self.emit(opcode, number, CONTEXT, off, 0);
        }
        let imm = self.random.int(16);
        self.emit(0x79, 8, CONTEXT, 0, 0);
        let to_other = self.jump(0xa5, 8, 0, imm);
        self.two_paths(
            to_other,
            |maker| maker.copies(&COPIES),
            |maker| maker.copies(&COPIES),
        );
        self.forget_all();
        self.set_number(8);
        if self.random.chance(50) {
            self.compute(8);
        }
        let mut skips = Vec::new();
        for _ in 0..1 + self.random.below(2) {
            let tested = self.random.pick(&COPIES);
            skips.push(self.jump(0x25, tested, 0, AREA - 8));
        }
        for _ in 0..1 + self.random.below(2) {
            let used = self.random.pick(&COPIES);
            self.emit(0xbf, 1, VALUE, 0, 0);
            self.emit(0x0f, 1, used, 0, 0);
            self.emit(0x79, 0, 1, 0, 0);
        }
        for skip in skips {
            self.land(skip);
        }
        self.forget_all();
    }

    /// A part of a number is spilled, which is linked to the number only if no bit is lost. A branch on
    /// the number, then the part is filled.
    pub(super) fn spill_part(&mut self) {
        let (number, copy) = (self.number(), self.free());
        self.emit(0xbf, copy, number, 0, 0);
        self.set_number(copy);
        let (size, bytes) = self.random.pick(&[(0x00, 4), (0x08, 2), (0x10, 1)]);
        let slot = self.random.slot(8);
        self.emit(0x63 | size, FP, copy, slot, 0);
        self.known.stack |= Self::mask(AREA + i32::from(slot), bytes);
        let op = self.random.pick(&JUMPS);
        let imm = self.random.imm();
        let jump = self.jump(op | 5, copy, 0, imm);
        let there = self.known;
        let dst = self.free();
        self.emit(0x61 | size, dst, FP, slot, 0);
        self.set_number(dst);
        self.open.push((jump, there));
    }

    fn copies(&mut self, to: &[u8]) {
        for reg in to {
            let from = self.random.byte(2);
            self.emit(0xbf, *reg, from, 0, 0);
        }
    }

    /// A number with more copies than a step of the history has room for. On one path the copy that
    /// is tested is none.
    pub(super) fn many_links(&mut self) {
        self.emit(0x61, COPIED, CONTEXT, 0, 0);
        let slots = 4 + i16::from(self.random.byte(5));
        for slot in 1..=slots {
            self.emit(0x7b, FP, COPIED, slot * -8, 0);
        }
        for reg in 2..=4 {
            self.emit(0xbf, reg, COPIED, 0, 0);
        }
        let tested = self.random.pick(&[1, 2, 3, 4]);
        if self.random.chance(60) {
            self.emit(0x79, 5, CONTEXT, 8, 0);
            let kept = self.around(5);
            self.emit(0x61, tested, CONTEXT, 16, 0);
            self.land(kept);
            if self.random.chance(50) {
                self.set_number(5);
                self.compute(5);
            }
        }
        let skip = self.jump(0x25, tested, 0, AREA - 8);
        let slot = 1 + i16::from(self.random.byte(u64::from(slots.unsigned_abs())));
        match self.random.chance(70) {
            true => self.emit(0x79, COPIED, FP, slot * -8, 0),
            false => {
                let reg = self.random.pick(&[2, 3, 4]);
                self.emit(0xbf, COPIED, reg, 0, 0);
            }
        }
        self.emit(0xbf, 5, VALUE, 0, 0);
        self.emit(0x0f, 5, COPIED, 0, 0);
        self.emit(0x79, 0, 5, 0, 0);
        self.land(skip);
        self.forget_all();
    }
}
