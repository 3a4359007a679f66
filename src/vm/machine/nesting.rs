//! Events in the middle of a run: an interrupt, or a traced kernel function that a helper
//! calls.

use std::sync::Arc;

use super::Fire;
use super::fault::HelperProblem;
use super::outcome::{Nested, Outcome};
use super::run_state::RunState;
use super::state::Machine;
use crate::vm::events::Event;
use crate::vm::events::attach::{Guards, Hook, Level, Sessions};
use crate::vm::memory::Space;

/// The state of a run that was suspended so that another program can run. Boxed, since few
/// runs are nested.
pub struct Suspended(Box<RunState>);

impl Machine {
    /// Suspends the current run, if there is one, so that another program can run.
    pub fn suspend(&mut self) -> Option<Suspended> {
        let runs = self.run.current.is_some() || self.cpu.running.is_some();
        runs.then(|| Suspended(Box::new(std::mem::take(&mut self.run))))
    }

    /// Resumes a suspended run.
    pub fn resume(&mut self, suspended: Suspended) {
        self.run = *suspended.0;
    }

    /// Which programs are active on this CPU.
    pub const fn guards(&mut self) -> &mut Guards {
        &mut self.cpu.guards
    }

    /// The sessions of this CPU, and the memory that holds their cookies.
    pub(crate) fn sessions(&mut self) -> (&mut Sessions, &mut Space) {
        (&mut self.cpu.sessions, &mut self.space)
    }

    /// Sets who fires events in the middle of runs; `None` if nobody does.
    pub fn set_firing(&mut self, firing: Option<Arc<dyn Fire>>) {
        self.cpu.firing = firing;
    }

    /// Takes the outcomes of events in the middle of runs since the last call.
    pub fn take_nested(&mut self) -> Vec<Nested> {
        std::mem::take(&mut self.run.nested)
    }

    /// Fires an event in the middle of a run, at this interrupt level, and records its
    /// outcome for the run's own outcome.
    ///
    /// # Errors
    /// As for [`Fire::fire`]; [`HelperProblem::Other`] if nobody can fire events.
    pub fn interrupt(&mut self, level: Level, event: &Event) -> Result<Outcome, HelperProblem> {
        self.fire_nested(level, event, None)
    }

    /// Fires an event in the middle of a run for the programs of one hook.
    ///
    /// # Errors
    /// As for [`interrupt`](Self::interrupt).
    pub(crate) fn fire_hook(
        &mut self,
        hook: Hook,
        event: &Event,
    ) -> Result<Outcome, HelperProblem> {
        self.fire_nested(Level::Task, event, Some(hook))
    }

    fn fire_nested(
        &mut self,
        level: Level,
        event: &Event,
        only: Option<Hook>,
    ) -> Result<Outcome, HelperProblem> {
        let Some(firing) = self.cpu.firing.clone() else {
            return Err(HelperProblem::Other(format!(
                "{event} can't be fired here: only runs of a Vm fire events"
            )));
        };
        let level = level.max(self.cpu.guards.level());
        let before = self.cpu.guards.set_level(level);
        let outcome = firing.fire(self, event, only);
        self.cpu.guards.set_level(before);
        let outcome = outcome?;
        self.run.nested.push(Nested {
            event: event.name().to_owned(),
            level,
            outcome: outcome.clone(),
        });
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::ProgType;
    use crate::vm::maps::MapHandle;
    use crate::vm::world::World;

    /// A machine that runs a program on a packet.
    fn enter(machine: &mut Machine) {
        let event = Event::packet([0; 64]);
        let placed = event.place(ProgType::Xdp, &mut machine.space).unwrap();
        machine.enter(ProgType::Xdp, placed).unwrap();
    }

    #[test]
    fn a_nested_run_leaves_the_outer_one_what_it_holds() {
        let mut machine = Machine::new(World::default());
        assert!(machine.suspend().is_none());
        enter(&mut machine);
        let socket = machine.world.net().tcp().id();
        machine.acquire_socket(socket).unwrap();
        machine.acquire(1);
        machine.run.locks.push(2);
        machine.run.event_storage.note(MapHandle(0), 3);
        let held = machine.unreleased();
        assert_eq!(held.len(), 2);

        let outer = machine.suspend().unwrap();
        enter(&mut machine);
        assert!(machine.unreleased().is_empty());
        machine.leave();
        machine.resume(outer);
        assert_eq!(machine.unreleased(), held);
        assert_eq!(machine.run.locks.as_slice(), [2]);
        assert_eq!(machine.run.event_storage.take().count(), 1);

        machine.leave();
        assert!(machine.unreleased().is_empty());
        assert!(machine.suspend().is_none());
    }

    #[test]
    fn a_deferred_callback_is_a_run() {
        let mut machine = Machine::new(World::default());
        machine.cpu.running = Some(1);
        machine.acquire(1);
        let outer = machine.suspend().unwrap();
        enter(&mut machine);
        machine.leave();
        machine.resume(outer);
        assert_eq!(machine.unreleased().len(), 1);
    }
}
