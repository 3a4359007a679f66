//! Running one program on one event after another, with as little as possible between
//! them.

use std::fmt;

use super::error::Result;
use super::runs::Runs;
use super::scene::Scene;
use super::vm::Vm;
use crate::interp::Finished;
use crate::vm::events::Event;
use crate::vm::{Outcome, Output, ProgramHandle, RanOn, Run, World};

/// One program on an event that stays in memory, to be run again and again: for events
/// that were recorded, millions of them. [`Vm::runner`] makes it.
///
/// Maps, outputs, counts of instructions and faults are those of as many
/// [`Vm::run_handle`]s; what is done once is placing the event and finding the way into
/// the program. Each run finds context and packet as the one before left them, unless
/// they are [set](Self::set_context). Dropping it takes the event out of memory.
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
    scene: Scene<'v>,
    runs: Runs<'v>,
}

impl Vm {
    /// Makes runs of a program ready, by its name: see [`Runner`].
    ///
    /// # Errors
    /// [`Error::NoProgram`](super::Error::NoProgram), and [`Error::Event`](super::Error::Event) where the event is none for its type.
    pub fn runner(&mut self, program: &str, event: &Event) -> Result<Runner<'_>> {
        let handle = self.program_handle(program)?;
        self.runner_of_handle(handle, event)
    }

    /// By handle: programs of several objects may have one name.
    ///
    /// # Errors
    /// As of [`runner`](Self::runner).
    pub fn runner_of_handle(
        &mut self,
        program: ProgramHandle,
        event: &Event,
    ) -> Result<Runner<'_>> {
        let (machine, checked, stage) = self.stage();
        stage.runner(machine, checked, program, event)
    }
}

impl<'v> Runner<'v> {
    /// Runs that were made ready on a scene.
    pub(super) const fn new(scene: Scene<'v>, runs: Runs<'v>) -> Self {
        Self { scene, runs }
    }
}

impl Runner<'_> {
    /// Runs the program once.
    ///
    /// # Errors
    /// [`Error::Fault`](super::Error::Fault) when the program does what it must not, [`Error::Cpu`](super::Error::Cpu) when the
    /// [world](Self::world) was moved to a CPU that is taken.
    #[inline]
    pub fn run(&mut self) -> Result<Finished> {
        self.runs.run(self.scene.machine)
    }

    /// The engine that runs the program, and why it is not the one that was chosen. Once a
    /// tail call led a run over to the checked interpreter, that one.
    #[must_use]
    pub const fn ran_on(&self) -> RanOn {
        self.runs.ran_on()
    }

    /// Gives the next run a context with these bytes, and zeros behind them: the record of
    /// a tracepoint as it was recorded, registers, a struct of fields. What programs don't
    /// see of it (a tracepoint's common fields) is left out.
    ///
    /// # Errors
    /// [`Error::Event`](super::Error::Event) for more bytes than the context has (records of a tracepoint, and bytes as they are, may
    /// differ in length), and for contexts that hold pointers, as those of packets do:
    /// another [`Vm::runner`] places them.
    #[inline]
    pub fn set_context(&mut self, bytes: &[u8]) -> Result<()> {
        self.runs.set_context(self.scene.machine, bytes)
    }

    /// The mocked outside, which may change from run to run: time, the current task.
    #[inline]
    pub const fn world(&mut self) -> &mut World {
        &mut self.scene.machine.world
    }

    /// Takes what the program has given out since the last call.
    pub fn take_outputs(&mut self) -> Vec<Output> {
        self.scene.machine.take_outputs()
    }

    /// What came of all runs: the outputs that were not taken, context and packet as they
    /// are now, and the last run that came to its end.
    #[must_use]
    pub fn finish(mut self) -> Outcome {
        let mut outcome = self.scene.machine.outcome();
        self.scene.collect(&mut outcome);
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
