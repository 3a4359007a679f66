//! The bytes from which programs are generated.

/// A sequence of bytes that decisions are drawn from, one after the other.
///
/// After the end every byte is zero, and zero always selects the simplest alternative and
/// the least of it. So a shorter sequence, or one with more zeros, makes a simpler program:
/// when proptest and fuzzers shrink an input, they shrink the program.
///
/// ```
/// use bpflab::r#gen::Choices;
///
/// let mut same = [Choices::seeded(7, 64), Choices::seeded(7, 64)];
/// let drawn = same.each_mut().map(|choices| choices.wide());
/// assert_eq!(drawn[0], drawn[1]);
/// assert_eq!(Choices::new([]).wide(), 0);
/// ```
#[derive(Debug, Clone)]
pub struct Choices {
    bytes: Vec<u8>,
    at: usize,
}

/// Boundary values of instructions.
const EDGES: [u64; 12] = [
    0,
    1,
    u64::MAX,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0x8000_0000,
    0x7fff_ffff,
    0xffff_ffff,
    0xffff_ffff_8000_0000,
    0x1_0000_0000,
    63,
    0xfedc_ba98_7654_3210,
];

impl Choices {
    /// Creates decisions from these bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            bytes: bytes.into(),
            at: 0,
        }
    }

    /// Creates decisions from `len` bytes generated from a seed (`SplitMix64`).
    #[must_use]
    pub fn seeded(seed: u64, len: usize) -> Self {
        let mut state = seed;
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            bytes.extend((z ^ (z >> 31)).to_le_bytes());
        }
        bytes.truncate(len);
        Self::new(bytes)
    }

    /// Whether all bytes have been drawn.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        byte.unwrap_or(0)
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    /// A number below `end`, at most 255; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.clamp(1, 256)
    }

    /// True with a probability of `percent` / 100.
    pub fn chance(&mut self, percent: u16) -> bool {
        let byte = u16::from(self.byte());
        (255 - byte) * 100 < percent * 256 && byte != 0
    }

    /// One of these, which must not be empty.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// One of these, if there is any.
    pub fn any<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| self.pick(from))
    }

    /// A 32-bit constant, often a small one or a boundary value.
    pub fn imm(&mut self) -> i32 {
        match self.below(4) {
            0 => i32::from(i8::from_le_bytes(self.bytes())),
            1 => self.pick(&[0, 1, -1, 2, i32::MAX, i32::MIN, 0xff, 0xffff, 255, 31, 32]),
            _ => i32::from_le_bytes(self.bytes()),
        }
    }

    /// A 64-bit constant, often a boundary value.
    pub fn wide(&mut self) -> u64 {
        match self.below(3) {
            0 => u64::from(self.byte()),
            1 => self.pick(&EDGES),
            _ => u64::from_le_bytes(self.bytes()),
        }
    }

    /// `len` bytes generated from a single drawn byte: contents of packets and maps matter
    /// less than the program.
    pub fn contents(&mut self, len: usize) -> Vec<u8> {
        let seed = u64::from(self.byte());
        match seed {
            0 => vec![0; len],
            _ => Self::seeded(seed, len).bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_decide_for_the_first_and_the_least() {
        let mut none = Choices::new([]);
        assert!(none.is_over());
        assert_eq!((none.below(7), none.pick(&[3, 4])), (0, 3));
        assert_eq!((none.imm(), none.wide(), none.chance(100)), (0, 0, false));
        assert_eq!(none.contents(3), [0; 3]);
    }

    #[test]
    fn chances_are_what_they_say() {
        for percent in [1, 10, 50, 90] {
            let happens = |byte: u8| Choices::new([byte]).chance(percent);
            let count = (0..=255).filter(|byte| happens(*byte)).count();
            let expected = usize::from(percent) * 256 / 100;
            assert!(count.abs_diff(expected) <= 2, "{percent}: {count}");
        }
    }
}
