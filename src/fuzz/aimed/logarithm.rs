//! The position of a number's highest bit, computed by steps: engines run it as one operation.

use super::{Maker, VALUE};

/// What is left of the number, the sum of the distances, and a step's constant or distance.
const REST: u8 = 3;
const SUM: u8 = 4;
const STEP: u8 = 2;

/// The offset in the map value that gets the result.
const RESULT: i16 = 40;

impl Maker {
    /// Steps that compare and shift, in several forms; some of the programs compute something
    /// else.
    pub(super) fn logarithm(&mut self) {
        let input = match self.random.chance(50) {
            true => self.unknown(),
            false => {
                let number = self.random.wide();
                self.hidden(5, number);
                5
            }
        };
        let (class, bits) = self.width();
        self.emit(0xb8 | class, REST, input, 0, 0);
        let start = self.random.pick(&[0, 0, 1, 7]);
        self.emit(0xb7, SUM, 0, 0, start);
        let is_wrong = self.random.chance(40);
        let adds = self.random.chance(50);
        let mut distance = i32::try_from(bits / 2).unwrap_or(0);
        while distance > 0 {
            // The least number that is shifted, and by how much.
            let (mut least, mut by) = (1_i64 << distance, distance);
            if is_wrong && self.random.chance(20) {
                match self.random.chance(50) {
                    true => by += self.random.pick(&[-1, 1]),
                    false => least += self.random.pick(&[-1, 1]),
                }
            }
            match adds {
                true => self.shift_and_add(class, least, by),
                false => self.shift_by_flag(class, least, by),
            }
            distance /= 2;
        }
        self.emit(0x7b, VALUE, SUM, RESULT, 0);
        let live = self.random.chance(10);
        self.kill(&[STEP, SUM, input]);
        if live {
            self.emit(0x7b, VALUE, REST, RESULT, 0);
        }
        self.kill(&[REST]);
    }

    /// A jump of the class that is taken where what is left is at least this number; if
    /// `inverse`, where it is less.
    fn compare(&mut self, class: u8, least: i64, inverse: bool) -> usize {
        let jump = if class == 7 { 5 } else { 6 };
        let Ok(least) = i32::try_from(least) else {
            self.emit(0xb7, STEP, 0, 0, 1);
            self.emit(0x67, STEP, 0, 0, 32);
            let more = i32::try_from(least - (1 << 32)).unwrap_or(0);
            if more != 0 {
                self.emit(0x07, STEP, 0, 0, more);
            }
            let op = if inverse { 0xa8 } else { 0x38 };
            return self.jump(op | jump, REST, STEP, 0);
        };
        // Compared with this number, or with the one before it.
        let (op, limit) = match (inverse, self.random.chance(50)) {
            (true, true) => (0xa0, least),
            (true, false) => (0xb0, least - 1),
            (false, true) => (0x30, least),
            (false, false) => (0x20, least - 1),
        };
        self.jump(op | jump, REST, 0, limit)
    }

    /// A branch over a shift and an addition.
    fn shift_and_add(&mut self, class: u8, least: i64, by: i32) {
        let skip = self.compare(class, least, true);
        self.emit(0x70 | class, REST, 0, 0, by);
        self.emit(0x07, SUM, 0, 0, by);
        self.land(skip);
    }

    /// A distance that is 0 or not, by which what is left is shifted.
    fn shift_by_flag(&mut self, class: u8, least: i64, by: i32) {
        let is_set = self.compare(class, least, false);
        self.emit(0xb7, STEP, 0, 0, 0);
        let end = self.jump(0x05, 0, 0, 0);
        self.land(is_set);
        self.emit(0xb7, STEP, 0, 0, by);
        self.land(end);
        self.set_number(STEP);
        self.emit(0x78 | class, REST, STEP, 0, 0);
        self.emit(0x0f, SUM, STEP, 0, 0);
    }
}
