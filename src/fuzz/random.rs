//! Random numbers from a seed.

/// A source of random numbers (`SplitMix64`); the same seed gives the same numbers.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// 64 random bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `end`; 0 if `end` is 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        let bits = self.bits();
        if end == 0 { 0 } else { bits % end }
    }

    /// An index below `end`.
    pub fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).unwrap_or_default()
    }

    /// A byte below `end`, at most 256.
    pub fn byte(&mut self, end: u64) -> u8 {
        u8::try_from(self.below(end.min(256))).unwrap_or_default()
    }

    /// An `i32` from 0, below `end`.
    pub fn int(&mut self, end: u64) -> i32 {
        i32::try_from(self.below(end.min(1 << 31))).unwrap_or_default()
    }

    /// The offset of one of the first `end` stack slots: -8, -16 and so on.
    pub fn slot(&mut self, end: u64) -> i16 {
        -8 * (1 + i16::from(self.byte(end)))
    }

    /// One of these, which must not be empty.
    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())]
    }

    /// One of these, as often as its weight says; `None` if all weights are 0.
    pub fn weighted<'a, T>(&mut self, all: &'a [T], weight: impl Fn(&T) -> u64) -> Option<&'a T> {
        let mut at = self.below(all.iter().map(&weight).sum());
        all.iter().find(|one| {
            let weight = weight(one);
            let is_here = at < weight;
            at = at.saturating_sub(weight);
            is_here
        })
    }

    /// True with a probability of `percent` / 100.
    pub const fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A 32-bit constant, often a small one or a boundary value.
    pub fn imm(&mut self) -> i32 {
        let [.., a, b, c, d] = self.bits().to_le_bytes();
        let bits = i32::from_le_bytes([a, b, c, d]);
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

    /// A 64-bit constant, often a small one or a boundary value.
    pub fn wide(&mut self) -> u64 {
        let bits = self.bits();
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
