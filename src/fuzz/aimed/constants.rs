//! Loads from maps that programs may only read. The contents are constants for the verifier if
//! user space can't write them any more, either.

use super::Maker;
use super::definitions::{FROZEN, OPEN};

impl Maker {
    /// A load of any size, mostly from a known place.
    pub(super) fn load_constant(&mut self) {
        let (size, bytes) = self.size();
        let at = self.random.int(32 / u64::from(bytes.unsigned_abs())) * bytes;
        let map = self.random.pick(&[FROZEN, FROZEN, OPEN]);
        let (pointer, dst) = (2, self.free());
        let first = self.random.chance(50);
        let (before, after) = if first { (at, 0) } else { (0, at) };
        self.emit(0x18, pointer, 6, 0, map);
        self.emit(0, 0, 0, 0, before);
        self.forget(pointer);
        if self.random.chance(10) {
            let index = self.number();
            self.emit(0xbf, 1, index, 0, 0);
            self.emit(0x57, 1, 0, 0, 8);
            self.set_number(1);
            self.emit(0x0f, pointer, 1, 0, 0);
        }
        let mode = if bytes < 8 && self.random.chance(40) {
            0x81
        } else {
            0x61
        };
        let off = i16::try_from(after).unwrap_or_default();
        match self.random.chance(3) {
            true => self.emit(0x62 | size, pointer, 0, off, 1),
            false => {
                self.emit(mode | size, dst, pointer, off, 0);
                self.set_number(dst);
            }
        }
    }
}
