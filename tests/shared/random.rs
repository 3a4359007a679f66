//! Random numbers that a seed brings back.

/// What a generator of random numbers must do here (splitmix64).
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A number of which the interesting ones are as likely as any.
    pub fn imm(&mut self) -> i32 {
        let bits = u32::try_from(self.next() >> 32).unwrap().cast_signed();
        match self.below(8) {
            0 => bits,
            1 => bits >> 24,
            2 => bits >> self.below(32),
            3 => 1i32 << self.below(32),
            4 => (1i32 << self.below(32)).wrapping_sub(1),
            5 => self.pick(&[0, 1, -1, i32::MIN, i32::MAX, -2, 2, 255, -128]),
            6 => bits & 0xff,
            _ => bits & (bits >> 16),
        }
    }

    /// As [`Self::imm`], of 64 bits.
    pub fn wide(&mut self) -> u64 {
        let bits = self.next();
        match self.below(6) {
            0 => bits,
            1 => bits >> self.below(64),
            2 => (bits.cast_signed() >> self.below(64)).cast_unsigned(),
            3 => (1 << self.below(64)) - self.below(2),
            4 => (bits >> 62) << 32 | bits & self.pick(&[0xff, 0x8000_00ff, 0x7fff_ffff]),
            _ => (1 << self.pick(&[31, 32, 63])) + bits % 9 - 4,
        }
    }
}
