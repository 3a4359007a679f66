//! Short sequences that engines run as one operation, and operations with results that are easily
//! got wrong. Scratch registers are overwritten afterwards, so that nothing but the sequence's
//! result is live.

use super::{CONTEXT, Maker, VALUE};

/// Scratch registers of a sequence.
const ONE: u8 = 3;
const OTHER: u8 = 4;

/// Bytes of the map value that sequences change: offsets 40 to 63.
const CELL: i16 = 48;

impl Maker {
    /// Makes the scratch registers dead.
    pub(super) fn kill(&mut self, regs: &[u8]) {
        for reg in regs {
            let imm = self.random.imm();
            self.emit(0xb7, *reg, 0, 0, imm);
            self.set_number(*reg);
        }
    }

    /// An unknown number, in r5.
    pub(super) fn unknown(&mut self) -> u8 {
        let off = i16::from(self.random.byte(8)) * 8;
        let opcode = self.random.pick(&[0x79, 0x79, 0x61]);
        self.emit(opcode, 5, CONTEXT, off, 0);
        self.set_number(5);
        5
    }

    /// The class of an operation with its bits.
    pub(super) fn width(&mut self) -> (u8, u64) {
        self.random.pick(&[(7, 64), (4, 32)])
    }

    /// A mask with the bits of a maximum, which not every number up to it has.
    pub(super) fn mask_at_limit(&mut self) {
        let from = self.unknown();
        let (class, _) = self.width();
        let limit = 1 + self.random.int(300);
        self.emit(0xb8 | class, ONE, from, 0, 0);
        let opcode = if class == 7 { 0x25 } else { 0x26 };
        let jump = self.jump(opcode, ONE, 0, limit);
        self.emit(0x50 | class, ONE, 0, 0, limit);
        self.emit(0x7b, VALUE, ONE, CELL, 0);
        self.land(jump);
        self.kill(&[ONE]);
    }

    /// `one = x << n; other = x >> bits - n; one |= other`.
    pub(super) fn rotate(&mut self) {
        let (class, bits) = self.width();
        let from = self.unknown();
        let by = 1 + self.random.int(bits - 1);
        let rest = i32::try_from(bits).unwrap_or(64) - by;
        // Rarely it is no rotation.
        let rest = if self.random.chance(10) {
            rest - 1
        } else {
            rest
        };
        self.emit(0xb8 | class, ONE, from, 0, 0);
        self.emit(0x60 | class, ONE, 0, 0, by);
        match self.random.chance(50) {
            true => {
                self.emit(0xb8 | class, OTHER, from, 0, 0);
                self.emit(0x70 | class, OTHER, 0, 0, rest);
                self.emit(0x48 | class, ONE, OTHER, 0, 0);
            }
            false => {
                self.emit(0x70 | class, from, 0, 0, rest);
                self.emit(0x48 | class, ONE, from, 0, 0);
            }
        }
        self.emit(0x7b, VALUE, ONE, CELL - 8, 0);
        self.kill(&[ONE, OTHER, from]);
    }

    /// Parts of a number: shifts and masks.
    pub(super) fn extract(&mut self) {
        let (class, bits) = self.width();
        let from = self.unknown();
        let (one, two) = (self.random.int(bits), self.random.int(bits));
        self.emit(0xb8 | class, ONE, from, 0, 0);
        let shift = self.random.pick(&[0x60, 0x70]);
        self.emit(shift | class, ONE, 0, 0, one);
        match self.random.below(3) {
            0 => {
                let mask = self.random.imm();
                self.emit(0x50 | class, ONE, 0, 0, mask);
            }
            1 => {
                let shift = self.random.pick(&[0x60, 0x70]);
                self.emit(shift | class, ONE, 0, 0, two);
            }
            _ => {
                let class = self.random.pick(&[4, 7]);
                let op = self.random.pick(&[0x00, 0x10, 0x40, 0x50, 0xa0]);
                self.emit(op | 8 | class, ONE, from, 0, 0);
            }
        }
        self.emit(0x7b, VALUE, ONE, CELL - 8, 0);
        self.kill(&[ONE, from]);
    }

