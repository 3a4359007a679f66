//! Measures times so that their ratios don't depend on other processes or on changes of the
//! CPU's speed.
//!
//! A *sample* is the time of one run of a newly loaded program: the shortest mean of
//! several bursts, since disturbances only add time. The engines are sampled in turn, so a
//! ratio is of samples that are adjacent in time; the median of the ratios counts.

pub mod host;

use std::convert::Infallible;
use std::time::Duration;

use bpflab::util::{Bursts, median};

use crate::suite::columns::Column;
use crate::suite::engine::{Absent, Engine, Loaded};
use crate::suite::programs::Program;

/// The number and length of measurements.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Samples of each program on each engine; the program is loaded anew for each.
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
    /// Enough to check that everything works.
    pub const QUICK: Self = Self {
        samples: 3,
        bursts: Bursts {
            count: 3,
            length: Duration::from_micros(300),
        },
    };

    /// Nanoseconds of an operation so slow that a burst holds only one.
    pub fn once(self, mut run: impl FnMut() -> Duration) -> f64 {
        infallible(self.bursts.shortest(1, |_| Ok(run())))
    }
}

fn infallible<T>(result: Result<T, Infallible>) -> T {
    let Ok(value) = result;
    value
}

/// The times of a program.
#[derive(Debug)]
pub struct Row {
    pub program: &'static Program,
    /// By column: nanoseconds per run, one for each sample.
    cells: Vec<Result<Vec<f64>, Absent>>,
}

impl Row {
    /// Measures a program on all engines.
    ///
    /// # Panics
    /// If an engine computes a wrong result.
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

    /// The median of nanoseconds per run.
    pub fn ns(&self, column: Column) -> Result<f64, &Absent> {
        self.samples(column).map(|samples| median(samples.to_vec()))
    }

    /// The median ratio of the time on one engine to the time on another.
    pub fn ratio(&self, of: Column, to: Column) -> Option<f64> {
        let (of, to) = (self.samples(of).ok()?, self.samples(to).ok()?);
        Some(median(of.iter().zip(to).map(|(of, to)| of / to).collect()))
    }

    /// The same ratio, after subtracting the first engine's time for an empty program.
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

/// The geometric mean: for inverted ratios it is the inverse.
pub fn geometric_mean(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let (count, sum) = numbers
        .into_iter()
        .fold((0_u32, 0.0), |(count, sum), number| {
            (count + 1, sum + number.ln())
        });
    (sum / f64::from(count)).exp()
}

/// Runs in a burst, for a program and for its baseline.
#[derive(Debug, Clone, Default)]
struct Times {
    program: Option<u32>,
    baseline: Option<u32>,
}

impl Times {
    fn sample(&mut self, loaded: &mut dyn Loaded, bursts: Bursts) -> f64 {
        let whole = shortest(loaded, &mut self.program, bursts);
        match loaded.baseline() {
            // At least 0.1 ns, because ratios divide by it.
            Some(empty) => (whole - shortest(empty, &mut self.baseline, bursts)).max(0.1),
            None => whole,
        }
    }
}

/// Nanoseconds per run in the shortest burst.
fn shortest(loaded: &mut dyn Loaded, times: &mut Option<u32>, bursts: Bursts) -> f64 {
    let mut run = |times| Ok(loaded.run(times).0);
    let times = *times.get_or_insert_with(|| infallible(bursts.calibrate(&mut run)));
    infallible(bursts.shortest(times, run))
}
