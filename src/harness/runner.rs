//! Running one program on many events, with as little work between runs as possible.

use std::fmt;

use super::error::Result;
use super::placed_event::PlacedEvent;
use super::programs::WhichProgram;
use super::runs::Runs;
use super::vm::Vm;
use crate::engine::Finished;
use crate::vm::events::Event;
use crate::vm::{Outcome, Output, RanOn, Run, World};

/// A program prepared on an event that stays in memory, to be run repeatedly: for millions
/// of recorded events. Created by [`Vm::runner`].
///
/// Maps, outputs, instruction counts and faults are the same as with as many
/// [`Vm::run`] calls; only placing the event and resolving the program's entry are
/// done once. Each run sees context and packet as the previous run left them, unless they
/// are [set](Self::set_context). Dropping the runner removes the event from memory.
///
/// ```
/// use std::time::Duration;
/// use bpflab::{Object, Vm};
///
/// # fn main() -> bpflab::Result<()> {
/// let mut vm = Vm::new(Object::open("examples/bpf/write_hist.bpf.o")?)?;
/// let event = vm.tracepoint("syscalls/sys_enter_write")?;
/// // What was recorded: the bytes of each event's record.
/// let recorded = (0..1000u64)
///     .map(|size| Ok(event.clone().set("args[2]", size)?.record()))
///     .collect::<bpflab::Result<Vec<_>>>()?;
///
/// let mut runner = vm.runner("count_write", &event)?;
/// for record in &recorded {
///     runner.world().clock().advance(Duration::from_micros(10));
///     runner.set_context(record)?;
///     assert_eq!(runner.run()?.r0, 0);
/// }
/// assert!(runner.finish().outputs.is_empty());
/// assert_eq!(vm.map("hist")?.get::<u32, u64>(&9)?, Some(1000 - 512));
/// # Ok(())
/// # }
/// ```
pub struct Runner<'v> {
    placed: PlacedEvent<'v>,
    runs: Runs<'v>,
}

impl Vm {
    /// Prepares a program for repeated runs: see [`Runner`].
    ///
    /// # Errors
    /// [`Error::NoProgram`](super::Error::NoProgram), and
    /// [`Error::Event`](super::Error::Event) where the event does not fit the program's
    /// type.
    pub fn runner(&mut self, program: impl WhichProgram, event: &Event) -> Result<Runner<'_>> {
        let handle = program.handle(&self.programs)?;
        let (machine, checked, dispatcher) = self.dispatcher();
        dispatcher.runner(machine, checked, handle, event)
    }
}

impl<'v> Runner<'v> {
    /// Creates a runner from prepared runs on a placed event.
    pub(super) const fn new(placed: PlacedEvent<'v>, runs: Runs<'v>) -> Self {
        Self { placed, runs }
    }
}

impl Runner<'_> {
    /// Runs the program once.
    ///
    /// # Errors
    /// [`Error::Fault`](super::Error::Fault) when the program faults,
    /// [`Error::Cpu`](super::Error::Cpu) when the [world](Self::world) was moved to a CPU
    /// that is in use.
    #[inline]
    pub fn run(&mut self) -> Result<Finished> {
        self.runs.run(self.placed.machine)
    }

    /// The engine that runs the program, and why it is not the chosen one. Once a tail call
    /// has continued a run in the checked interpreter, that one.
    #[must_use]
    pub const fn ran_on(&self) -> RanOn {
        self.runs.ran_on()
    }

    /// Sets the next run's context to these bytes followed by zeros: a recorded tracepoint
    /// record, registers, a struct of fields. Bytes hidden from programs (a tracepoint's
    /// common fields) are not included.
    ///
    /// # Errors
    /// [`Error::Event`](super::Error::Event) for more bytes than the context has
    /// (tracepoint records and plain bytes may differ in length), and for contexts that
    /// hold pointers, such as those of packets: create another [`Vm::runner`] for these.
    #[inline]
    pub fn set_context(&mut self, bytes: &[u8]) -> Result<()> {
        self.runs.set_context(self.placed.machine, bytes)
    }

    /// Sets the context to each of these records and runs the program on it, as
    /// [`set_context`](Self::set_context) and [`run`](Self::run) do; returns the number of
    /// runs.
    ///
    /// ```
    /// use bpflab::{Object, Vm};
    ///
    /// # fn main() -> bpflab::Result<()> {
    /// let mut vm = Vm::new(Object::open("examples/bpf/write_hist.bpf.o")?)?;
    /// vm.set_counting(false);
    /// let event = vm.tracepoint("syscalls/sys_enter_write")?;
    /// let record = event.clone().set("args[2]", 4096u64)?.record();
    /// let mut runner = vm.runner("count_write", &event)?;
    /// assert_eq!(runner.run_each(std::iter::repeat_n(&record, 1000))?, 1000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As of these methods; the runs before have taken place.
    #[inline]
    pub fn run_each<R: AsRef<[u8]>>(
        &mut self,
        records: impl IntoIterator<Item = R>,
    ) -> Result<u64> {
        let mut runs = 0;
        for record in records {
            self.set_context(record.as_ref())?;
            self.run()?;
            runs += 1;
        }
        Ok(runs)
    }

    /// The mocked world, which may change from run to run: time, the current task.
    #[inline]
    pub const fn world(&mut self) -> &mut World {
        &mut self.placed.machine.world
    }

    /// Takes the program's outputs since the last call.
    pub fn take_outputs(&mut self) -> Vec<Output> {
        self.placed.machine.take_outputs()
    }

    /// Ends the runs and returns their outcome: the outputs not taken yet, the final
    /// context and packet, and the last completed run.
    #[must_use]
    pub fn finish(mut self) -> Outcome {
        let mut outcome = self.placed.machine.outcome();
        self.placed.collect(&mut outcome);
        if let Some(Finished { r0, insns }) = self.runs.last {
            let program = self.runs.program.name.clone();
            let ran_on = self.runs.ran_on();
            let run = Run {
                program,
                r0,
                insns,
                ran_on,
            };
            outcome.passed = run.returned() != 0;
            outcome.runs.push(run);
        }
        outcome
    }
}

impl fmt::Debug for Runner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner")
            .field("program", &self.runs.program.name)
            .field("last", &self.runs.last)
            .finish_non_exhaustive()
    }
}
