//! Accesses at bounded offsets.

use super::{AREA, FP, Known, Maker, VALUE};

impl Maker {
    /// Bounds a number in `reg`, so that it is from 0 to at most `most`. Returns the jumps that
    /// skip what follows.
    pub(super) fn bound(&mut self, reg: u8, most: i32) -> Vec<usize> {
        match self.random.below(10) {
            0 | 1 => {
                // The largest mask that is not above.
                let mut mask = 0;
                while mask * 2 < most {
                    mask = mask * 2 + 1;
                }
                let opcode = self.random.pick(&[0x57, 0x57, 0x54]);
                self.emit(opcode, reg, 0, 0, mask);
                Vec::new()
            }
            2 | 3 => vec![self.jump(0x25, reg, 0, most)],
            4 => vec![self.jump(0x65, reg, 0, most), self.jump(0xc5, reg, 0, 0)],
            5 => {
                self.emit(0xbc, reg, reg, 0, 0);
                vec![self.jump(0x26, reg, 0, most)]
            }
            6 => {
                self.emit(0xbc, reg, reg, 0, 0);
                vec![self.jump(0x66, reg, 0, most), self.jump(0xc6, reg, 0, 0)]
            }
            7 => {
                // A remainder is unknown to the verifier.
                self.emit(0x97, reg, 0, 0, most + 1);
                vec![self.jump(0x25, reg, 0, most)]
            }
            8 => {
                let bits = 31 - (most + 1).leading_zeros().min(31);
                let shift = 64 - i32::try_from(bits).unwrap_or_default();
                if shift >= 64 {
                    self.emit(0xb7, reg, 0, 0, 0);
                } else {
                    self.emit(0x77, reg, 0, 0, shift);
                }
                Vec::new()
            }
            _ => {
                // Against a register with a constant.
                let limit = self.random.pick(&[3, 4, 5]);
                if limit == reg {
                    return vec![self.jump(0x25, reg, 0, most)];
                }
                self.emit(0xb7, limit, 0, 0, most);
                self.set_number(limit);
                vec![self.jump(0x2d, reg, limit, 0)]
            }
        }
    }

    /// The greatest offset of an access: mostly it just fits.
    pub(super) fn most(&mut self, bytes: i32) -> i32 {
        let fits = AREA - bytes;
        match self.random.below(40) {
            0 => fits + 1,
            1..20 => fits,
            _ => self.random.int(u64::from(fits.cast_unsigned()) + 1),
        }
    }

    /// An access through `pointer`, of at most the map value's or the stack's rest.
    pub(super) fn through(&mut self, pointer: u8, off: i16, size: u8) {
        match self.random.below(4) {
            0 | 1 => {
                let dst = self.random.pick(&[0, 8]);
                self.emit(0x61 | size, dst, pointer, off, 0);
                self.set_number(dst);
            }
            2 => {
                let imm = self.random.imm();
                self.emit(0x62 | size, pointer, 0, off, imm);
            }
            _ => {
                let src = self.number();
                if src == pointer {
                    return self.emit(0x62 | size, pointer, 0, off, 1);
                }
                self.emit(0x63 | size, pointer, src, off, 0);
            }
        }
    }

    /// An access to the map value at a bounded offset.
    pub(super) fn access(&mut self) {
        let (size, bytes) = self.size();
        let most = self.most(bytes);
        let index = self.number();
        let (copy, pointer) = (1, 2);
        self.emit(0xbf, copy, index, 0, 0);
        self.set_number(copy);
        let skips = self.bound(copy, most);
        let before = self.known;
        self.emit(0xbf, pointer, VALUE, 0, 0);
        self.forget(pointer);
        self.emit(0x0f, pointer, copy, 0, 0);
        let off = i16::try_from(AREA - bytes - most)
            .unwrap_or_default()
            .max(0);
        let mut off = if self.random.chance(50) { off } else { 0 };
        if self.random.chance(15) {
            // Part of the offset is taken back from the pointer.
            let by = 1 + self.random.int(8);
            self.emit(0x17, pointer, 0, 0, by);
            off += i16::try_from(by).unwrap_or_default();
        }
        self.through(pointer, off, size);
        self.merge(&skips, before);
        self.forget(pointer);
    }

