//! Events fire programs, as the kernel's attach points do.

use std::sync::Arc;

use super::error::{Error, Result, list};
use super::interrupt::{Interrupt, Interrupts};
use super::stage::{Stage, Troupe};
use super::vm::Vm;
use crate::btf::Btf;
use crate::interp::{Checked, Finished, Image, Watch};
use crate::spec::context::Arch;
use crate::spec::limits;
use crate::vm::events::{Event, EventError, Layout};
use crate::vm::{Fallback, Fire, Machine, Outcome, ProgramHandle, RanOn, Run};

impl Vm {
    /// A firing of a tracepoint, `group/name`, to be filled field by field. Fields
    /// go by the names of the format file and of BTF (`count` and `args[2]`).
    ///
    /// Where no BTF and no table knows the tracepoint, a program that is meant for it is
    /// believed: the struct that it takes for the record is the layout.
    ///
    /// # Errors
    /// [`EventError::NoLayout`] where neither the kernel's BTF nor that of a loaded
    /// object nor the table of system calls knows the tracepoint, and no program is
    /// meant for it: declare it with [`Layout::declare`], or read its format file with
    /// [`Layout::from_format`].
    pub fn tracepoint(&self, name: &str) -> Result<Event> {
        if let Some(layout) = self.declared(name) {
            return Ok(Event::tracepoint(layout.clone()));
        }
        self.layouts.get(name, || self.record(name))
    }

    /// The record of a tracepoint, by the first who knows it.
    fn record(&self, name: &str) -> Result<Layout> {
        let (group, event) = name.split_once('/').unwrap_or(("", name));
        let of = |btf: Option<&Btf>| Layout::of_tracepoint(group, event, btf, Arch::HOST);
        let layout = match self.first_btf(|btf| of(Some(btf))) {
            Some(layout) => layout,
            None => of(None).or_else(|error| self.declared_record(name).ok_or(error)),
        };
        Ok(layout?)
    }

    /// The record of a tracepoint as the first program on it declares it.
    fn declared_record(&self, name: &str) -> Option<Layout> {
        self.programs()
            .find_map(|program| Layout::declared_by(program, name))
    }

    /// A firing of a raw tracepoint, for `raw_tp` and `tp_btf` programs. Arguments
    /// go by number (`args[0]`), and by name where BTF has it.
    ///
    /// # Errors
    /// [`EventError`] where a BTF knows the tracepoint and makes no sense.
    pub fn raw_tracepoint(&self, name: &str) -> Result<Event> {
        let layout = self.first_btf(|btf| Layout::of_raw_tracepoint(btf, name));
        let layout = match layout {
            Some(layout) => layout?,
            None => Layout::of_arguments(name, limits::MAX_FUNC_ARGS),
        };
        Ok(Event::raw_tracepoint(layout))
    }

    /// What the first BTF that can says: the kernel's, then the objects' own.
    pub(super) fn first_btf<T>(
        &self,
        find: impl Fn(&Btf) -> std::result::Result<T, EventError>,
    ) -> Option<std::result::Result<T, EventError>> {
        let own = self.programs().filter_map(|program| program.btf.as_ref());
        let mut results = self.kernel_btf.iter().chain(own).map(find);
        results.find(std::result::Result::is_ok)
    }

    /// Fires an event: runs the programs that are attached to its place, in the order in
    /// which Linux runs them there; [`attach`](crate::vm::attach) says which that is, and
    /// what becomes of their results. None may be attached to this one's.
    ///
    /// # Errors
    /// [`Error::NothingAttached`] when programs are loaded and none was ever attached, [`Error::Fault`]
    /// when a program does what it must not, [`Error::Event`] when the event is none for
    /// its type.
    pub fn fire(&mut self, event: Event) -> Result<Outcome> {
        if !self.has_attached && !self.images.is_empty() {
            return Err(Error::NothingAttached {
                event: event.name().to_owned(),
                there: list(self.programs().map(|program| program.name.as_str())),
            });
        }
        let (machine, checked, stage) = self.stage();
        let mut outcome = machine.outcome();
        stage.fire(machine, checked, &event, &mut outcome)?;
        if outcome.passed {
            outcome.sample = event.into_sample(machine.world.task().pid().cast_signed());
        }
        Ok(outcome)
    }

    /// Runs one program on an event, wherever it is attached, as
    /// `BPF_PROG_TEST_RUN` does.
    ///
    /// # Errors
    /// As of [`fire`](Self::fire), and [`Error::NoProgram`](super::Error::NoProgram).
    pub fn run(&mut self, program: &str, event: &Event) -> Result<Outcome> {
        let handle = self.program_handle(program)?;
        self.run_handle(handle, event)
    }

    /// Runs one program on an event, by its handle.
    ///
    /// # Errors
    /// As of [`fire`](Self::fire).
    pub fn run_handle(&mut self, program: ProgramHandle, event: &Event) -> Result<Outcome> {
        let (machine, checked, stage) = self.stage();
        stage.run_alone(machine, checked, program, event)
    }

