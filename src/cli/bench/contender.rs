//! What takes part in a benchmark.

use std::time::Duration;

use crate::cli::exit::Failure;
use crate::harness::Error;

/// Why there is no time.
pub(super) enum Stopped {
    /// This engine does not run this program.
    Unavailable(String),
    /// Something is wrong.
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

    /// Runs it so often; the time that this took.
    fn run(&mut self, times: u32) -> Result<Duration, Stopped>;

    /// The same without the program, where a run has more around it than is its own.
    fn run_nothing(&mut self, _times: u32) -> Result<Duration, Stopped> {
        Ok(Duration::ZERO)
    }

    /// Instructions that a run executed, where they are counted.
    fn insns(&self) -> Option<u64> {
        None
    }

    /// How long the kernel took to load it.
    fn load_time(&self) -> Option<Duration> {
        None
    }
}
