//! An event for programs of one's choice, wherever they are attached.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::error::{Error, Result};
use super::vm::Vm;
use crate::interp::Finished;
use crate::vm::events::Event;
use crate::vm::{Fault, Outcome, ProgramHandle};

/// What came of firing an event for programs of one's choice.
#[derive(Debug, Default)]
pub struct Volley {
    /// What came of the event, as [`Vm::fire`] says it.
    pub outcome: Outcome,
    /// Whose the outcome's runs are, one for one, and the time that each took, without
    /// placing the event.
    pub runs: Vec<(ProgramHandle, Duration)>,
    /// Who stopped, and why. The outcome has what came of the programs before, and those
    /// behind did not run.
    pub fault: Option<(ProgramHandle, Box<Fault>)>,
}

/// What is noted of runs while an event fires.
#[derive(Debug, Default)]
pub(super) struct Times {
    runs: Vec<(ProgramHandle, Duration)>,
    stopped: Option<ProgramHandle>,
}

impl Times {
    /// Notes a run and its time.
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
    /// Fires an event as if these programs were attached where it happens, in this order,
    /// and nobody else: who is first, who is skipped and what becomes of the results is
    /// up to their hooks, as with [`fire`](Self::fire). Each run is timed.
    ///
    /// # Errors
    /// As of [`fire`](Self::fire), but for faults, which the result has.
    pub fn fire_for(&mut self, programs: &[ProgramHandle], event: Event) -> Result<Volley> {
        let times = RefCell::new(Times::default());
        let (machine, checked, mut stage) = self.stage();
        let mut outcome = machine.outcome();
        stage.times = Some(&times);
        let fired = stage.fire_for(machine, checked, programs, &event, &mut outcome);
        let Times { runs, stopped } = times.into_inner();
        let fault = match (fired, stopped) {
            (Ok(()), _) => None,
            (Err(Error::Fault(fault)), Some(program)) => Some((program, fault)),
            (Err(error), _) => return Err(error),
        };
        if outcome.passed {
            outcome.sample = event.into_sample(machine.world.task().pid().cast_signed());
        }
        Ok(Volley {
            outcome,
            runs,
            fault,
        })
    }
}
