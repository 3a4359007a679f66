//! Two ways with different constants, and loops.

use super::{AREA, COUNTER, FP, JUMPS, Maker, VALUE};

impl Maker {
    /// A register or slot that has different constants on two ways, then used as an offset.
    pub(super) fn two_ways(&mut self) {
        let asked = self.number();
        let (op, imm) = (self.random.pick(&JUMPS), self.random.int(16));
        let class = self.random.pick(&[5, 5, 6]);
        let (one, other) = (self.constant(), self.constant());
        let in_slot = self.random.chance(40);
        let slot = self.random.slot(8);
        let target = 8;
        let first = self.jump(op | class, asked, 0, imm);
        self.two_paths(
            first,
            |maker| maker.put(in_slot, slot, target, one),
            |maker| maker.put(in_slot, slot, target, other),
        );
        if in_slot {
            self.known.stack |= Self::mask(AREA + i32::from(slot), 8);
            if self.random.chance(50) {
                // Something else in between.
                self.arithmetic();
            }
            self.emit(0x79, target, FP, slot, 0);
        }
        self.set_number(target);
        if self.random.chance(30) {
            return;
        }
        let (size, pointer) = (self.size(), 2);
        self.emit(0xbf, pointer, VALUE, 0, 0);
        self.forget(pointer);
        self.emit(0x0f, pointer, target, 0, 0);
        let off = match self.random.below(30) {
            0 => AREA - size.1 + 1,
            _ => AREA - size.1 - one.max(other).clamp(0, AREA - size.1),
        };
        self.through(pointer, i16::try_from(off).unwrap_or_default(), size.0);
        self.forget(pointer);
    }

    pub(super) fn constant(&mut self) -> i32 {
        self.random.pick(&[0, 1, 2, 8, 16, 32, 56])
    }

    pub(super) fn put(&mut self, in_slot: bool, slot: i16, target: u8, imm: i32) {
        match in_slot {
            true => self.emit(0x7a, FP, 0, slot, imm),
            false => self.emit(0xb7, target, 0, 0, imm),
        }
    }

    /// A loop over some steps.
    pub(super) fn count(&mut self) {
        if self.in_loop {
            return self.arithmetic();
        }
        self.in_loop = true;
        let rounds = 1 + self.random.int(8);
        let by_budget = self.random.chance(25);
        self.emit(0xb7, COUNTER, 0, 0, 0);
        let start = self.insns.len();
        let mut out = Vec::new();
        if by_budget {
            out.push(self.jump(0xe5, 0, 0, 0));
        }
        if by_budget || self.random.chance(40) {
            let opcode = self.random.pick(&[0x35, 0x25, 0x75, 0x36]);
            out.push(self.jump(opcode, COUNTER, 0, rounds));
        }
        // An access leaves a pointer there, which the next round finds.
        self.forget(2);
        let (before, open) = (self.known, self.open.len());
        for _ in 0..1 + self.random.below(3) {
            self.step(&[
                (10, Maker::arithmetic),
                (4, Maker::branch),
                (4, Maker::spill),
                (4, Maker::fill),
                (3, Maker::two_ways),
                (3, Maker::access),
            ]);
        }
        while self.open.len() > open {
            self.close();
        }
        self.emit(0x07, COUNTER, 0, 0, 1);
        let back = i64::try_from(self.insns.len() - start).unwrap_or_default() + 1;
        let off = i16::try_from(-back).unwrap_or(-1);
        if out.is_empty() {
            let opcode = self.random.pick(&[0xa5, 0x55, 0xc5, 0xa6]);
            self.emit(opcode, COUNTER, 0, off, rounds);
        } else {
            self.emit(0x05, 0, 0, off, 0);
        }
        for jump in out {
            self.land(jump);
        }
        // What was known before is known in each round, since numbers stay numbers; a register
        // that became a pointer is not.
        self.known.numbers &= before.numbers;
        self.known.stack &= before.stack;
        self.in_loop = false;
    }
}
