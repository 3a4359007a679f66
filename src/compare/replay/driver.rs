//! The entry point: a recording and its object, replayed on an engine.

use std::sync::Arc;

use super::bare::{self, Bare};
use super::comparison::Found;
use super::error::ReplayError;
use super::findings::findings;
use super::look::look;
use super::pass::Pass;
use super::programs::Programs;
use super::replay_vm::ReplayVm;
use super::source::{Opened, RecordingSource, resource};
use super::verdict::Report;
use crate::btf::Btf;
use crate::compare::recording::{Header, LeftOut, Resource, checksum};
use crate::harness::{EngineKind, RanOn, is_here};
use crate::instrument::Firing;
use crate::isa::Reg;
use crate::object::{Object, Target};
use crate::program::{MapDef, Program};

/// A recording and the object that it was made with.
///
/// ```no_run
/// use bpflab::Object;
/// use bpflab::compare::replay::{Replay, RecordingSource};
/// use bpflab::harness::EngineKind;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let object = Object::open("write_hist.bpf.o")?;
/// let replay = Replay::new(&object, RecordingSource::File("writes.rec".into()))?;
/// let report = replay.run(EngineKind::Jit)?;
/// assert!(report.is_fine(), "{}", report.word());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Replay {
    source: RecordingSource,
    header: Header,
    programs: Programs,
    /// The programs that were not recorded, although they were to be.
    left_out: Vec<LeftOut>,
    /// Why this may not be the recorded object.
    unsure: Option<String>,
}

impl Replay {
    /// Finds the programs of a recording in an object. The object is relocated for the kernel
    /// types in the recording; if there are none or they don't fit, for its own
    /// [target](Object::set_target).
    ///
    /// # Errors
    /// [`ReplayError`]: the recording can't be read, or was made with another object.
    pub fn new(
        object: &Object,
        recording: impl Into<RecordingSource>,
    ) -> Result<Self, ReplayError> {
        let source = recording.into();
        let mut opened = source.open()?;
        let header = opened.header().clone();
        let there = kernel_btf(&mut opened).and_then(|btf| {
            let mut object = object.clone();
            object.set_target(Target::Kernel(btf));
            Programs::of(&object, &header).ok()
        });
        let programs = match there {
            Some(programs) => programs,
            None => Programs::of(object, &header)?,
        };
        Ok(Self {
            left_out: left_out(object, &header),
            unsure: unsure(object, &header),
            source,
            header,
            programs,
        })
    }

    /// As [`new`](Self::new), with the object that the recording carries along.
    ///
    /// # Errors
    /// As of [`new`](Self::new), and [`ReplayError::NoObject`].
    pub fn open(recording: impl Into<RecordingSource>) -> Result<Self, ReplayError> {
        let source = recording.into();
        let object = source.object()?.ok_or(ReplayError::NoObject)?;
        Self::new(&object, source)
    }

