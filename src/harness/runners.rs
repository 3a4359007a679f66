//! Several programs of one machine, each on an event that stays in memory: recordings in
//! which firings of several programs alternate.

use std::fmt;

use super::error::{Error, Result, list};
use super::runs::Runs;
use super::vm::Vm;
use crate::interp::{Checked, Finished};
use crate::program::Program;
use crate::vm::events::Event;
use crate::vm::{Current, Emitted, Machine, ProgramHandle, RanOn, World};

/// Several programs, each on an event that stays in memory, to be run in any order:
/// [`Vm::runners`] makes them. What a [`Runner`](super::Runner) is for one program, this is
/// for several, which share the machine's maps, world and outputs.
///
/// ```
/// use bpflab::{Object, Vm};
///
/// # fn main() -> bpflab::Result<()> {
/// let mut vm = Vm::new(Object::open("examples/bpf/write_hist.bpf.o")?)?;
/// let event = vm.tracepoint("syscalls/sys_enter_write")?;
/// let program = vm.program_handle("count_write")?;
///
/// // The same program twice, each with a context of its own.
/// let mut runners = vm.runners(&[(program, event.clone()), (program, event.clone())])?;
/// runners.set_context(0, &event.clone().set("args[2]", 4096u64)?.record())?;
/// runners.set_context(1, &event.set("args[2]", 1u64)?.record())?;
/// for _ in 0..3 {
///     assert_eq!(runners.run(0)?.r0, 0);
///     assert_eq!(runners.run(1)?.r0, 0);
/// }
/// drop(runners);
/// assert_eq!(vm.map("hist")?.get::<u32, u64>(&12)?, Some(3));
/// assert_eq!(vm.map("hist")?.get::<u32, u64>(&0)?, Some(3));
/// # Ok(())
/// # }
/// ```
pub struct Runners<'v> {
    machine: &'v mut Machine,
    parts: Vec<Part<'v>>,
    /// The one whose event is the machine's.
    now: Option<usize>,
}

/// One of the programs.
struct Part<'v> {
    runs: Runs<'v>,
    /// Its event while another's is the machine's.
    waiting: Option<Current>,
}

impl Vm {
    /// Makes runs of several programs ready, each on its event: see [`Runners`], which knows
    /// them by their places in this list.
    ///
    /// # Errors
    /// As of [`runner`](Self::runner).
    pub fn runners(&mut self, programs: &[(ProgramHandle, Event)]) -> Result<Runners<'_>> {
        if self.stacks.len() < programs.len() {
            self.stacks.resize_with(programs.len(), Checked::new);
        }
        let (machine, stacks, stage) = self.stage_with_stacks();
        let mut runners = Runners {
            machine,
            parts: Vec::with_capacity(programs.len()),
            now: None,
        };
        for ((program, event), stack) in programs.iter().zip(stacks) {
            let machine = &mut *runners.machine;
            stage.check_context(*program, event)?;
            let prog_type = stage.image(*program)?.program().prog_type;
            machine.settle()?;
            let placed = event.place(prog_type, &mut machine.space)?;
            let context = placed.r1();
            machine.enter(prog_type, placed)?;
            match stage.runs(machine, stack, *program, event, context) {
                Ok(runs) => {
                    let mut waiting = None;
                    machine.exchange_event(&mut waiting);
                    runners.parts.push(Part { runs, waiting });
                }
                Err(error) => {
                    machine.leave();
                    return Err(error);
                }
            }
        }
        Ok(runners)
    }
}

impl Runners<'_> {
    /// How many programs there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Runs one of the programs, by its place in the list, once.
    ///
    /// # Errors
    /// As of [`Runner::run`](super::Runner::run).
    /// [`Error::NoProgram`] where there is no such place.
    #[inline]
    pub fn run(&mut self, program: usize) -> Result<Finished> {
        if self.now != Some(program) {
            self.turn_to(program);
        }
        match self.parts.get_mut(program) {
            Some(part) => part.runs.run(self.machine),
            None => Err(self.no_part(program)),
        }
    }

    /// Makes another program's event the machine's.
    fn turn_to(&mut self, program: usize) {
        let before = self.now.and_then(|now| self.parts.get_mut(now));
        if let Some(before) = before {
            self.machine.exchange_event(&mut before.waiting);
        }
        self.now = None;
        if let Some(after) = self.parts.get_mut(program) {
            self.machine.exchange_event(&mut after.waiting);
            self.now = Some(program);
        }
    }

    /// Gives the next run of a program a context with these bytes, as
    /// [`Runner::set_context`](super::Runner::set_context) does.
    ///
    /// # Errors
    /// As there.
    /// [`Error::NoProgram`] where there is no such place.
    #[inline]
    pub fn set_context(&mut self, program: usize, bytes: &[u8]) -> Result<()> {
        match self.parts.get_mut(program) {
            Some(part) => part.runs.set_context(self.machine, bytes),
            None => Err(self.no_part(program)),
        }
    }

    /// The error for a place that is not in the list.
    #[cold]
    fn no_part(&self, program: usize) -> Error {
        let names = self.parts.iter().map(|part| &*part.runs.program.name);
        Error::NoProgram {
            name: format!("number {program}"),
            there: list(names),
        }
    }

    /// A program, by its place in the list.
    #[must_use]
    pub fn program(&self, program: usize) -> Option<&Program> {
        self.parts.get(program).map(|part| part.runs.program)
    }

    /// The engine that runs a program, by its place in the list, and why it is not the one
    /// that was chosen; none where there is no such place. Once a tail call led a run over
    /// to the checked interpreter, that one.
    #[must_use]
    pub fn ran_on(&self, program: usize) -> Option<RanOn> {
        self.parts.get(program).map(|part| part.runs.ran_on())
    }

    /// The mocked outside, which may change from run to run: time, the current task, the
    /// CPU.
    #[inline]
    pub const fn world(&mut self) -> &mut World {
        &mut self.machine.world
    }

    /// The machine beneath: memory and maps.
    #[inline]
    #[must_use]
    pub const fn machine(&self) -> &Machine {
        self.machine
    }

    /// Shows what the programs have given out since the last call, and forgets it.
    #[inline]
    pub fn drain_outputs(&mut self, each: impl FnMut(Emitted<'_>)) {
        self.machine.drain_outputs(each);
    }
}

impl Drop for Runners<'_> {
    fn drop(&mut self) {
        if let Some(now) = self.now.and_then(|now| self.parts.get_mut(now)) {
            self.machine.exchange_event(&mut now.waiting);
        }
        for part in &mut self.parts {
            self.machine.exchange_event(&mut part.waiting);
            self.machine.leave();
        }
        drop(self.machine.take_outputs());
        drop(self.machine.take_probed());
        drop(self.machine.space.take_stale());
    }
}

impl fmt::Debug for Runners<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.parts.iter().map(|part| &part.runs.program.name);
        f.debug_list().entries(names).finish()
    }
}
