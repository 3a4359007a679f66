//! Paths that meet with different states: what one path leaves in a register or slot is safe to use,
//! what the other one leaves may not be. A verifier that takes one for the other accepts too much.

use crate::spec::helpers::id;

use super::{AREA, COUNTER, FP, HASH, Maker, VALUE};

/// Where paths leave something.
#[derive(Debug, Clone, Copy)]
enum Place {
    Reg(u8),
    Slot(i16),
}

/// What a path leaves there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// What was there before.
    Nothing,
    Constant(i32),
    Number,
    /// Zeros, of which one byte is overwritten if it is a slot.
    PartlyZero,
    /// The map value's address, with an offset.
    Value(i32),
    /// The address of another value, which may be null.
    MaybeNull,
    /// An address on the stack.
    Stack,
}

impl Left {
    const fn is_pointer(self) -> bool {
        matches!(self, Self::Value(_) | Self::MaybeNull | Self::Stack)
    }
}

/// The register through which things are moved.
const MOVED: u8 = 1;

impl Maker {
    /// Two paths leave different things in one place, which is then used.
    pub(super) fn join(&mut self) {
        let (one, other) = self.two_things();
        let place = match self.random.chance(50) {
            true => Place::Reg(self.random.pick(&[8, COUNTER])),
            false => Place::Slot(self.random.slot(8)),
        };
        // What is there if a path leaves nothing.
        if self.random.chance(50) {
            self.leave(place, Left::Constant(0));
        }
        let asked = self.number();
        let imm = self.random.int(16);
        let opcode = self.random.pick(&[0x15, 0x55, 0x25, 0xa5]);
        let to_other = self.jump(opcode, asked, 0, imm);
        self.two_paths(
            to_other,
            |maker| maker.leave(place, one),
            |maker| maker.leave(place, other),
        );
        self.forget_all();
        if self.random.chance(60) {
            self.between(place);
        }
        self.take(place);
        let pointer = one.is_pointer() || other.is_pointer();
        if pointer && self.random.chance(90) {
            self.use_pointer();
        } else {
            for _ in 0..self.random.below(3) {
                self.carry();
            }
            let is_known = |left| matches!(left, Left::Constant(_));
            match self.random.below(6) {
                // A number from an address is another one in each machine.
                _ if pointer => self.decide(one),
                0..3 => self.use_offset(is_known(one) && is_known(other)),
                3 | 4 => self.decide(one),
                _ => self.emit(0x7b, VALUE, MOVED, 0, 0),
            }
        }
        self.forget_all();
    }

    /// Two paths leave different constants in a slot, whose address a function gets, which may
    /// overwrite the slot on one of its own paths only.
    pub(super) fn join_and_call(&mut self) {
        let (slot, one) = (self.random.slot(8), self.constant());
        // Out of bounds, if it is still there in the end.
        let other = match self.random.chance(25) {
            true => AREA,
            false => self.constant(),
        };
        let asked = self.number();
        let to_other = self.jump(0x25, asked, 0, 16);
        self.two_paths(
            to_other,
            |maker| maker.leave(Place::Slot(slot), Left::Constant(one)),
            |maker| maker.leave(Place::Slot(slot), Left::Constant(other)),
        );
        self.input(1);
        self.address(2, slot);
        self.call_function();
        self.emit(0x79, MOVED, FP, slot, 0);
        self.use_offset(true);
        self.forget_all();
    }

    fn two_things(&mut self) -> (Left, Left) {
        let (a, b) = (self.constant(), self.constant());
        let off = self.random.pick(&[8, 16, 56]);
        let pairs = [
            (Left::Constant(a), Left::Constant(b)),
            (Left::Constant(a), Left::Constant(b)),
            (Left::Constant(a), Left::Number),
            (Left::Constant(0), Left::PartlyZero),
            (Left::Constant(0), Left::Number),
            (Left::Constant(a), Left::Nothing),
            (Left::Number, Left::Nothing),
            (Left::Value(0), Left::MaybeNull),
            (Left::Value(0), Left::Value(off)),
            (Left::Value(0), Left::Stack),
            (Left::Value(0), Left::Constant(a)),
            (Left::MaybeNull, Left::Constant(0)),
        ];
        let (one, other) = self.random.pick(&pairs);
        match self.random.chance(50) {
            true => (one, other),
            false => (other, one),
        }
    }

    /// Nothing but the context and the map value is known afterwards.
    pub(super) const fn forget_all(&mut self) {
        self.known.numbers = 0;
        self.known.stack = 0;
    }

    fn leave(&mut self, place: Place, left: Left) {
        match left {
            Left::Nothing => return,
            Left::Constant(imm) => self.emit(0xb7, MOVED, 0, 0, imm),
            Left::PartlyZero => self.emit(0xb7, MOVED, 0, 0, 0),
            Left::Number => {
                let number = self.number();
                self.emit(0xbf, MOVED, number, 0, 0);
            }
            Left::Value(off) => {
                self.emit(0xbf, MOVED, VALUE, 0, 0);
                self.emit(0x07, MOVED, 0, 0, off);
            }
            Left::MaybeNull => {
                let (slot, key) = (self.random.slot(8), self.random.int(3));
                self.emit(0x7a, FP, 0, slot, key);
                self.element(HASH, slot);
                self.helper(id::map_lookup_elem);
                self.emit(0xbf, MOVED, 0, 0, 0);
            }
            Left::Stack => {
                self.emit(0xbf, MOVED, FP, 0, 0);
                self.emit(0x07, MOVED, 0, 0, -AREA);
            }
        }
        self.forget(MOVED);
        match place {
            Place::Reg(reg) => self.emit(0xbf, reg, MOVED, 0, 0),
            Place::Slot(slot) => {
                self.store_slot(slot);
                if left == Left::PartlyZero {
                    let number = self.number();
                    let off = slot + i16::from(self.random.byte(8));
                    self.emit(0x73, FP, number, off, 0);
                }
            }
        }
    }

