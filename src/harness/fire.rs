//! Events fire programs, as the kernel's attach points do.

use std::sync::Arc;

use super::attach_point::AttachPoint;
use super::engine_kind::EngineKind;
use super::error::Result;
use super::vm::Vm;
use crate::btf::Btf;
use crate::interp::{Finished, Image, Watch};
use crate::spec::context::Arch;
use crate::spec::{ProgType, limits};
use crate::vm::events::{Event, EventError, EventKind, Layout};
use crate::vm::{Outcome, ProgramHandle, Run};

impl Vm {
    /// A firing of a tracepoint, `group/name`, to be filled field by field. Fields
    /// go by the names of the format file and of BTF (`count` and `args[2]`).
    ///
    /// # Errors
    /// [`EventError::NoLayout`] where neither the kernel's BTF nor that of a loaded
    /// object nor the table of system calls knows the tracepoint: declare it with
    /// [`Layout::declare`], or read its format file with [`Layout::from_format`].
    pub fn tracepoint(&self, name: &str) -> Result<Event> {
        let (group, event) = name.split_once('/').unwrap_or(("", name));
        let of = |btf: Option<&Btf>| Layout::of_tracepoint(group, event, btf, Arch::HOST);
        let layout = match self.first_btf(|btf| of(Some(btf))) {
            Some(layout) => layout,
            None => of(None),
        };
        Ok(Event::tracepoint(layout?))
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

    /// Fires an event: runs the programs that are attached to its place, in the
    /// order in which they were attached.
    ///
    /// As in Linux, the results of several programs on a tracepoint are ANDed,
    /// starting at 1, and 0 drops the event (`trace_call_bpf`,
    /// `kernel/trace/bpf_trace.c`).
    ///
    /// # Errors
    /// [`Error::Fault`](super::Error::Fault) when a program does what it must not,
    /// [`Error::Event`](super::Error::Event) when the event is none for its type,
    /// [`Error::Context`](super::Error::Context) when it is too small for the program.
    pub fn fire(&mut self, event: Event) -> Result<Outcome> {
        let mut outcome = Outcome {
            passed: true,
            ..Outcome::default()
        };
        let mut verdict = 1;
        for handle in self.attached_to(&event) {
            let run = self.run_on(handle, &event, &mut outcome)?;
            verdict &= run.returned();
            outcome.runs.push(run);
        }
        if event.kind() == EventKind::Tracepoint {
            outcome.passed = verdict != 0;
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
        let mut outcome = Outcome::default();
        let run = self.run_on(program, event, &mut outcome)?;
        outcome.passed = run.returned() != 0;
        outcome.runs.push(run);
        Ok(outcome)
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
        let mut outcome = Outcome::default();
        let entry = self.image(program)?.clone();
        let run = self.placed(program, event, &mut outcome, |vm, args| {
            let (machine, images) = (&mut vm.machine, &vm.images);
            let budget = vm.budget;
            Ok(vm
                .checked
                .run_watched(machine, images, &entry, args, budget, watch)?)
        })?;
        outcome.passed = run.returned() != 0;
        outcome.runs.push(run);
        Ok(outcome)
    }

    /// The engine that a run of a program on this event begins on: the
    /// [program's](Self::engine_of_handle), unless the event or a mock asks for checks.
    ///
    /// # Errors
    /// [`Error::Event`](super::Error::Event) when the event is none for its type.
    pub fn engine_of_run(&mut self, program: ProgramHandle, event: &Event) -> Result<EngineKind> {
        let image = self.image(program)?.clone();
        let prog_type = image.program().prog_type;
        let placed = event.place(prog_type, &mut self.machine.space)?;
        let context = placed.r1();
        self.machine.enter(prog_type, placed);
        let start = image
            .lowered()
            .and_then(|lowered| lowered.may_start(&self.machine, context));
        let engine = match start {
            Some(_) => self.engine_of_handle(program),
            None => EngineKind::Checked,
        };
        if let Some(placed) = self.machine.leave() {
            placed.remove(&mut self.machine.space);
        }
        Ok(engine)
    }

    /// Runs a program on the event that was placed for it, on the engine for it.
    pub(super) fn execute_placed(
        &mut self,
        program: ProgramHandle,
        args: [u64; 5],
    ) -> Result<Finished> {
        let engine = self.engine_of_handle(program);
        if engine == EngineKind::Checked {
            return self.execute(program, args);
        }
        let Some(entry) = self.images.get(program.index()) else {
            return self.execute(program, args);
        };
        let (machine, images) = (&mut self.machine, &self.images);
        let is_native = engine == EngineKind::Jit;
        Ok(self
            .checked
            .run_fast(machine, images, entry, args, self.budget, is_native)?)
    }

    /// The loaded form of a program.
    fn image(&self, program: ProgramHandle) -> Result<&Arc<Image>> {
        let image = self.images.get(program.index());
        image.ok_or_else(|| self.no_program(&format!("#{}", program.0)))
    }

    /// The programs that an event fires, in the order of attachment.
    fn attached_to(&self, event: &Event) -> Vec<ProgramHandle> {
        let mut found: Vec<_> = self
            .attached
            .iter()
            .zip(0..)
            .filter_map(|(attached, index)| Some((attached.as_ref()?, ProgramHandle(index))))
            .filter(|(attached, handle)| {
                attached.point.is_hit_by(event)
                    && self
                        .program(*handle)
                        .is_some_and(|program| event.accepts(program.prog_type))
            })
            .collect();
        found.sort_by_key(|(attached, _)| attached.order);
        found.into_iter().map(|(_, handle)| handle).collect()
    }

    fn run_on(
        &mut self,
        program: ProgramHandle,
        event: &Event,
        outcome: &mut Outcome,
    ) -> Result<Run> {
        self.placed(program, event, outcome, |vm, args| {
            vm.execute_placed(program, args)
        })
    }

    /// Puts an event into memory, lets `run` run on it, and takes it out again with
    /// everything that came of it, however the run ended.
    pub(super) fn placed(
        &mut self,
        program: ProgramHandle,
        event: &Event,
        outcome: &mut Outcome,
        run: impl FnOnce(&mut Self, [u64; 5]) -> Result<Finished>,
    ) -> Result<Run> {
        self.machine.settle()?;
        let image = self.image(program)?.program();
        let (name, prog_type) = (image.name.clone(), image.prog_type);
        self.check_context(program, event)?;
        let placed = event.place(prog_type, &mut self.machine.space)?;
        let context = placed.r1();
        self.machine.enter(prog_type, placed);
        let finished = run(self, [context, 0, 0, 0, 0]);
        if let Some(placed) = self.machine.leave() {
            outcome.context = placed.context_bytes(&self.machine.space);
            outcome.packet = placed.packet_bytes(&self.machine.space);
            placed.remove(&mut self.machine.space);
        }
        outcome.outputs.extend(self.machine.take_outputs());
        outcome.stale.extend(self.machine.space.take_stale());
        outcome.unreleased = self.machine.unreleased().collect();
        let finished = finished?;
        Ok(Run {
            program: name,
            r0: finished.r0,
            insns: finished.insns,
        })
    }
}

impl AttachPoint {
    /// Whether an event happens here.
    fn is_hit_by(&self, event: &Event) -> bool {
        match (self, event.kind()) {
            (Self::Tracepoint(target), EventKind::Tracepoint)
            | (Self::RawTracepoint(target), EventKind::RawTracepoint) => target == event.name(),
            (Self::Hook(_, target), EventKind::Function) => target.as_deref() == Some(event.name()),
            (Self::Hook(prog_type, _), EventKind::Packet | EventKind::Context(_)) => {
                *prog_type != ProgType::Tracing
            }
            _ => false,
        }
    }
}
