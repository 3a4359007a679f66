//! The stack as others change it: functions and helpers write to a caller's frame; bytes are read
//! that nobody wrote; and elements of a map are deleted while the program has their addresses.

use crate::spec::helpers::id;

use super::{AREA, CONTEXT, FP, HASH, Maker};

/// Where the function at the end keeps its arguments.
const NUMBER: u8 = 6;
const POINTER: u8 = 7;

impl Maker {
    /// r1 to r3 of a helper that fills bytes at a pointer: it reads address 0, which fails.
    fn fill_bytes(&mut self, pointer: u8, off: i16, len: i32) {
        self.emit(0xbf, 1, pointer, 0, 0);
        self.emit(0x07, 1, 0, 0, off.into());
        self.emit(0xb7, 2, 0, 0, len);
        self.emit(0xb7, 3, 0, 0, 0);
        self.helper(id::probe_read_kernel);
    }

    /// A constant in a slot, which a helper overwrites, or a part of it.
    pub(super) fn fill_slot(&mut self) {
        let slot = self.constant_in_slot();
        let len = self.random.pick(&[1, 4, 8, 8]);
        self.fill_bytes(FP, slot, len);
        self.load_slot(slot);
    }

    /// A constant in a slot, whose address a function gets.
    pub(super) fn pass_slot(&mut self) {
        let slot = self.constant_in_slot();
        let number = self.number();
        self.emit(0xbf, 1, number, 0, 0);
        self.address(2, slot);
        self.call_function();
        self.load_slot(slot);
    }

    /// A number of the context.
    pub(super) fn input(&mut self, dst: u8) {
        let off = i16::from(self.random.byte(8)) * 8;
        self.emit(0x79, dst, CONTEXT, off, 0);
    }

    fn constant_in_slot(&mut self) -> i16 {
        let (slot, imm) = (self.random.slot(8), self.random.imm());
        self.emit(0x7a, FP, 0, slot, imm);
        self.known.stack |= Self::mask(AREA + i32::from(slot), 8);
        slot
    }

    fn load_slot(&mut self, slot: i16) {
        let dst = self.free();
        let (size, _) = self.size();
        self.emit(0x61 | size, dst, FP, slot, 0);
        self.set_number(dst);
    }

    /// The body of the function that gets a number and the address of a slot of its caller.
    pub(super) fn function_of_slot(&mut self) {
        self.emit(0xbf, NUMBER, 1, 0, 0);
        self.emit(0xbf, POINTER, 2, 0, 0);
        self.known.numbers = 1 << NUMBER;
        for _ in 0..1 + self.random.below(2) {
            self.step(&[
                (5, |maker| maker.compute(NUMBER)),
                (6, Self::store_to_slot),
                (4, |maker| maker.emit(0x79, NUMBER, POINTER, 0, 0)),
                (10, |maker| {
                    // The whole slot, on one path.
                    let skip = maker.around(NUMBER);
                    maker.emit(0x7b, POINTER, NUMBER, 0, 0);
                    maker.land(skip);
                }),
                (6, |maker| {
                    let len = maker.random.pick(&[1, 4, 8]);
                    maker.fill_bytes(POINTER, 0, len);
                }),
                (3, Self::branch),
                (3, Self::close),
            ]);
        }
        while !self.open.is_empty() {
            self.close();
        }
        self.emit(0xbf, 0, NUMBER, 0, 0);
        self.emit(0x95, 0, 0, 0, 0);
    }

    fn store_to_slot(&mut self) {
        let (size, _) = self.size();
        self.emit(0x63 | size, POINTER, NUMBER, 0, 0);
    }

    /// Reads bytes of the stack, whether they were written or not.
    pub(super) fn read_unwritten(&mut self) {
        let slot = self.random.slot(8);
        self.load_slot(slot);
    }

    /// An element is looked up, and deleted on some path; then its value is used.
    pub(super) fn delete_element(&mut self) {
        let (slot, key) = (self.random.slot(8), self.random.int(3));
        self.emit(0x7a, FP, 0, slot, key);
        self.known.stack |= Self::mask(AREA + i32::from(slot), 8);
        if self.random.chance(80) {
            self.update_element(slot);
        }
        self.element(HASH, slot);
        self.helper(id::map_lookup_elem);
        self.forget(0);
        self.forget(8);
        let before = self.known;
        let null = self.jump(0x15, 0, 0, 0);
        self.emit(0xbf, 8, 0, 0, 0);
        // One path goes around what deletes the element.
        let keeps = self.random.chance(50).then(|| {
            self.input(1);
            self.around(1)
        });
        if self.random.chance(70) {
            self.element(HASH, slot);
            self.helper(id::map_delete_elem);
        } else {
            // An update moves the element.
            self.update_element(slot);
        }
        if let Some(keeps) = keeps {
            self.land(keeps);
        }
        let off = i16::from(self.random.byte(8)) * 8;
        match self.random.chance(60) {
            true => self.emit(0x79, 1, 8, off, 0),
            false => {
                let imm = self.random.imm();
                self.emit(0x7a, 8, 0, off, imm);
            }
        }
        self.land(null);
        self.known = before;
        for reg in 0..6 {
            self.forget(reg);
        }
    }

    /// The jump of one path around what follows, which the other path reaches by a branch or goes
    /// on with.
    pub(super) fn around(&mut self, reg: u8) -> usize {
        let imm = self.random.imm();
        let branch = self.jump(0x15, reg, 0, imm);
        if self.random.chance(50) {
            return branch;
        }
        let around = self.jump(0x05, 0, 0, 0);
        self.land(branch);
        around
    }
}