    /// Stores what is moved in a slot, through the frame pointer or a copy of it.
    fn store_slot(&mut self, slot: i16) {
        let (base, off) = self.base(slot);
        self.emit(0x7b, base, MOVED, off, 0);
    }

    fn base(&mut self, slot: i16) -> (u8, i16) {
        if self.random.chance(60) {
            return (FP, slot);
        }
        let off = i16::from(self.random.byte(3)) * 8;
        self.emit(0xbf, 2, FP, 0, 0);
        self.emit(0x07, 2, 0, 0, i32::from(slot - off));
        self.forget(2);
        (2, off)
    }

    /// Other steps, or another store to the place on one path.
    fn between(&mut self, place: Place) {
        match self.random.below(3) {
            0 => {
                let number = self.number();
                let skip = self.around(number);
                let imm = self.constant();
                self.leave(place, Left::Constant(imm));
                self.land(skip);
                self.forget_all();
            }
            1 => {
                self.arithmetic();
                self.branch();
                self.arithmetic();
                self.close();
            }
            _ => self.arithmetic(),
        }
    }

    fn take(&mut self, place: Place) {
        match place {
            Place::Reg(reg) => self.emit(0xbf, MOVED, reg, 0, 0),
            Place::Slot(slot) => {
                let (base, off) = self.base(slot);
                let size = self.random.pick(&[0x18, 0x18, 0x18, 0x10, 0x00]);
                self.emit(0x61 | size, MOVED, base, off, 0);
            }
        }
        self.forget(MOVED);
    }

    /// Moves the number on: through a slot, an atomic operation, a register, a function.
    fn carry(&mut self) {
        let slot = self.random.slot(8);
        match self.random.below(15) {
            0..4 => {
                self.store_slot(slot);
                let (base, off) = self.base(slot);
                self.emit(0x79, MOVED, base, off, 0);
            }
            4 => {
                // The old value, by an addition, an or, an exchange.
                self.store_slot(slot);
                let operation = self.random.pick(&[0x01, 0x41, 0xe1]);
                self.emit(0xb7, MOVED, 0, 0, 0);
                self.emit(0xdb, FP, MOVED, slot, operation);
            }
            5 | 6 => {
                let by = self.random.pick(&[0, 0, 8]);
                self.emit(0xb7, 3, 0, 0, by);
                self.emit(0x0f, MOVED, 3, 0, 0);
            }
            7 => {
                self.emit(0xbf, 4, MOVED, 0, 0);
                self.emit(0xbf, MOVED, 4, 0, 0);
            }
            _ => {
                self.store_slot(slot);
                match self.random.chance(60) {
                    true => self.input(1),
                    false => self.emit(0xb7, 1, 0, 0, 0),
                }
                self.address(2, slot);
                self.call_function();
                match self.random.chance(50) {
                    true => self.emit(0x79, MOVED, FP, slot, 0),
                    false => self.emit(0xbf, MOVED, 0, 0, 0),
                }
            }
        }
        self.forget(MOVED);
    }

    /// An access at the number, with a bound mostly where it needs one.
    fn use_offset(&mut self, is_known: bool) {
        let skips = match self.random.chance(if is_known { 10 } else { 80 }) {
            true => self.bound(MOVED, AREA - 8),
            false => Vec::new(),
        };
        self.emit(0xbf, 2, VALUE, 0, 0);
        self.emit(0x0f, 2, MOVED, 0, 0);
        self.forget(2);
        self.through(2, 0, 0x18);
        for skip in skips {
            self.land(skip);
        }
    }

    /// The number decides whether an access is reached that may be out of bounds.
    fn decide(&mut self, one: Left) {
        let imm = match one {
            Left::Constant(imm) => imm,
            _ => 0,
        };
        let fine = self.jump(0x15, MOVED, 0, imm);
        let off = self.random.pick(&[AREA, AREA - 8]);
        self.emit(0x79, 3, VALUE, i16::try_from(off).unwrap_or_default(), 0);
        self.land(fine);
    }

    fn use_pointer(&mut self) {
        let checks = self.random.chance(70);
        let null = checks.then(|| self.jump(0x15, MOVED, 0, 0));
        let off = i16::try_from(self.random.pick(&[0, 0, AREA - 8])).unwrap_or_default();
        match self.random.chance(60) {
            true => self.emit(0x79, 2, MOVED, off, 0),
            false => {
                let imm = self.random.imm();
                self.emit(0x7a, MOVED, 0, off, imm);
            }
        }
        if let Some(null) = null {
            self.land(null);
        }
    }
}
