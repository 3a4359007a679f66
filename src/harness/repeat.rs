//! Running a program repeatedly on one event, and measuring the time.

use std::time::{Duration, Instant};

use super::error::{Error, Result};
use super::vm::Vm;
use crate::isa::low32;
use crate::vm::events::Event;
use crate::vm::{Fault, Outcome, ProgramHandle, RanOn};

/// The result of running a program repeatedly.
#[derive(Debug)]
#[non_exhaustive]
pub struct Repeated {
    /// The outcome of the last run, with the outputs of all.
    pub outcome: Outcome,
    /// The time of all runs, without placing the event in memory.
    pub elapsed: Duration,
    /// Return values, and how many runs in a row returned each.
    pub returned: Vec<(u32, u64)>,
    /// The engine of the runs, and why it is not the chosen one.
    pub ran_on: RanOn,
    /// The fault that ended the runs early. The faulting run is in none of the other
    /// fields.
    pub fault: Option<Box<Fault>>,
}

impl Repeated {
    /// The number of completed runs.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.returned.iter().map(|(_, runs)| runs).sum()
    }
}

impl Vm {
    /// Runs a program on an event `count` times, as `BPF_PROG_TEST_RUN` repeats: the event
    /// is put into memory once, and each run sees context and packet as the previous run
    /// left them. The clock is read before the first and after the last run.
    ///
    /// A fault ends the runs; the result has the outputs of the runs before.
    ///
    /// # Errors
    /// [`Error::Event`] when the event does not fit the program's type.
    pub fn run_repeatedly(
        &mut self,
        program: ProgramHandle,
        event: &Event,
        count: u32,
    ) -> Result<Repeated> {
        let mut returned: Vec<(u32, u64)> = Vec::new();
        let mut runner = self.runner_of_handle(program, event)?;
        let start = Instant::now();
        let mut fault = None;
        // A test run is at least one run.
        for _ in 0..count.max(1) {
            match runner.run() {
                Ok(finished) => note(&mut returned, low32(finished.r0)),
                Err(Error::Fault(problem)) => {
                    fault = Some(problem);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        let elapsed = start.elapsed();
        let ran_on = runner.ran_on();
        let mut outcome = runner.finish();
        if fault.is_some() {
            // The outcome is that of a completed run.
            (outcome.runs, outcome.passed) = (Vec::new(), false);
        }
        Ok(Repeated {
            outcome,
            elapsed,
            returned,
            ran_on,
            fault,
        })
    }
}

/// Adds a return value to the counts.
fn note(returned: &mut Vec<(u32, u64)>, value: u32) {
    match returned.last_mut() {
        Some((last, runs)) if *last == value => *runs += 1,
        _ => returned.push((value, 1)),
    }
}