    /// A branch over a move.
    pub(super) fn select(&mut self) {
        let left = self.unknown();
        let result = ONE;
        let first = self.random.imm();
        self.emit(0xb7, result, 0, 0, first);
        self.set_number(result);
        let (op, class) = (self.comparison(), self.random.pick(&[5, 6]));
        let skip = match self.random.chance(50) {
            true => {
                let imm = self.random.imm();
                self.jump(op | class, left, 0, imm)
            }
            false => {
                let imm = self.random.imm();
                self.emit(0xb7, OTHER, 0, 0, imm);
                self.set_number(OTHER);
                self.jump(op | 8 | class, left, OTHER, 0)
            }
        };
        let class = self.random.pick(&[4, 7, 7]);
        match self.random.chance(50) {
            true => {
                let imm = self.random.imm();
                self.emit(0xb0 | class, result, 0, 0, imm);
            }
            false => {
                self.emit(0xb8 | class, result, left, 0, 0);
                if self.random.chance(50) {
                    let by = self.random.int(if class == 4 { 32 } else { 64 });
                    self.emit(0x70 | class, result, 0, 0, by);
                }
            }
        }
        self.land(skip);
        self.emit(0x7b, VALUE, result, CELL - 8, 0);
    }

    /// The operation bits of any comparison, the test of bits included.
    fn comparison(&mut self) -> u8 {
        match self.random.below(4) {
            0 => 0x40,
            _ => self.random.pick(&super::JUMPS),
        }
    }

    /// A test of some bits, of a copy or in place, both ways round.
    pub(super) fn test_bits(&mut self) {
        let (class, _) = self.width();
        let from = self.unknown();
        let tested = match self.random.chance(50) {
            true => {
                self.emit(0xbf, ONE, from, 0, 0);
                ONE
            }
            false => from,
        };
        let mask = self.random.pick(&[i32::MIN, -2, -256, 1, 0xff, i32::MAX]);
        self.emit(0x50 | class, tested, 0, 0, mask);
        let op = self.random.pick(&[0x10, 0x50]);
        let class = self.random.pick(&[5, 6]);
        let there = self.jump(op | class, tested, 0, 0);
        match self.random.chance(50) {
            true => {
                // The branch over a jump is inverted.
                let end = self.jump(0x05, 0, 0, 0);
                self.land(there);
                self.emit(0x7a, VALUE, 0, CELL - 8, 1);
                self.land(end);
            }
            false => {
                self.emit(0x7a, VALUE, 0, CELL - 8, 2);
                self.land(there);
            }
        }
        self.kill(&[tested, from]);
    }

    /// An operation and a comparison of its result, with constants of both signs.
    pub(super) fn count_and_compare(&mut self) {
        let reg = self.unknown();
        let (class, _) = self.width();
        let op = self.random.pick(&[0x00, 0x00, 0x10, 0x50, 0x70]);
        let by = match op {
            0x70 => self.random.int(32),
            _ => self.random.pick(&[1, -1, 8, -8, i32::MIN, i32::MAX]),
        };
        self.emit(op | class, reg, 0, 0, by);
        let (op, class) = (self.comparison(), self.random.pick(&[5, 6]));
        let limit = self.random.pick(&[-1, -2, -1000, 0, 5, i32::MIN, i32::MAX]);
        let skip = self.jump(op | class, reg, 0, limit);
        self.emit(0x7b, VALUE, reg, CELL - 8, 0);
        self.land(skip);
    }

    /// A load at the sum of two registers, with the pointer on either side.
    pub(super) fn load_sum(&mut self) {
        let (size, bytes) = self.size();
        let index = self.unknown();
        self.emit(0x57, index, 0, 0, 31);
        let sum = 2;
        match self.random.chance(50) {
            true => {
                self.emit(0xbf, sum, index, 0, 0);
                self.emit(0x0f, sum, VALUE, 0, 0);
            }
            false => {
                self.emit(0xbf, sum, VALUE, 0, 0);
                self.emit(0x0f, sum, index, 0, 0);
            }
        }
        let off = i16::try_from(32 - bytes).unwrap_or(0);
        self.emit(0x61 | size, ONE, sum, off, 0);
        self.set_number(ONE);
        self.kill(&[sum]);
        self.emit(0x7b, VALUE, ONE, CELL - 8, 0);
    }

