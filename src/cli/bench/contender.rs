//! A program on an engine, as a benchmark times it.

use std::time::Duration;

use crate::cli::exit::Failure;
use crate::harness::Error;

/// Why there is no result.
pub(super) enum Stopped {
    /// This engine does not run this program.
    Unavailable(String),
    /// An error.
    Failed(Failure),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

/// A program on an engine.
pub(super) trait Contender {
    /// The engine's name.
    fn name(&self) -> &'static str;

    /// Runs the program `times` times and returns the elapsed time.
    fn run(&mut self, times: u32) -> Result<Duration, Stopped>;

    /// Runs as often without the program, to measure the overhead around a run.
    fn run_nothing(&mut self, _times: u32) -> Result<Duration, Stopped> {
        Ok(Duration::ZERO)
    }

    /// Instructions executed per run, if they are counted.
    fn insns(&self) -> Option<u64> {
        None
    }

    /// The time the kernel took to load it.
    fn load_time(&self) -> Option<Duration> {
        None
    }
}
