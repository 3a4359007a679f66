//! Times, taken so that neither others on the machine nor its changing speed show in
//! their ratios.
//!
//! A *sample* is the time of one run of a program that was loaded for it: the shortest
//! mean of some bursts, since nothing makes code faster than it is. Samples go round the
//! engines, so that a ratio is one of neighbours in time; the median of the ratios counts.

pub mod host;
pub mod statistics;

use std::time::Duration;

use crate::suite::columns::Column;
use crate::suite::engine::{Absent, Engine, Loaded};
use crate::suite::programs::Program;
use statistics::median;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Samples of each program on each engine, each of a program newly loaded.
    pub samples: usize,
    /// Bursts in a sample.
    pub bursts: usize,
    /// How long a burst is to be.
    pub burst: Duration,
}

impl Effort {
    /// Enough for a table.
    pub const FULL: Self = Self {
        samples: 11,
        bursts: 6,
        burst: Duration::from_millis(1),
    };
    /// Enough to see whether all works.
    pub const QUICK: Self = Self {
        samples: 3,
        bursts: 3,
        burst: Duration::from_micros(300),
    };
}

/// A program's times.
#[derive(Debug)]
pub struct Row {
    pub program: &'static Program,
    /// By column: nanoseconds of a run, one for each sample.
    cells: Vec<Result<Vec<f64>, Absent>>,
}

impl Row {
    /// Measures a program on all engines.
    ///
    /// # Panics
    /// When an engine computes something wrong.
    pub fn measure(program: &'static Program, engines: &[Box<dyn Engine>], effort: Effort) -> Self {
        let expected = (program.expected)(&(program.input)());
        let mut cells: Vec<_> = engines.iter().map(|_| Ok(Vec::new())).collect();
        let mut times = vec![Times::default(); engines.len()];
        for _ in 0..effort.samples {
            for ((engine, cell), times) in engines.iter().zip(&mut cells).zip(&mut times) {
                let Ok(samples) = cell else { continue };
                match engine.load(program) {
                    Err(absent) => *cell = Err(absent),
                    Ok(mut loaded) => {
                        let (_, returned) = loaded.run(1);
                        assert_eq!(returned, expected, "{}", program.name);
                        samples.push(times.sample(&mut *loaded, effort));
                    }
                }
            }
        }
        Self { program, cells }
    }

    /// Nanoseconds of a run, the median.
    pub fn ns(&self, column: Column) -> Result<f64, &Absent> {
        self.samples(column).map(|samples| median(samples.to_vec()))
    }

    /// How much longer a run takes on one engine than on another, the median.
    pub fn ratio(&self, of: Column, to: Column) -> Option<f64> {
        let (of, to) = (self.samples(of).ok()?, self.samples(to).ok()?);
        Some(median(of.iter().zip(to).map(|(of, to)| of / to).collect()))
    }

    /// The same without what an empty program takes on the first engine.
    pub fn ratio_inside(&self, of: Column, to: Column, empty: &Self) -> Option<f64> {
        let (entry, to) = (empty.ns(of).ok()?, self.samples(to).ok()?);
        let of = self.samples(of).ok()?;
        let inside = |(of, to): (&f64, &f64)| (of - entry).max(0.0) / to;
        Some(median(of.iter().zip(to).map(inside).collect()))
    }

    fn samples(&self, column: Column) -> Result<&[f64], &Absent> {
        let at = Column::ALL.iter().position(|other| *other == column);
        let cell = &self.cells[at.expect("it is one of them")];
        cell.as_deref()
    }
}

/// How often a program runs in a burst, and the one that it is held against.
#[derive(Debug, Clone, Default)]
struct Times {
    program: Option<u32>,
    baseline: Option<u32>,
}

impl Times {
    fn sample(&mut self, loaded: &mut dyn Loaded, effort: Effort) -> f64 {
        let whole = fastest(loaded, &mut self.program, effort);
        match loaded.baseline() {
            // What can't be told from nothing is not to be divided by.
            Some(empty) => (whole - fastest(empty, &mut self.baseline, effort)).max(0.1),
            None => whole,
        }
    }
}

/// Nanoseconds of a run in the fastest burst.
fn fastest(loaded: &mut dyn Loaded, times: &mut Option<u32>, effort: Effort) -> f64 {
    let times = *times.get_or_insert_with(|| calibrate(loaded, effort.burst));
    shortest(effort.bursts, || loaded.run(times).0) / f64::from(times)
}

/// How many runs take as long as a burst is to be.
fn calibrate(loaded: &mut dyn Loaded, burst: Duration) -> u32 {
    let mut times: u32 = 1;
    loop {
        let elapsed = (0..3)
            .map(|_| loaded.run(times).0)
            .min()
            .unwrap_or_default();
        let fits = burst.as_nanos() * u128::from(times) / elapsed.as_nanos().max(1);
        if elapsed > burst / 8 || times > u32::MAX / 8 {
            return u32::try_from(fits).unwrap_or(u32::MAX).max(1);
        }
        times *= 4;
    }
}

/// Nanoseconds of the shortest of some tries.
pub fn shortest(tries: usize, mut once: impl FnMut() -> Duration) -> f64 {
    let ns = (0..tries).map(|_| once().as_secs_f64() * 1e9);
    ns.fold(f64::INFINITY, f64::min)
}
