//! Records, look-ups, and calls of a function.

use crate::spec::helpers::id;
use crate::util::HelperId;

use super::{AREA, FP, HASH, Maker, RECORDS, VALUE, VALUES};

impl Maker {
    /// A record is reserved, perhaps moved through the stack, written, and given back.
    pub(super) fn record(&mut self) {
        if self.in_loop {
            return self.arithmetic();
        }
        self.reserve(RECORDS, 64);
        self.forget(0);
        let skip = self.jump(0x15, 0, 0, 0);
        let slot = self.random.slot(8);
        let place = Self::mask(AREA + i32::from(slot), 8);
        let saved = if self.random.chance(40) {
            self.emit(0x7b, FP, 0, slot, 0);
            self.emit(0x79, 1, FP, slot, 0);
            // A pointer in the slot is no number.
            self.known.stack &= !place;
            1
        } else {
            self.emit(0xbf, 1, 0, 0, 0);
            1
        };
        if self.random.chance(60) {
            let (size, bytes) = self.size();
            let off = self
                .random
                .int(u64::from((AREA - bytes).cast_unsigned()) + 1);
            let imm = self.random.imm();
            let off = i16::try_from(off).unwrap_or_default();
            self.emit(0x62 | size, saved, 0, off, imm);
        }
        if self.random.chance(97) {
            if self.random.chance(3) {
                // Not the start of the record.
                self.emit(0x07, saved, 0, 0, 8);
            }
            self.emit(0xb7, 2, 0, 0, 0);
            let helper = self.random.pick(&[id::ringbuf_submit, id::ringbuf_discard]);
            self.helper(helper);
        }
        self.land(skip);
        self.known.stack &= !place;
        self.forget(0);
        for reg in 1..6 {
            self.forget(reg);
        }
    }

    /// A call of a helper: r0 is a number then, r1 to r5 are nothing.
    pub(super) fn helper(&mut self, helper: HelperId) {
        self.emit(0x85, 0, 0, 0, helper.0.cast_signed());
        for reg in 1..6 {
            self.forget(reg);
        }
        self.set_number(0);
    }

    /// r1 and r2 of a helper: a map, and the key in a slot.
    pub(super) fn element(&mut self, map: i32, slot: i16) {
        self.address(2, slot);
        self.map(map);
    }

    /// r1: a map.
    pub(super) fn map(&mut self, map: i32) {
        self.emit(0x18, 1, 5, 0, map);
        self.emit(0, 0, 0, 0, 0);
    }

    /// The map value in its register.
    pub(super) fn load_value(&mut self) {
        self.emit(0x18, VALUE, 6, 0, VALUES);
        self.emit(0, 0, 0, 0, 0);
    }

    /// The address of a slot.
    pub(super) fn address(&mut self, reg: u8, slot: i16) {
        self.emit(0xbf, reg, FP, 0, 0);
        self.emit(0x07, reg, 0, 0, slot.into());
    }

    /// Reserves a record of a ring buffer: its address is in r0, if it is not null.
    pub(super) fn reserve(&mut self, map: i32, len: i32) {
        self.map(map);
        self.emit(0xb7, 2, 0, 0, len);
        self.emit(0xb7, 3, 0, 0, 0);
        self.helper(id::ringbuf_reserve);
    }

    /// Writes the map value to the hash, under the key in a slot.
    pub(super) fn update_element(&mut self, slot: i16) {
        self.element(HASH, slot);
        self.emit(0xbf, 3, VALUE, 0, 0);
        self.emit(0xb7, 4, 0, 0, 0);
        self.helper(id::map_update_elem);
    }