    /// Fires an event in the middle of runs: what happens when a traced function is
    /// called by an interrupt, or by a helper of the program. Programs that are active
    /// on the CPU keep others from running as in Linux; who was skipped is in
    /// [`Outcome::nested`](crate::vm::Outcome::nested) with what the others did.
    ///
    /// Runs are checked ones from now on. Those of a [`Runner`](super::Runner) are not
    /// interrupted. A [mock](Self::mock_helper) can fire an event itself, by
    /// [`Call::fire`](crate::vm::helpers::Call::fire).
    pub fn interrupt(&mut self, place: Interrupt, event: Event) -> &mut Self {
        self.interrupts.push(place, event);
        self
    }

    /// No more interrupts.
    pub fn clear_interrupts(&mut self) -> &mut Self {
        self.interrupts = Interrupts::default();
        self
    }

    /// Runs a program with these values in r1 to r5 and no context: what r1 points
    /// to must be in the machine's memory already. Each access is checked.
    ///
    /// # Errors
    /// [`Error::Fault`](super::Error::Fault) when the program does what it must not.
    pub fn execute(&mut self, program: ProgramHandle, args: [u64; 5]) -> Result<Finished> {
        self.machine.settle()?;
        let entry = self.image(program)?.clone();
        let (machine, images) = (&mut self.machine, &self.images);
        Ok(self
            .checked
            .run(machine, images, &entry, args, self.budget)?)
    }

    /// Runs one program on an event, by its handle, before someone's eyes.
    ///
    /// # Errors
    /// As of [`fire`](Self::fire).
    pub fn run_watched(
        &mut self,
        program: ProgramHandle,
        event: &Event,
        watch: &mut dyn Watch,
    ) -> Result<Outcome> {
        let (machine, checked, stage) = self.stage();
        let entry = stage.image(program)?;
        let mut scene = stage.scene_alone(machine, program, event)?;
        let args = [scene.context, 0, 0, 0, 0];
        let (machine, images, budget) = (&mut *scene.machine, stage.images, stage.budget);
        let finished = checked.run_watched(machine, images, entry, args, budget, watch)?;
        let mut outcome = scene.machine.outcome();
        scene.collect(&mut outcome);
        let run = Run {
            program: entry.program().name.clone(),
            r0: finished.r0,
            insns: finished.insns,
            ran_on: stage.engine.unless(Fallback::Watched),
        };
        outcome.passed = run.returned() != 0;
        outcome.runs.push(run);
        Ok(outcome)
    }

    /// The engine that a run of a program on this event begins on, and why it is not the
    /// chosen one: the [program's](Self::engine_of_handle), unless the event or a mock asks
    /// for checks. The [`Outcome`] of a run names the engine that it ended on.
    ///
    /// # Errors
    /// [`Error::Event`](super::Error::Event) when the event is none for its type.
    pub fn engine_of_run(&mut self, program: ProgramHandle, event: &Event) -> Result<RanOn> {
        Ok(self.runner_of_handle(program, event)?.ran_on())
    }

    /// The loaded form of a program.
    fn image(&self, program: ProgramHandle) -> Result<&Arc<Image>> {
        let image = self.images.get(program.index());
        image.ok_or_else(|| self.no_program(&format!("#{}", program.0)))
    }

    /// What programs run on, and all that is needed to run them.
    pub(super) fn stage(&mut self) -> (&mut Machine, &mut Checked, Stage<'_>) {
        let (machine, checked, _, stage) = self.parts();
        (machine, checked, stage)
    }

    /// The same for several programs that are made ready together, each with a stack.
    pub(super) fn stage_with_stacks(&mut self) -> (&mut Machine, &mut [Checked], Stage<'_>) {
        let (machine, _, stacks, stage) = self.parts();
        (machine, stacks, stage)
    }

    fn parts(&mut self) -> (&mut Machine, &mut Checked, &mut [Checked], Stage<'_>) {
        // Only a mock and an interrupt can fire an event in the middle of a run.
        let nests = self.machine.has_mocks() || !self.interrupts.is_empty();
        let troupe: Option<Arc<dyn Fire>> = nests.then(|| {
            let troupe = Troupe {
                images: self.images.clone(),
                verifications: self.verifications.clone(),
                attached: self.attached.clone(),
                interrupts: self.interrupts.clone(),
                engine: self.engine,
                budget: self.budget,
            };
            Arc::new(troupe) as Arc<dyn Fire>
        });
        self.machine.set_firing(troupe);
        let stage = Stage {
            images: &self.images,
            verifications: &self.verifications,
            attached: &self.attached,
            interrupts: &self.interrupts,
            engine: self.engine,
            budget: self.budget,
            times: None,
        };
        (
            &mut self.machine,
            &mut self.checked,
            &mut self.stacks,
            stage,
        )
    }
}
