//! Running a program again and again on one event, and the time that it takes.

use std::time::{Duration, Instant};

use super::error::{Error, Result};
use super::vm::Vm;
use crate::isa::low32;
use crate::vm::events::Event;
use crate::vm::{Fault, Outcome, ProgramHandle};

/// What came of running a program repeatedly.
#[derive(Debug, Default)]
pub struct Repeated {
    /// The outcome of the last run, with the outputs of all.
    pub outcome: Outcome,
    /// The time that the runs took, without building the event.
    pub elapsed: Duration,
    /// What the runs returned: values, and how many runs in a row returned each.
    pub returned: Vec<(u32, u64)>,
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
        let mut outcome = Outcome::default();
        let mut returned: Vec<(u32, u64)> = Vec::new();
        let mut elapsed = Duration::ZERO;
        let run = self.placed(program, event, &mut outcome, |vm, args| {
            let start = Instant::now();
            let mut last = vm.execute_placed(program, args);
            for _ in 1..count {
                let Ok(finished) = &last else { break };
                note(&mut returned, low32(finished.r0));
                last = vm.execute_placed(program, args);
            }
            elapsed = start.elapsed();
            if let Ok(finished) = &last {
                note(&mut returned, low32(finished.r0));
            }
            last
        });
        let fault = match run {
            Ok(run) => {
                outcome.passed = run.returned() != 0;
                outcome.runs.push(run);
                None
            }
            Err(Error::Fault(fault)) => Some(fault),
            Err(error) => return Err(error),
        };
        Ok(Repeated {
            outcome,
            elapsed,
            returned,
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