    /// Replays everything on each engine of this machine, for a test whose fixture is the
    /// recording: made once as root, replayed by anyone.
    ///
    /// ```
    /// use bpflab::Object;
    /// use bpflab::compare::replay::Replay;
    ///
    /// # fn main() -> bpflab::Result<()> {
    /// let object = Object::open("examples/bpf/write_hist.bpf.o")?;
    /// Replay::new(&object, "examples/recordings/writes.rec")?.check()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ReplayError::Differs`] with the differences on the first engine that has some, also if
    /// a part was not compared; as of [`run`](Self::run).
    pub fn check(&self) -> Result<(), ReplayError> {
        let engines = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit];
        for engine in engines.into_iter().filter(|engine| is_here(*engine)) {
            self.run(engine)?.check()?;
        }
        Ok(())
    }

    /// As [`new`](Self::new), for programs without an object that share `maps`.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn of_programs(
        programs: &[Arc<Program>],
        maps: &[MapDef],
        recording: impl Into<RecordingSource>,
    ) -> Result<Self, ReplayError> {
        let source = recording.into();
        let header = source.open()?.header().clone();
        Ok(Self {
            programs: Programs::among(programs, maps, &header)?,
            left_out: header.left_out.clone().unwrap_or_default(),
            unsure: None,
            source,
            header,
        })
    }

    /// Whether bare events were recorded, without a program to compare with:
    /// [`run_bare`](Self::run_bare) runs the object's programs on them.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.header.programs.is_empty() && !self.header.events.is_empty()
    }

    /// Runs the tracepoint programs of an object on the recorded bare events that their
    /// sections name.
    ///
    /// # Errors
    /// As of [`run`](Self::run).
    pub fn run_bare(&self, object: &Object, engine: EngineKind) -> Result<Bare, ReplayError> {
        bare::run(object, &self.source, &self.header, engine)
    }

    /// The recording's header.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Replays everything on an engine.
    ///
    /// # Errors
    /// [`ReplayError`]: a program can't be loaded, or the recording can't be read at all. A
    /// damaged block is no error: the replay ends before it and the report names it as
    /// [missing](Report::missing).
    pub fn run(&self, engine: EngineKind) -> Result<Report, ReplayError> {
        let mut replay_vm = ReplayVm::new(&self.programs, self.cpus(), engine)?;
        let mut pass = self.pass();
        pass.left_out.clone_from(&self.left_out);
        if let Some(why) = &self.unsure {
            pass.missing.add(why.clone());
        }
        let running = replay_vm.programs.len();
        let mut runner = replay_vm.runner()?;
        pass.replay_all(&mut self.source.open()?.read_ahead(), &mut runner)?;
        let ran_on: Vec<_> = (0..running).map(|running| runner.ran_on(running)).collect();
        drop(runner);
        let parts = self.programs.parts.iter();
        let engines: Vec<_> = parts
            .map(|part| {
                let (_, running) = self.programs.find(part.recorded.number)?;
                let ran_on = (*ran_on.get(running)?)?;
                Some((ran_on, replay_vm.engine_why(running, ran_on)))
            })
            .collect();
        let engine_of = |known: &Option<(RanOn, _)>| known.as_ref().map(|(ran_on, _)| *ran_on);
        let mut report = pass.report(
            &mut replay_vm,
            engine,
            &engines.iter().map(engine_of).collect::<Vec<_>>(),
        );
        for (program, known) in report.programs.iter_mut().zip(engines) {
            program.engine_why = known.and_then(|(_, why)| why);
        }
        if let Some((program, found)) = pass.first() {
            let registers = self.registers(program, found, engine)?;
            report.explain(program, registers);
        }
        report.findings = findings(&self.programs, &report);
        Ok(report)
    }

    fn pass(&self) -> Pass<'_> {
        Pass::new(&self.header, &self.programs, self.cpus())
    }

    fn cpus(&self) -> u32 {
        self.header.possible_cpus.max(1)
    }

    /// The registers at a difference of a program, by its index: replays everything before it
    /// again.
    fn registers(
        &self,
        program: usize,
        found: &Found,
        engine: EngineKind,
    ) -> Result<Vec<(Reg, u64)>, ReplayError> {
        let Some((pc, nth)) = found.look else {
            return Ok(Vec::new());
        };
        let mut replay_vm = ReplayVm::new(&self.programs, self.cpus(), engine)?;
        let mut pass = self.pass();
        pass.until = Some(found.difference.firing);
        let mut runner = replay_vm.runner()?;
        pass.replay_all(&mut self.source.open()?.read_ahead(), &mut runner)?;
        drop(runner);
        let part = self.programs.parts.get(program);
        let form = part.and_then(|part| part.form.as_ref().ok());
        let (Some(form), Some(bytes)) = (form, pass.stopped_at) else {
            return Ok(Vec::new());
        };
        let Ok(firing) = Firing::parse(&bytes) else {
            return Ok(Vec::new());
        };
        // The firing may be another program's, whose tail calls led to this one.
        Ok(match self.programs.find(firing.program) {
            Some((_, running)) => look(&mut replay_vm, running, form, &firing, pc, nth),
            None => Vec::new(),
        })
    }
}

/// The programs that were to be recorded and were not, from the header; if it does not say,
/// the object's autoloaded programs that the recording lacks.
fn left_out(object: &Object, header: &Header) -> Vec<LeftOut> {
    if let Some(left_out) = &header.left_out {
        return left_out.clone();
    }
    let is_recorded = |name: &str| header.programs.iter().any(|program| program.name == name);
    let others = object.entries().iter();
    let others = others.filter(|entry| entry.autoload() && !is_recorded(entry.name()));
    let others = others.map(|entry| LeftOut {
        program: entry.name().to_owned(),
        why: "the recording does not have it".to_owned(),
    });
    others.collect()
}

/// Why an object may not be the recorded one. Recordings of the first versions have neither
/// the initial contents of maps nor the licenses of programs: then the file must be the same.
fn unsure(object: &Object, header: &Header) -> Option<String> {
    let is_known = header.maps.iter().all(|map| map.initial.is_some());
    let is_known = is_known && header.programs.iter().all(|one| one.license.is_some());
    let recorded = header.object.as_ref().filter(|_| !is_known)?;
    let file = std::fs::read(object.file()).ok()?;
    (checksum(&file) != recorded.checksum).then(|| {
        format!(
            "{} is not the recorded file, and the recording, written by an earlier bpflab, has \
             neither initial data nor licenses to compare",
            object.file()
        )
    })
}

/// The types of the recorded kernel, if the recording has them among the files at its start.
/// The replay reports damage there.
fn kernel_btf(recording: &mut Opened) -> Option<Btf> {
    let types = resource(recording, Resource::KERNEL_BTF).ok()??;
    Btf::parse(&types).ok()
}
