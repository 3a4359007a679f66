//! Advancing the clock: calls the timers, work queues and task work that become due.

use std::time::Duration;

use super::error::{Error, Result};
use super::vm::Vm;
use crate::vm::deferred::{Due, Pending};
use crate::vm::{Fallback, Outcome, Run};

/// The most callbacks at one moment. A timer that restarts itself without delay would
/// otherwise keep the clock from advancing.
const MAX_CALLS: usize = 1 << 14;

impl Vm {
    /// Advances the clocks and calls deferred callbacks in the order in which they are due:
    /// work queues and task work at once, timers when they expire. Each callback gets its
    /// map, key and value and runs on the CPU that scheduled it, with the clocks at the
    /// moment at which it is due. Callbacks that a callback schedules are called, too, if
    /// they are due before the end. Callbacks run in the checked interpreter.
    ///
    /// The outcome has a [`Run`] for each callback, named after the C function, and the
    /// outputs of all.
    ///
    /// ```
    /// use std::time::Duration;
    /// # use bpflab::{Vm, vm::World};
    /// # fn main() -> bpflab::Result<()> {
    /// # let mut vm = Vm::with_world(World::default());
    /// let before = vm.world().clock().monotonic_ns();
    /// let outcome = vm.advance(Duration::from_secs(1))?;
    /// assert!(outcome.runs.is_empty(), "no program has started a timer");
    /// assert_eq!(vm.world().clock().monotonic_ns() - before, 1_000_000_000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Fault`] when a callback faults; the clocks then show when it was called.
    /// [`Error::Deferred`] when callbacks reschedule themselves without end. [`Error::Cpu`]
    /// when the [world](Self::world) was moved to a CPU that is in use.
    pub fn advance(&mut self, by: Duration) -> Result<Outcome> {
        self.machine.settle()?;
        let now = self.machine.world.time().monotonic_ns();
        let end = now.saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX));
        let mut outcome = Outcome {
            passed: true,
            ..self.machine.outcome()
        };
        let mut calls = 0;
        while let Some(due) = self.machine.take_due(end) {
            let now = self.machine.world.time().monotonic_ns();
            calls = if due.at_ns > now { 0 } else { calls + 1 };
            if calls > MAX_CALLS {
                return Err(Error::Deferred(format!(
                    "{MAX_CALLS} callbacks were called at one moment, and more are due: \
                     does one restart itself without delay?"
                )));
            }
            self.machine.world.clock().set_ns(due.at_ns.max(now));
            self.call_due(&due, &mut outcome)?;
        }
        let now = self.machine.world.time().monotonic_ns();
        self.machine.world.clock().set_ns(end.max(now));
        Ok(outcome)
    }

    /// Returns the deferred callbacks, in the order in which they will be called.
    #[must_use]
    pub fn pending(&self) -> Vec<Pending> {
        self.machine.pending()
    }

    /// Closes user space's last descriptor of a map, as when a loader exits: timers in the
    /// map are cancelled, and programs can't create new ones there (`EPERM`).
    ///
    /// # Errors
    /// [`Error::NoMap`] with the existing names.
    pub fn release_map(&mut self, map: &str) -> Result<()> {
        let handle = self.map(map)?.handle();
        self.machine.release_user_reference(handle);
        Ok(())
    }

    /// Calls a due callback on its CPU.
    fn call_due(&mut self, due: &Due, outcome: &mut Outcome) -> Result<()> {
        let own = self.machine.world.cpu();
        self.machine.world.set_cpu(due.cpu);
        self.machine.settle()?;
        let result = self.call_due_here(due, outcome);
        self.machine.world.set_cpu(own);
        self.machine.settle()?;
        result
    }

    fn call_due_here(&mut self, due: &Due, outcome: &mut Outcome) -> Result<()> {
        let found = self.programs.images.iter().find_map(|image| {
            let name = image.function_name(due.callback)?;
            Some((image.clone(), name.to_owned()))
        });
        let Some((image, name)) = found else {
            let pointer = self.machine.pointer(due.callback);
            let problem = format!("callback {pointer} is not a function of a loaded program");
            return Err(Error::Deferred(problem));
        };
        let started = self.machine.start_deferred(due)?;
        let (machine, budget) = (&mut self.machine, self.programs.budget);
        let finished = self.checked.call_back(
            machine,
            &self.programs.images,
            &image,
            due.callback,
            started.args,
            budget,
        );
        machine.end_deferred(started);
        // No frame is left that could release the callback's references.
        machine.leave();
        outcome.outputs.append(&mut machine.take_outputs());
        outcome.stale.append(&mut machine.space.take_stale());
        outcome.leaks.append(&mut machine.take_leaks());
        outcome.unreleased = machine.unreleased();
        let finished = finished?;
        outcome.runs.push(Run {
            program: name,
            r0: finished.r0,
            insns: finished.insns,
            ran_on: self.programs.engine.unless(Fallback::Deferred),
        });
        Ok(())
    }
}
