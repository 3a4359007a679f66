//! Several prepared programs of one machine, each on its event: for recordings in which
//! firings of several programs alternate.

use std::fmt;

use super::error::{Error, Result, list};
use super::runs::Runs;
use super::vm::Vm;
use crate::engine::{Checked, Finished};
use crate::vm::events::Event;
use crate::vm::{Current, Emitted, Machine, ProgramHandle, RanOn, World};

/// Several programs prepared on events that stay in memory, to be run in any order. Created
/// by [`Vm::runners`]. Like a [`Runner`](super::Runner) for each program; all share the
/// machine's maps, world and outputs.
pub struct Runners<'v> {
    machine: &'v mut Machine,
    parts: Vec<Part<'v>>,
    /// The program whose event is the machine's current one.
    now: Option<usize>,
}

/// One prepared program.
struct Part<'v> {
    runs: Runs<'v>,
    /// Its event, while another one is current.
    waiting: Option<Current>,
}

impl Vm {
    /// Prepares several programs, each on its event: see [`Runners`], which identifies
    /// programs by their index in this list.
    ///
    /// # Errors
    /// As of [`runner`](Self::runner).
    pub(crate) fn runners(&mut self, programs: &[(ProgramHandle, Event)]) -> Result<Runners<'_>> {
        if self.stacks.len() < programs.len() {
            self.stacks.resize_with(programs.len(), Checked::new);
        }
        let (machine, stacks, dispatcher) = self.dispatcher_with_stacks();
        let mut runners = Runners {
            machine,
            parts: Vec::with_capacity(programs.len()),
            now: None,
        };
        for ((program, event), stack) in programs.iter().zip(stacks) {
            let machine = &mut *runners.machine;
            dispatcher.check_context(*program, event)?;
            let prog_type = dispatcher.image(*program)?.program().prog_type;
            machine.settle()?;
            event.put_memory(&mut machine.world)?;
            let placed = event.place(prog_type, &mut machine.space)?;
            let context = placed.r1();
            machine.enter(prog_type, placed)?;
            match dispatcher.runs(machine, stack, *program, event, context) {
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
    /// Runs one of the programs, by its index, once.
    ///
    /// # Errors
    /// As of [`Runner::run`](super::Runner::run).
    /// [`Error::NoProgram`] for an index out of range.
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

    /// Makes another program's event the machine's current one.
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

    /// Sets the context of a program's next run, as
    /// [`Runner::set_context`](super::Runner::set_context) does.
    ///
    /// # Errors
    /// As there.
    /// [`Error::NoProgram`] for an index out of range.
    #[inline]
    pub fn set_context(&mut self, program: usize, bytes: &[u8]) -> Result<()> {
        match self.parts.get_mut(program) {
            Some(part) => part.runs.set_context(self.machine, bytes),
            None => Err(self.no_part(program)),
        }
    }

    /// The error for an index out of range.
    #[cold]
    fn no_part(&self, program: usize) -> Error {
        let names = self.parts.iter().map(|part| &*part.runs.program.name);
        Error::NoProgram {
            name: format!("number {program}"),
            there: list(names),
        }
    }

    /// The engine that runs the program at an index, and why it is not the chosen one; none
    /// if the index is out of range. Once a tail call has continued a run in the checked
    /// interpreter, that one.
    #[must_use]
    pub fn ran_on(&self, program: usize) -> Option<RanOn> {
        self.parts.get(program).map(|part| part.runs.ran_on())
    }

    /// The mocked world, which may change from run to run: time, the current task, the CPU.
    #[inline]
    pub const fn world(&mut self) -> &mut World {
        &mut self.machine.world
    }

    /// The underlying machine: memory and maps.
    #[inline]
    #[must_use]
    pub const fn machine(&self) -> &Machine {
        self.machine
    }

    /// Calls `each` with every output since the last call, and drops them.
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
        drop(self.machine.take_leaks());
        drop(self.machine.space.take_stale());
    }
}

impl fmt::Debug for Runners<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.parts.iter().map(|part| &part.runs.program.name);
        f.debug_list().entries(names).finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Object, Vm};

    #[test]
    fn programs_take_turns_each_on_its_own_context() -> crate::Result<()> {
        let mut vm = Vm::new(Object::open("examples/bpf/write_hist.bpf.o")?)?;
        let event = vm.tracepoint("syscalls/sys_enter_write")?;
        let program = vm.program_handle("count_write")?;
        // The same program twice, each with a context of its own.
        let mut runners = vm.runners(&[(program, event.clone()), (program, event.clone())])?;
        runners.set_context(0, &event.clone().set("args[2]", 4096u64)?.record())?;
        runners.set_context(1, &event.set("args[2]", 1u64)?.record())?;
        for _ in 0..3 {
            assert_eq!(runners.run(0)?.r0, 0);
            assert_eq!(runners.run(1)?.r0, 0);
        }
        drop(runners);
        assert_eq!(vm.map("hist")?.get::<u32, u64>(&12)?, Some(3));
        assert_eq!(vm.map("hist")?.get::<u32, u64>(&0)?, Some(3));
        Ok(())
    }
}
