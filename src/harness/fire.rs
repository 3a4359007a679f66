//! Firing events: runs the attached programs, as the kernel's hooks do.

use std::sync::Arc;

use super::dispatcher::{Dispatcher, NestedDispatcher};
use super::error::{Error, Result, list};
use super::interrupt::{Interrupt, Interrupts};
use super::programs::WhichProgram;
use super::vm::Vm;
use crate::btf::Btf;
use crate::engine::{Checked, Finished, Watch};
use crate::spec::context::Arch;
use crate::spec::limits;
use crate::vm::events::{Event, EventError, Layout};
use crate::vm::{Fallback, Fire, Machine, Outcome, ProgramHandle, Run};

impl Vm {
    /// An event of a tracepoint, `group/name`, to be filled in field by field. Field names
    /// are those of the format file and of BTF (`count` and `args[2]`).
    ///
    /// If neither BTF nor a table has the tracepoint, its layout is the context struct of
    /// the first loaded program whose section names it.
    ///
    /// # Errors
    /// [`EventError::NoLayout`] where the kernel's BTF, the loaded objects' BTF and the
    /// table of system calls lack the tracepoint, and no loaded program's section names it:
    /// declare it with [`Layout::declare`], or read its format file with
    /// [`Layout::from_format`].
    pub fn tracepoint(&self, name: &str) -> Result<Event> {
        if let Some(layout) = self.declared(name) {
            return Ok(Event::tracepoint(layout.clone()));
        }
        self.layouts.get(name, || self.record(name))
    }

    /// The record of a tracepoint, from the first source that has it.
    fn record(&self, name: &str) -> Result<Layout> {
        let (group, event) = name.split_once('/').unwrap_or(("", name));
        let of = |btf: Option<&Btf>| Layout::of_tracepoint(group, event, btf, Arch::HOST);
        let layout = match self.first_btf(|btf| of(Some(btf))) {
            Some(layout) => layout,
            None => of(None).or_else(|error| self.declared_record(name).ok_or(error)),
        };
        Ok(layout?)
    }

    /// The record of a tracepoint as declared by the first program on it.
    fn declared_record(&self, name: &str) -> Option<Layout> {
        self.programs()
            .find_map(|program| Layout::declared_by(program, name))
    }

    /// An event of a raw tracepoint, for `raw_tp` and `tp_btf` programs. Arguments have
    /// numbers (`args[0]`), and names where BTF gives them.
    ///
    /// # Errors
    /// [`EventError`] where BTF has the tracepoint but is malformed.
    pub fn raw_tracepoint(&self, name: &str) -> Result<Event> {
        let layout = self.first_btf(|btf| Layout::of_raw_tracepoint(btf, name));
        let layout = match layout {
            Some(layout) => layout?,
            None => Layout::of_arguments(name, limits::MAX_FUNC_ARGS),
        };
        Ok(Event::raw_tracepoint(layout))
    }

    /// The first result that a BTF gives: the kernel's, then the objects' own.
    pub(super) fn first_btf<T>(
        &self,
        find: impl Fn(&Btf) -> std::result::Result<T, EventError>,
    ) -> Option<std::result::Result<T, EventError>> {
        let own = self.programs().filter_map(|program| program.btf.as_ref());
        let mut results = self.kernel_btf.iter().chain(own).map(find);
        results.find(std::result::Result::is_ok)
    }

    /// The value of an enumerator of the kernel's BTF or of a loaded object's (`TCP_CLOSE`), to
    /// set a field by its name.
    #[must_use]
    pub fn enumerator(&self, name: &str) -> Option<i128> {
        let own = self.programs().filter_map(|program| program.btf.as_ref());
        self.kernel_btf
            .iter()
            .chain(own)
            .find_map(|btf| Some(btf.enumerator(name)?.1.value()))
    }

    /// Fires an event: runs the programs attached to its hook in Linux's order;
    /// [`attach`](crate::vm::attach) documents the order and what becomes of the results.
    /// It is no error if none is attached to this hook.
    ///
    /// # Errors
    /// [`Error::NothingAttached`] when programs are loaded and none was ever attached,
    /// [`Error::Fault`] when a program faults, [`Error::Event`] when the event does not fit
    /// the program's type.
    pub fn fire(&mut self, event: Event) -> Result<Outcome> {
        if !self.has_attached && !self.programs.images.is_empty() {
            return Err(Error::NothingAttached {
                event: event.name().to_owned(),
                there: list(self.programs().map(|program| program.name.as_str())),
            });
        }
        let (machine, checked, dispatcher) = self.dispatcher();
        let mut outcome = machine.outcome();
        dispatcher.fire(machine, checked, &event, None, &mut outcome)?;
        if outcome.passed {
            outcome.sample = event.into_sample(machine.world.task().pid().cast_signed());
        }
        Ok(outcome)
    }