    /// Lands jumps here, where only what was known before is known.
    pub(super) fn merge(&mut self, skips: &[usize], before: Known) {
        for skip in skips {
            self.land(*skip);
        }
        if !skips.is_empty() {
            self.known.numbers &= before.numbers;
            self.known.stack &= before.stack;
        }
    }

    /// An access to the stack at a bounded offset.
    pub(super) fn stack_access(&mut self) {
        if self.known.stack != u64::MAX {
            return self.spill();
        }
        let (size, bytes) = self.size();
        // Offsets into the stack are aligned.
        let most = self.most(bytes) / bytes;
        let index = self.number();
        let (copy, pointer) = (1, 2);
        self.emit(0xbf, copy, index, 0, 0);
        self.set_number(copy);
        let skips = self.bound(copy, most);
        if bytes > 1 {
            let shift = i32::try_from(bytes.trailing_zeros()).unwrap_or_default();
            self.emit(0x67, copy, 0, 0, shift);
        }
        let before = self.known;
        self.emit(0xbf, pointer, FP, 0, 0);
        self.forget(pointer);
        self.emit(0x0f, pointer, copy, 0, 0);
        let off = i16::try_from(-AREA).unwrap_or_default();
        self.through(pointer, off, size);
        self.merge(&skips, before);
        self.forget(pointer);
    }

    /// Zeros in a part of a slot (which are no spill), and an access that may touch them, or others.
    pub(super) fn zero_bytes(&mut self) {
        if self.known.stack != u64::MAX {
            return self.spill();
        }
        let (size, bytes) = self.random.pick(&[(0x10, 1_i16), (0x08, 2), (0x00, 4)]);
        let slot = self.random.slot(7) - 8;
        let at = slot + 8 - bytes;
        self.emit(0x62 | size, FP, 0, at, 0);
        let dst = self.free();
        if self.random.chance(30) {
            if self.random.chance(50) {
                // Beside a part of a number, which is one.
                let number = self.number();
                let size = self.random.pick(&[0x10, 0x08, 0x00]);
                self.emit(0x63 | size, FP, number, slot, 0);
            }
            self.emit(0x79, dst, FP, slot, 0);
            return self.set_number(dst);
        }
        // These bytes, or as many behind them, in the next slot.
        let (copy, pointer) = (1, 2);
        let index = self.number();
        self.emit(0xbf, copy, index, 0, 0);
        self.emit(0x57, copy, 0, 0, bytes.into());
        self.set_number(copy);
        self.emit(0xbf, pointer, FP, 0, 0);
        self.forget(pointer);
        self.emit(0x0f, pointer, copy, 0, 0);
        if self.random.chance(50) {
            self.emit(0x61 | size, dst, pointer, at, 0);
        } else {
            let src = self.number();
            self.emit(0x63 | size, pointer, src, at, 0);
            self.emit(0x61 | size, dst, FP, at, 0);
        }
        self.set_number(dst);
    }

    /// An access whose offset is bounded through a register that is linked with it.
    pub(super) fn linked_access(&mut self) {
        let (size, bytes) = self.size();
        let most = self.most(bytes);
        let index = self.number();
        let (copy, other, pointer) = (1, 3, 2);
        self.emit(0xbf, copy, index, 0, 0);
        // A number that was added to something keeps no link: masks begin a new one.
        if self.random.chance(50) {
            self.emit(0x57, copy, 0, 0, 0xffff);
        } else {
            self.emit(0xbc, copy, copy, 0, 0);
        }
        self.emit(0xbf, other, copy, 0, 0);
        let by = self.random.pick(&[0, 1, 4, 8, 16]);
        if by != 0 {
            self.emit(0x07, other, 0, 0, by);
        }
        self.set_number(copy);
        self.set_number(other);
        // One is tested, the other used.
        let (tested, used, limit) = match self.random.chance(50) {
            true => (other, copy, most + by),
            false => (copy, other, (most - by).max(0)),
        };
        let opcode = self.random.pick(&[0x25, 0x25, 0x65, 0x26]);
        let mut skips = vec![self.jump(opcode, tested, 0, limit)];
        if opcode == 0x65 {
            skips.push(self.jump(0xc5, tested, 0, 0));
        }
        let before = self.known;
        self.emit(0xbf, pointer, VALUE, 0, 0);
        self.forget(pointer);
        self.emit(0x0f, pointer, used, 0, 0);
        self.through(pointer, 0, size);
        self.merge(&skips, before);
        self.forget(pointer);
    }
}
