//! Times, taken so that neither others on the machine nor its changing speed show in
//! their ratios.
//!
//! A *sample* is the time of one run of a program that was loaded for it: the shortest
//! mean of some bursts, since nothing makes code faster than it is. Samples go round the
//! engines, so that a ratio is one of neighbours in time; the median of the ratios counts.

pub mod host;

use std::convert::Infallible;
use std::time::Duration;

use bpflab::util::{Bursts, median};

use crate::suite::columns::Column;
use crate::suite::engine::{Absent, Engine, Loaded};
use crate::suite::programs::Program;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Samples of each program on each engine, each of a program newly loaded.
    pub samples: usize,
    /// The bursts of a sample.
    pub bursts: Bursts,
}

impl Effort {
    /// Enough for a table.
    pub const FULL: Self = Self {
        samples: 11,
        bursts: Bursts {
            count: 6,
            length: Duration::from_millis(1),
        },
    };
    /// Enough to see whether all works.
    pub const QUICK: Self = Self {
        samples: 3,
        bursts: Bursts {
            count: 3,
            length: Duration::from_micros(300),
        },
    };

    /// Nanoseconds of something that is too slow for more than one in a burst.
    pub fn once(self, mut run: impl FnMut() -> Duration) -> f64 {
        infallible(self.bursts.shortest(1, |_| Ok(run())))
    }
}

fn infallible<T>(result: Result<T, Infallible>) -> T {
    let Ok(value) = result;
    value
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
                        samples.push(times.sample(&mut *loaded, effort.bursts));
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

/// The geometric mean, which is the same whichever way round ratios are taken.
pub fn geometric_mean(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let (count, sum) = numbers
        .into_iter()
        .fold((0_u32, 0.0), |(count, sum), number| {
            (count + 1, sum + number.ln())
        });
    (sum / f64::from(count)).exp()
}

/// How often a program runs in a burst, and the one that it is held against.
#[derive(Debug, Clone, Default)]
struct Times {
    program: Option<u32>,
    baseline: Option<u32>,
}

impl Times {
    fn sample(&mut self, loaded: &mut dyn Loaded, bursts: Bursts) -> f64 {
        let whole = shortest(loaded, &mut self.program, bursts);
        match loaded.baseline() {
            // What can't be told from nothing is not to be divided by.
            Some(empty) => (whole - shortest(empty, &mut self.baseline, bursts)).max(0.1),
            None => whole,
        }
    }
}

/// Nanoseconds of a run in the shortest burst.
fn shortest(loaded: &mut dyn Loaded, times: &mut Option<u32>, bursts: Bursts) -> f64 {
    let mut run = |times| Ok(loaded.run(times).0);
    let times = *times.get_or_insert_with(|| infallible(bursts.calibrate(&mut run)));
    infallible(bursts.shortest(times, run))
}