    /// Runs one program on an event, regardless of its attachments, as `BPF_PROG_TEST_RUN`
    /// does.
    ///
    /// # Errors
    /// As of [`fire`](Self::fire), and [`Error::NoProgram`](super::Error::NoProgram).
    pub fn run(&mut self, program: impl WhichProgram, event: &Event) -> Result<Outcome> {
        let handle = program.handle(&self.programs)?;
        let (machine, checked, dispatcher) = self.dispatcher();
        dispatcher.run_alone(machine, checked, handle, event)
    }

    /// Fires an event in the middle of runs, as when an interrupt, or a helper of the
    /// program, calls a traced function. Programs that are active on the CPU keep others
    /// from running as in Linux; [`Outcome::nested`](crate::vm::Outcome::nested) has the
    /// nested outcomes and the skipped programs.
    ///
    /// All later runs use the checked interpreter. Runs of a [`Runner`](super::Runner) are
    /// not interrupted. A [mock](Self::mock_helper) can fire an event itself, by
    /// [`Call::fire`](crate::vm::helpers::Call::fire).
    pub fn interrupt(&mut self, place: Interrupt, event: Event) -> &mut Self {
        Arc::make_mut(&mut self.programs)
            .interrupts
            .push(place, event);
        self
    }

    /// Removes all interrupts.
    pub fn clear_interrupts(&mut self) -> &mut Self {
        Arc::make_mut(&mut self.programs).interrupts = Interrupts::default();
        self
    }

    /// Runs a program with these values in r1 to r5 and no context, on the checked
    /// interpreter: memory that r1 points to must already be in the machine.
    ///
    /// # Errors
    /// [`Error::Fault`](super::Error::Fault) when the program faults.
    pub(super) fn run_with_args(
        &mut self,
        program: ProgramHandle,
        args: [u64; 5],
    ) -> Result<Finished> {
        self.machine.settle()?;
        let programs = &self.programs;
        let entry = programs.image(program)?;
        let (images, budget) = (&programs.images, programs.budget);
        let machine = &mut self.machine;
        Ok(self.checked.run(machine, images, entry, args, budget)?)
    }

    /// Runs one program on an event, as [`run`](Self::run) does, on the checked interpreter,
    /// calling `watch` before each instruction.
    ///
    /// # Errors
    /// As of [`run`](Self::run).
    pub fn run_watched(
        &mut self,
        program: impl WhichProgram,
        event: &Event,
        watch: &mut dyn Watch,
    ) -> Result<Outcome> {
        let program = program.handle(&self.programs)?;
        let (machine, checked, dispatcher) = self.dispatcher();
        let programs = dispatcher.programs;
        let entry = dispatcher.image(program)?;
        let mut placed = dispatcher.place_event_alone(machine, program, event)?;
        let args = [placed.context, 0, 0, 0, 0];
        let machine = &mut *placed.machine;
        let (images, budget) = (&programs.images, programs.budget);
        let finished = checked.run_watched(machine, images, entry, args, budget, watch)?;
        let mut outcome = placed.machine.outcome();
        placed.collect(&mut outcome);
        let run = Run {
            program: entry.program().name.clone(),
            r0: finished.r0,
            insns: finished.insns,
            ran_on: programs.engine.unless(Fallback::Watched),
        };
        outcome.passed = run.returned() != 0;
        outcome.runs.push(run);
        Ok(outcome)
    }

    /// The machine, a stack for the checked interpreter, and the dispatcher.
    pub(super) fn dispatcher(&mut self) -> (&mut Machine, &mut Checked, Dispatcher<'_>) {
        let (machine, checked, _, dispatcher) = self.parts();
        (machine, checked, dispatcher)
    }

    /// The same with several stacks, for programs that are prepared together.
    pub(super) fn dispatcher_with_stacks(
        &mut self,
    ) -> (&mut Machine, &mut [Checked], Dispatcher<'_>) {
        let (machine, _, stacks, dispatcher) = self.parts();
        (machine, stacks, dispatcher)
    }

    fn parts(&mut self) -> (&mut Machine, &mut Checked, &mut [Checked], Dispatcher<'_>) {
        // Only mocks, interrupts and calls of traced functions fire an event in the middle of a
        // run.
        let traced = || {
            self.programs
                .attached
                .iter()
                .any(|one| one.function.is_some())
        };
        let nests = self.machine.has_mocks() || !self.programs.interrupts.is_empty() || traced();
        let nested: Option<Arc<dyn Fire>> = nests.then(|| {
            let nested = NestedDispatcher(Arc::clone(&self.programs));
            Arc::new(nested) as Arc<dyn Fire>
        });
        self.machine.set_firing(nested);
        let dispatcher = Dispatcher {
            programs: &self.programs,
            times: None,
        };
        (
            &mut self.machine,
            &mut self.checked,
            &mut self.stacks,
            dispatcher,
        )
    }
}
