//! Timing of short runs on a machine that also runs other work.

use std::time::Duration;

/// How a run is timed: many runs per burst, since clocks are coarse and slow, and several
/// bursts. The shortest burst counts: other work only makes runs slower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bursts {
    /// Number of bursts.
    pub count: usize,
    /// Target length of one burst.
    pub length: Duration,
}

impl Bursts {
    /// Returns how many runs fill a burst; at least one. `run(n)` does `n` runs and returns
    /// the time they took.
    ///
    /// # Errors
    /// The first error of `run`.
    pub fn calibrate<E>(self, mut run: impl FnMut(u32) -> Result<Duration, E>) -> Result<u32, E> {
        /// Fraction of a burst that is long enough to extrapolate from.
        const PART: u32 = 8;
        let mut times: u32 = 1;
        loop {
            let elapsed = run(times)?.min(run(times)?).min(run(times)?);
            if elapsed >= self.length / PART || times > u32::MAX / 8 {
                let fits = self.length.as_nanos() * u128::from(times) / elapsed.as_nanos().max(1);
                return Ok(u32::try_from(fits).unwrap_or(u32::MAX).max(1));
            }
            times *= 4;
        }
    }

    /// Nanoseconds per run: the average of the shortest burst of `times` runs.
    ///
    /// # Errors
    /// The first error of `run`.
    pub fn shortest<E>(
        self,
        times: u32,
        mut run: impl FnMut(u32) -> Result<Duration, E>,
    ) -> Result<f64, E> {
        let mut shortest = Duration::MAX;
        for _ in 0..self.count {
            shortest = shortest.min(run(times)?);
        }
        Ok(shortest.as_secs_f64() * 1e9 / f64::from(times.max(1)))
    }
}

/// Median: the middle number, or the mean of the middle two. NaN for an empty list.
#[must_use]
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let upper = numbers.get(numbers.len() / 2);
    let lower = numbers.get(numbers.len().saturating_sub(1) / 2);
    match (lower, upper) {
        (Some(lower), Some(upper)) => f64::midpoint(*lower, *upper),
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BURSTS: Bursts = Bursts {
        count: 3,
        length: Duration::from_micros(100),
    };

    /// A run that takes 100 ns, and 200 ns every other time.
    fn uneven() -> impl FnMut(u32) -> Result<Duration, ()> {
        let mut calls = 0;
        move |times| {
            calls += 1;
            Ok(Duration::from_nanos(100) * times * (1 + calls % 2))
        }
    }

    #[test]
    fn a_burst_is_as_long_as_wished() {
        assert_eq!(BURSTS.calibrate(uneven()), Ok(1000));
        // A run that takes longer than a burst runs once.
        let slow = |times| Ok::<_, ()>(Duration::from_secs(1) * times);
        assert_eq!(BURSTS.calibrate(slow), Ok(1));
        assert_eq!(BURSTS.calibrate(|_| Err(7)), Err(7));
    }

    #[test]
    fn the_shortest_burst_counts() {
        let ns = BURSTS.shortest(1000, uneven()).unwrap_or_default();
        assert!((ns - 100.0).abs() < 1e-6, "{ns}");
    }

    #[test]
    fn medians_are_in_the_middle() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(vec![4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
        assert!(median(Vec::new()).is_nan());
    }
}
