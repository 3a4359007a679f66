//! Events in the middle of a run: an interrupt, or a kernel function that a helper calls
//! and that is traced itself.

use std::sync::Arc;

use super::attach::{Guards, Level, Sessions};
use super::events::Event;
use super::fault::HelperProblem;
use super::machine::{Fire, Machine, OfRun};
use super::memory::Space;
use super::outcome::{Nested, Outcome};

/// What belongs to a program in whose middle another one runs.
pub struct Suspended {
    /// Apart, as nearly no run has another around it.
    run: Box<OfRun>,
    nested: Vec<Nested>,
}

impl Machine {
    /// Puts the run under way aside, if there is one, so that another program can run.
    pub fn suspend(&mut self) -> Option<Suspended> {
        self.current()?;
        Some(Suspended {
            run: Box::new(self.take_run()),
            nested: std::mem::take(&mut self.nesting.nested),
        })
    }

    /// Goes on with it.
    pub fn resume(&mut self, suspended: Suspended) {
        self.put_run(*suspended.run);
        self.nesting.nested = suspended.nested;
    }

    /// Who is active on this CPU.
    pub const fn guards(&mut self) -> &mut Guards {
        &mut self.nesting.guards
    }

    /// The sessions of this CPU, and the memory that they lie in.
    pub(crate) fn sessions(&mut self) -> (&mut Sessions, &mut Space) {
        (&mut self.nesting.sessions, &mut self.space)
    }

    /// Says who fires events in the middle of runs, or that nobody does.
    pub fn set_firing(&mut self, firing: Option<Arc<dyn Fire>>) {
        self.nesting.firing = firing;
    }

    /// Takes what came of events in the middle of the runs since the last call.
    pub fn take_nested(&mut self) -> Vec<Nested> {
        std::mem::take(&mut self.nesting.nested)
    }

    /// Fires an event in the middle of a run, as the CPU does it on this level, and notes
    /// what came of it for the run's own outcome.
    ///
    /// # Errors
    /// As of [`Fire::fire`]; [`HelperProblem::Other`] where nobody is there to fire it.
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