    /// A number that went through memory, so that no engine knows it.
    pub(super) fn hidden(&mut self, reg: u8, number: u64) {
        let [low, high] = [number, number >> 32].map(|part| {
            let [a, b, c, d, ..] = part.to_le_bytes();
            i32::from_le_bytes([a, b, c, d])
        });
        self.emit(0x62, VALUE, 0, CELL, low);
        self.emit(0x62, VALUE, 0, CELL + 4, high);
        self.emit(0x79, reg, VALUE, CELL, 0);
        self.set_number(reg);
    }

    /// Divisions and remainders of the least number, by zero, one and minus one, and by a number
    /// whose lower half is zero.
    pub(super) fn divide(&mut self) {
        let least = self
            .random
            .pick(&[1 << 63, 0xffff_ffff_8000_0000, 0x8000_0000, 7]);
        let by = self
            .random
            .pick(&[u64::MAX, u64::MAX, 0xffff_ffff, 1 << 32, 0, 1, 3]);
        self.hidden(ONE, least);
        self.hidden(OTHER, by);
        let (class, _) = self.width();
        let op = self.random.pick(&[0x30, 0x90]);
        let is_signed = i16::from(self.random.chance(70));
        match self.random.chance(70) {
            true => self.emit(op | 8 | class, ONE, OTHER, is_signed, 0),
            false => {
                let imm = self.random.pick(&[-1, 1, 3, -3, i32::MIN]);
                self.emit(op | class, ONE, 0, is_signed, imm);
            }
        }
        self.emit(0x7b, VALUE, ONE, CELL - 8, 0);
    }

    /// A compare-and-exchange that mostly succeeds, or another atomic operation.
    pub(super) fn exchange(&mut self) {
        let number = self.random.wide();
        self.hidden(ONE, number);
        let (size, low) = self.random.pick(&[(0x18, false), (0x00, true)]);
        self.emit(0xbf, 0, ONE, 0, 0);
        self.set_number(0);
        if low && self.random.chance(60) {
            // Only the lower half is compared.
            let imm = self.random.imm();
            self.emit(0xb7, OTHER, 0, 0, imm);
            self.emit(0x67, OTHER, 0, 0, 32);
            self.emit(0xaf, 0, OTHER, 0, 0);
        }
        if self.random.chance(20) {
            self.emit(0x07, 0, 0, 0, 1);
        }
        // Machine code needs r0 itself for some operations.
        let src = match self.random.chance(15) {
            true => 0,
            false => self.unknown(),
        };
        let op = self
            .random
            .pick(&[0xf1, 0xf1, 0xf1, 0xe1, 0x00, 0x01, 0x41, 0x51, 0xa1]);
        self.emit(0xc3 | size, VALUE, src, CELL, op);
        self.emit(0x7b, VALUE, 0, CELL - 8, 0);
        self.kill(&[OTHER]);
    }

    /// An update in place, a copy between places, or an operation with a loaded number.
    pub(super) fn update(&mut self) {
        let (size, _) = self.size();
        let from = self.unknown();
        let off = i16::from(self.random.byte(3)) * 8;
        self.emit(0x61 | size, ONE, VALUE, off, 0);
        self.set_number(ONE);
        let op = self.random.pick(&[0x00, 0x10, 0x20, 0x40, 0x50, 0xa0]);
        let (class, _) = self.width();
        match self.random.below(3) {
            0 => {
                self.emit(op | 8 | class, ONE, from, 0, 0);
                self.emit(0x63 | size, VALUE, ONE, off, 0);
            }
            1 => self.emit(0x63 | size, VALUE, ONE, CELL, 0),
            _ => {
                self.emit(op | 8 | class, from, ONE, 0, 0);
                self.emit(0x7b, VALUE, from, CELL - 8, 0);
            }
        }
        if self.random.chance(70) {
            self.kill(&[ONE]);
        }
    }
}
