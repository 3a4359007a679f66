//! Firing an event for chosen programs, regardless of their attachments.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::error::{Error, Result};
use super::vm::Vm;
use crate::engine::Finished;
use crate::vm::events::Event;
use crate::vm::{Fault, Outcome, ProgramHandle};

/// The result of firing an event for chosen programs: see [`Vm::fire_for`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct FireReport {
    /// The event's outcome, as from [`Vm::fire`].
    pub outcome: Outcome,
    /// For each of the outcome's runs its program and time, without the placing of the
    /// event.
    pub runs: Vec<(ProgramHandle, Duration)>,
    /// The program that faulted, and its fault. The outcome has the results of the programs
    /// before it; those after it did not run.
    pub fault: Option<(ProgramHandle, Box<Fault>)>,
}

/// Times of the runs of an event.
#[derive(Debug, Default)]
pub(super) struct Times {
    runs: Vec<(ProgramHandle, Duration)>,
    stopped: Option<ProgramHandle>,
}

impl Times {
    /// Runs a program and records its time, or that it stopped.
    pub fn note(
        times: &RefCell<Self>,
        program: ProgramHandle,
        run: impl FnOnce() -> std::result::Result<Finished, Box<Fault>>,
    ) -> std::result::Result<Finished, Box<Fault>> {
        let start = Instant::now();
        let finished = run();
        let elapsed = start.elapsed();
        let mut times = times.borrow_mut();
        match &finished {
            Ok(_) => times.runs.push((program, elapsed)),
            Err(_) => times.stopped = Some(program),
        }
        finished
    }
}

impl Vm {
    /// Fires an event as if exactly these programs were attached to its hook, in this
    /// order. Their hooks decide the running order, the skipped programs and what becomes
    /// of the results, as with [`fire`](Self::fire). Each run is timed.
    ///
    /// # Errors
    /// As of [`fire`](Self::fire), except faults, which the result has.
    pub fn fire_for(&mut self, programs: &[ProgramHandle], event: Event) -> Result<FireReport> {
        let times = RefCell::new(Times::default());
        let (machine, checked, mut dispatcher) = self.dispatcher();
        let mut outcome = machine.outcome();
        dispatcher.times = Some(&times);
        let fired = dispatcher.fire_for(machine, checked, programs, &event, &mut outcome);
        let Times { runs, stopped } = times.into_inner();
        let fault = match (fired, stopped) {
            (Ok(()), _) => None,
            (Err(Error::Fault(fault)), Some(program)) => Some((program, fault)),
            (Err(error), _) => return Err(error),
        };
        if outcome.passed {
            outcome.sample = event.into_sample(machine.world.task().pid().cast_signed());
        }
        Ok(FireReport {
            outcome,
            runs,
            fault,
        })
    }
}