    /// A look-up in the hash with a number as the key, and an access to the value.
    pub(super) fn look_up(&mut self) {
        if self.in_loop {
            return self.arithmetic();
        }
        let slot = self.random.slot(8);
        let key = self.number();
        if self.random.chance(60) {
            self.emit(0x57, key, 0, 0, 3);
        }
        self.emit(0x7b, FP, key, slot, 0);
        self.known.stack |= Self::mask(AREA + i32::from(slot), 8);
        if self.random.chance(40) {
            self.update_element(slot);
        }
        self.element(HASH, slot);
        self.helper(id::map_lookup_elem);
        self.forget(0);
        let skip = self.jump(0x15, 0, 0, 0);
        let (size, bytes) = self.size();
        let most = self.most(bytes);
        let before = self.known;
        let mut skips = vec![skip];
        let off = if self.random.chance(50) && self.known.numbers != 0 {
            let index = self.number();
            self.emit(0xbf, 1, index, 0, 0);
            skips.extend(self.bound(1, most));
            self.emit(0x0f, 0, 1, 0, 0);
            0
        } else {
            i16::try_from(most).unwrap_or_default()
        };
        self.emit(0x61 | size, 8, 0, off, 0);
        for skip in skips {
            self.land(skip);
        }
        self.known = before;
        for reg in 0..6 {
            self.forget(reg);
        }
    }

    /// A helper reads the map value or the stack, from an offset on, with a size that mostly just
    /// fits.
    pub(super) fn send(&mut self) {
        let offset = self.random.int(4) * 8;
        let in_value = self.known.stack != u64::MAX || self.random.chance(60);
        let room = AREA - offset;
        let most = match self.random.below(12) {
            0 => room + self.random.pick(&[1, 8, AREA]),
            1..9 => room,
            _ => 1 + self.random.int(room.cast_unsigned().into()),
        };
        let before = self.known;
        let (size, index) = (3, self.number());
        self.emit(0xbf, size, index, 0, 0);
        self.set_number(size);
        let skips = match self.random.below(10) {
            0 => vec![self.jump(0x65, size, 0, most)],
            1 => {
                self.emit(0xb7, size, 0, 0, most);
                Vec::new()
            }
            _ => self.bound(size, most),
        };
        let (pointer, from) = if in_value {
            (VALUE, offset)
        } else {
            (FP, offset - AREA)
        };
        self.emit(0xbf, 2, pointer, 0, 0);
        self.emit(0x07, 2, 0, 0, from);
        self.map(RECORDS);
        self.emit(0xb7, 4, 0, 0, 0);
        self.helper(id::ringbuf_output);
        for skip in &skips {
            self.land(*skip);
        }
        self.known.numbers &= before.numbers;
        for reg in 0..6 {
            self.forget(reg);
        }
    }

    /// A look-up in the array with a constant, whose result needs no test if the element exists.
    pub(super) fn look_up_constant(&mut self) {
        let slot = self.random.slot(8);
        let key = self.random.pick(&[0, 0, 0, 0, 0, 1, -1, 2]);
        self.emit(0x62, FP, 0, slot, key);
        self.known.stack |= Self::mask(AREA + i32::from(slot), 4);
        self.element(VALUES, slot);
        self.helper(id::map_lookup_elem);
        self.forget(0);
        let tests = self.random.chance(if key == 0 { 20 } else { 70 });
        let skip = tests.then(|| self.jump(0x15, 0, 0, 0));
        let off = i16::from(self.random.byte(8)) * 8;
        self.emit(0x79, 1, 0, off, 0);
        self.emit(0x7b, VALUE, 1, off, 0);
        if let Some(skip) = skip {
            self.land(skip);
        }
    }

    /// A call of the static function.
    pub(super) fn call(&mut self) {
        if self.in_loop {
            return self.arithmetic();
        }
        let (one, other) = (self.number(), self.number());
        match (one, other) {
            (_, 1) => {
                self.emit(0xbf, 2, other, 0, 0);
                self.emit(0xbf, 1, one, 0, 0);
            }
            _ => {
                self.emit(0xbf, 1, one, 0, 0);
                self.emit(0xbf, 2, other, 0, 0);
            }
        }
        self.call_function();
    }

    /// A call of the static function, whose arguments are set.
    pub(super) fn call_function(&mut self) {
        self.calls.push(self.insns.len());
        self.emit(0x85, 0, 1, 0, 0);
        for reg in 1..6 {
            self.forget(reg);
        }
        self.set_number(0);
    }
}
