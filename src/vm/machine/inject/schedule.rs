//! Schedules of injections: which calls fail.

use std::fmt;

/// Which of the matching calls fail, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Schedule {
    /// All of them.
    Always,
    /// From the first number to the second, both included; without a second, all from the first
    /// on.
    Calls(u64, Option<u64>),
    /// Every nth call.
    Every(u64),
    /// Each call with this probability, 0 to 1. The seed determines which calls.
    Chance(f64, u64),
}

impl Schedule {
    /// Whether the call with this number fails.
    #[doc(hidden)]
    #[must_use]
    pub fn hits(self, call: u64) -> bool {
        match self {
            Self::Always => true,
            Self::Calls(first, last) => first <= call && last.is_none_or(|last| call <= last),
            Self::Every(n) => n > 0 && call.is_multiple_of(n),
            Self::Chance(chance, seed) => drawn(seed, call) < chance,
        }
    }
}

/// A number in 0..1 that depends only on the seed and the call's number, so that CPUs which
/// share a counter need no other common state (SplitMix64: Steele, Lea and Flood, 2014).
fn drawn(seed: u64, call: u64) -> f64 {
    let mut bits = seed.wrapping_add(call.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    // As many bits as an f64 can represent.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    let number = (bits >> 11) as f64;
    number / 9_007_199_254_740_992.0
}

/// The part after `@` in an injection's text; empty for all calls.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => Ok(()),
            Self::Calls(first, Some(last)) if first == last => write!(f, "@{first}"),
            Self::Calls(first, Some(last)) => write!(f, "@{first}-{last}"),
            Self::Calls(first, None) => write!(f, "@{first}-"),
            Self::Every(n) => write!(f, "@/{n}"),
            Self::Chance(chance, 0) => write!(f, "@{}%", chance * 100.0),
            Self::Chance(chance, seed) => write!(f, "@{}%:{seed}", chance * 100.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(schedule: Schedule) -> Vec<u64> {
        (1..=8).filter(|call| schedule.hits(*call)).collect()
    }

    #[test]
    fn calls_are_counted_from_one() {
        assert_eq!(hits(Schedule::Always).len(), 8);
        assert_eq!(hits(Schedule::Calls(3, Some(3))), [3]);
        assert_eq!(hits(Schedule::Calls(3, Some(5))), [3, 4, 5]);
        assert_eq!(hits(Schedule::Calls(7, None)), [7, 8]);
        assert_eq!(hits(Schedule::Every(3)), [3, 6]);
        assert!(hits(Schedule::Every(0)).is_empty());
    }

    #[test]
    fn chance_is_as_often_as_it_says_and_the_same_each_time() {
        let count = |chance, seed| {
            let schedule = Schedule::Chance(chance, seed);
            (1..=100_000).filter(|call| schedule.hits(*call)).count()
        };
        for seed in 0..4 {
            assert!((24_000..26_000).contains(&count(0.25, seed)));
            assert_eq!(count(0.25, seed), count(0.25, seed));
            assert_eq!((count(0.0, seed), count(1.0, seed)), (0, 100_000));
        }
        assert_ne!(
            hits(Schedule::Chance(0.5, 1)),
            hits(Schedule::Chance(0.5, 2))
        );
    }
}
