//! Events in the middle of a run: an interrupt, or a traced kernel function that a helper
//! calls.

use std::sync::Arc;

use super::attach::{Guards, Level, Sessions};
use super::events::Event;
use super::fault::HelperProblem;
use super::machine::{Fire, Machine, RunState};
use super::memory::Space;
use super::outcome::{Nested, Outcome};

/// The state of a run that was suspended so that another program can run.
pub struct Suspended {
    /// Boxed, since few runs are nested.
    run: Box<RunState>,
    nested: Vec<Nested>,
}

impl Machine {
    /// Suspends the current run, if there is one, so that another program can run.
    pub fn suspend(&mut self) -> Option<Suspended> {
        self.current()?;
        Some(Suspended {
            run: Box::new(self.take_run()),
            nested: std::mem::take(&mut self.nesting.nested),
        })
    }

    /// Resumes a suspended run.
    pub fn resume(&mut self, suspended: Suspended) {
        self.put_run(*suspended.run);
        self.nesting.nested = suspended.nested;
    }

    /// Which programs are active on this CPU.
    pub const fn guards(&mut self) -> &mut Guards {
        &mut self.nesting.guards
    }

    /// The sessions of this CPU, and the memory that holds their cookies.
    pub(crate) fn sessions(&mut self) -> (&mut Sessions, &mut Space) {
        (&mut self.nesting.sessions, &mut self.space)
    }

    /// Sets who fires events in the middle of runs; `None` if nobody does.
    pub fn set_firing(&mut self, firing: Option<Arc<dyn Fire>>) {
        self.nesting.firing = firing;
    }

    /// Takes the outcomes of events in the middle of runs since the last call.
    pub fn take_nested(&mut self) -> Vec<Nested> {
        std::mem::take(&mut self.nesting.nested)
    }

    /// Fires an event in the middle of a run, at this interrupt level, and records its
    /// outcome for the run's own outcome.
    ///
    /// # Errors
    /// As for [`Fire::fire`]; [`HelperProblem::Other`] if nobody can fire events.
    pub fn interrupt(&mut self, level: Level, event: &Event) -> Result<Outcome, HelperProblem> {
        let Some(firing) = self.nesting.firing.clone() else {
            return Err(HelperProblem::Other(format!(
                "{event} can't be fired here: only runs of a Vm fire events"
            )));
        };
        let level = level.max(self.nesting.guards.level());
        let before = self.nesting.guards.set_level(level);
        let outcome = firing.fire(self, event);
        self.nesting.guards.set_level(before);
        let outcome = outcome?;
        self.nesting.nested.push(Nested {
            event: event.name().to_owned(),
            level,
            outcome: outcome.clone(),
        });
        Ok(outcome)
    }
}
