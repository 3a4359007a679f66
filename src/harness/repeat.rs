//! Running a program again and again on one event, and the time that it takes.

use std::time::{Duration, Instant};

use super::error::{Error, Result};
use super::vm::Vm;
use crate::isa::low32;
use crate::vm::events::Event;
use crate::vm::{Fault, Outcome, ProgramHandle, RanOn};

/// What came of running a program repeatedly.
#[derive(Debug)]
pub struct Repeated {
    /// The outcome of the last run, with the outputs of all.
    pub outcome: Outcome,
    /// The time that the runs took, without building the event.
    pub elapsed: Duration,
    /// What the runs returned: values, and how many runs in a row returned each.
    pub returned: Vec<(u32, u64)>,
    /// The engine that the runs were on, and why it is not the one that was chosen.
    pub ran_on: RanOn,
    /// Why it ended early. The run that faulted is in neither of the others.
    pub fault: Option<Box<Fault>>,
}

impl Repeated {
    /// How many runs there were.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.returned.iter().map(|(_, runs)| runs).sum()
    }
}

impl Vm {
    /// Runs a program on an event `count` times, as `BPF_PROG_TEST_RUN` repeats: the
    /// event is put into memory once, and each run finds context and packet as the one
    /// before left them. The clock is read before the first and after the last run.
    ///
    /// A fault ends it; what the runs before it gave out is in the result.
    ///
    /// # Errors
    /// [`Error::Event`] when the event is none for the program's type.
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
        // A test run is one run at least.
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
            // It is that of a run that came to its end.
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

/// Counts one more return value.
fn note(returned: &mut Vec<(u32, u64)>, value: u32) {
    match returned.last_mut() {
        Some((last, runs)) if *last == value => *runs += 1,
        _ => returned.push((value, 1)),
    }
}
