//! Dynptrs on the stack: paths that meet with another one, or none, in the same slots; stores to
//! the slots, and loads from them.

use crate::spec::helpers::id;

use super::{AREA, FP, Maker, RECORDS, VALUE};

/// Where it lies.
const PLACE: i16 = -80;

/// The number of a record among the things that can be made.
const RECORD: u8 = 0;

impl Maker {
    /// Two paths meet, and what should be a dynptr is used.
    pub(super) fn join_dynptr(&mut self) {
        let asked = self.number();
        let imm = self.random.int(16);
        let to_other = self.jump(0xa5, asked, 0, imm);
        let one = self.random.byte(8);
        let other = match self.random.chance(60) {
            true => one,
            false => self.random.byte(8),
        };
        self.two_paths(
            to_other,
            |maker| maker.make_dynptr(one),
            |maker| maker.make_dynptr(other),
        );
        self.known.numbers = 0;
        if self.random.chance(20) {
            let number = self.number();
            self.compute(number);
        }
        match self.random.below(10) {
            0 => {
                let off = self.random.pick(&[0, 4, 8]);
                self.emit(0x61, 1, FP, PLACE + off, 0);
            }
            1 => {
                let off = self.random.pick(&[0, 4, 8]);
                self.emit(0x62, FP, 0, PLACE + off, 0);
            }
            _ => {}
        }
        self.use_dynptr();
        if one == RECORD || other == RECORD {
            self.address(1, PLACE);
            self.emit(0xb7, 2, 0, 0, 0);
            self.helper(id::ringbuf_submit_dynptr);
        }
        self.known.numbers = 0;
    }

    /// Two records, which the paths may reserve in another order.
    pub(super) fn join_two_dynptrs(&mut self) {
        let places = [PLACE, PLACE - 16];
        let asked = self.number();
        let imm = self.random.int(16);
        let to_other = self.jump(0xa5, asked, 0, imm);
        let [first, second] = places;
        let others = self.random.pick(&[[first, second], [second, first]]);
        let reserve = |maker: &mut Self, places: [i16; 2]| {
            for place in places {
                maker.reserve_dynptr(place);
            }
        };
        self.two_paths(
            to_other,
            |maker| reserve(maker, places),
            |maker| reserve(maker, others),
        );
        self.known.numbers = 0;
        if self.random.chance(30) {
            let number = self.number();
            self.compute(number);
        }
        for place in places {
            self.address(1, place);
            self.emit(0xb7, 2, 0, 0, 0);
            self.helper(id::ringbuf_submit_dynptr);
        }
        self.known.numbers = 0;
    }

    fn reserve_dynptr(&mut self, place: i16) {
        self.map(RECORDS);
        self.emit(0xb7, 2, 0, 0, AREA);
        self.emit(0xb7, 3, 0, 0, 0);
        self.address(4, place);
        self.helper(id::ringbuf_reserve_dynptr);
    }

    /// One of the map value, of a new record, or other bytes.
    fn make_dynptr(&mut self, what: u8) {
        match what {
            RECORD => self.reserve_dynptr(PLACE),
            1 => {
                for off in [0, 8] {
                    let imm = self.random.imm();
                    self.emit(0x7a, FP, 0, PLACE + off, imm);
                }
            }
            2 => {}
            _ => {
                let len = self.random.pick(&[8, AREA]);
                self.emit(0xbf, 1, VALUE, 0, 0);
                self.emit(0xb7, 2, 0, 0, len);
                self.emit(0xb7, 3, 0, 0, 0);
                self.address(4, PLACE);
                self.helper(id::dynptr_from_mem);
            }
        }
    }

    fn use_dynptr(&mut self) {
        let off = self.random.pick(&[0, 8, AREA - 8]);
        if self.random.chance(50) {
            self.address(1, PLACE);
            self.emit(0xb7, 2, 0, 0, off);
            self.emit(0xb7, 3, 0, 0, 8);
            self.helper(id::dynptr_data);
            let null = self.jump(0x15, 0, 0, 0);
            self.emit(0x79, 1, 0, 0, 0);
            self.emit(0x7b, VALUE, 1, 0, 0);
            self.land(null);
        } else {
            self.address(1, -8);
            self.emit(0xb7, 2, 0, 0, 8);
            self.address(3, PLACE);
            self.emit(0xb7, 4, 0, 0, off);
            self.emit(0xb7, 5, 0, 0, 0);
            self.helper(id::dynptr_read);
        }
        self.forget(0);
    }
}
