//! Random numbers, the same in every run.

/// A generator of pseudo-random numbers (SplitMix64, Steele et al. 2014). Its state is a single
/// number, which a test can set.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Restarts the generator with this seed.
    pub fn seed(&mut self, seed: u64) -> &mut Self {
        self.state = seed;
        self
    }

    /// A generator for a CPU, seeded from this one's state and the CPU number.
    pub(super) fn on_cpu(&self, cpu: u32) -> Self {
        let mut seeds = self.clone();
        let seed = seeds.next_u64();
        Self::new(Self::new(seed ^ u64::from(cpu)).next_u64())
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next 32 bits (`bpf_get_prandom_u32`).
    pub fn next_u32(&mut self) -> u32 {
        u32::try_from(self.next_u64() >> 32).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_published_sequence() {
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(random.next_u64(), 3_203_168_211_198_807_973);
        let first = random.seed(7).next_u32();
        assert_eq!(random.seed(7).next_u32(), first);
    }

    #[test]
    fn each_cpu_has_numbers_of_its_own_the_same_each_time() {
        let random = Random::new(1);
        let of = |cpu| random.on_cpu(cpu).next_u64();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert_ne!(of(0), random.clone().next_u64());
    }
}
