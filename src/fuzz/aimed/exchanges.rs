//! Paths that meet with records exchanged, and with arguments that only some paths set.

use crate::spec::helpers::id;

use super::{CONTEXT, COUNTER, Maker, RECORDS, VALUE};

impl Maker {
    /// Two records in two registers, which one path exchanges.
    pub(super) fn join_records(&mut self) {
        const RECORD: [u8; 2] = [8, COUNTER];
        self.reserve(RECORDS, 16);
        let none = self.jump(0x15, 0, 0, 0);
        self.emit(0xbf, RECORD[0], 0, 0, 0);
        self.reserve(RECORDS, 16);
        let only_one = self.jump(0x15, 0, 0, 0);
        self.emit(0xbf, RECORD[1], 0, 0, 0);
        self.emit(0x79, 1, CONTEXT, 0, 0);
        let imm = self.random.int(16);
        let kept = self.jump(0xa5, 1, 0, imm);
        self.emit(0xbf, 1, RECORD[0], 0, 0);
        let from = self.random.pick(&[RECORD[1], RECORD[1], RECORD[0]]);
        self.emit(0xbf, RECORD[0], from, 0, 0);
        self.emit(0xbf, RECORD[1], 1, 0, 0);
        self.land(kept);
        for _ in 0..self.random.below(3) {
            self.emit(0x79, 1, CONTEXT, 8, 0);
            self.set_number(1);
            self.compute(1);
        }
        self.give_back(RECORD[1]);
        self.land(only_one);
        self.give_back(RECORD[0]);
        self.land(none);
        self.forget_all();
    }

    fn give_back(&mut self, record: u8) {
        let imm = self.random.imm();
        self.emit(0x7a, record, 0, 0, imm);
        self.emit(0x7a, record, 0, 8, 0);
        self.emit(0xbf, 1, record, 0, 0);
        self.emit(0xb7, 2, 0, 0, 0);
        self.helper(id::ringbuf_submit);
    }

    /// A helper's last argument, which only some paths set.
    pub(super) fn join_argument(&mut self) {
        let number = self.number();
        self.emit(0xbf, 8, number, 0, 0);
        if self.random.chance(50) {
            self.emit(0xb7, 4, 0, 0, 0);
        }
        let imm = self.random.int(16);
        let skip = self.jump(0xa5, 8, 0, imm);
        self.emit(0xb7, 4, 0, 0, 0);
        self.land(skip);
        self.forget_all();
        self.map(RECORDS);
        self.emit(0xbf, 2, VALUE, 0, 0);
        self.emit(0xb7, 3, 0, 0, 8);
        self.helper(id::ringbuf_output);
        self.set_number(8);
    }
}
