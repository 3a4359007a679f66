//! A recording and its object, brought together, and what is asked of them.

use std::sync::Arc;

use super::bare::{self, Bare};
use super::error::ReplayError;
use super::look::look;
use super::pass::Pass;
use super::player::Deck;
use super::programs::Programs;
use super::source::{Opened, Source};
use super::stories::Found;
use super::verdict::Report;
use crate::btf::Btf;
use crate::compare::recording::{Header, LeftOut, Part, Resource, checksum};
use crate::harness::{EngineKind, RanOn};
use crate::instrument::Firing;
use crate::isa::Reg;
use crate::object::{Object, Target};
use crate::program::{MapDef, Program};

/// A recording and the object that was recorded.
///
/// ```no_run
/// use bpflab::Object;
/// use bpflab::compare::replay::{Replay, Source};
/// use bpflab::harness::EngineKind;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let object = Object::open("write_hist.bpf.o")?;
/// let replay = Replay::new(&object, Source::File("writes.rec".into()))?;
/// let report = replay.run(EngineKind::Jit)?;
/// assert!(report.is_fine(), "{}", report.word());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Replay {
    source: Source,
    header: Header,
    programs: Programs,
    /// The programs that were to be recorded, too.
    left_out: Vec<LeftOut>,
    /// Why it is not known whether this is the object that was recorded.
    unsure: Option<String>,
}

impl Replay {
    /// Finds the programs of a recording in an object, relocated for the kernel whose types
    /// the recording has; where it has none, or others, for the object's own
    /// [target](Object::set_target).
    ///
    /// # Errors
    /// [`ReplayError`]: the recording can't be read, or is one of another object.
    pub fn new(object: &Object, recording: impl Into<Source>) -> Result<Self, ReplayError> {
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

    /// The same for programs that come from no object, and share these maps.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn of_programs(
        programs: &[Arc<Program>],
        maps: &[MapDef],
        recording: impl Into<Source>,
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

    /// Whether no program ran when it was recorded, so that there is nothing to compare
    /// with: [`run_bare`](Self::run_bare) runs the object's programs on the events.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.header.programs.is_empty() && !self.header.events.is_empty()
    }

    /// Runs the programs of an object on the bare events of the recording, those that are
    /// tracepoints and that a program names in its section.
    ///
    /// # Errors
    /// As of [`run`](Self::run).
    pub fn run_bare(&self, object: &Object, engine: EngineKind) -> Result<Bare, ReplayError> {
        bare::run(object, &self.source, &self.header, engine)
    }

    /// What the recording says of itself.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Replays everything on an engine.
    ///
    /// # Errors
    /// [`ReplayError`]: damage of the recording ends it where it is, and is no error, but
    /// [missing](Report::missing); what is one are programs that can't be loaded, and a
    /// recording that can't be read at all.
    pub fn run(&self, engine: EngineKind) -> Result<Report, ReplayError> {
        let mut deck = Deck::new(&self.programs, self.cpus(), engine)?;
        let mut pass = self.pass();
        pass.left_out.clone_from(&self.left_out);
        if let Some(why) = &self.unsure {
            pass.missing.add(why.clone());
        }
        let running = deck.programs.len();
        let mut player = deck.player()?;
        pass.play_all(&mut self.source.open()?.read_ahead(), &mut player)?;
        let ran_on: Vec<_> = (0..running).map(|running| player.ran_on(running)).collect();
        drop(player);
        let parts = self.programs.parts.iter();
        let engines: Vec<_> = parts
            .map(|part| {
                let (_, running) = self.programs.find(part.recorded.number)?;
                let ran_on = (*ran_on.get(running)?)?;
                Some((ran_on, deck.engine_why(running, ran_on)))
            })
            .collect();
        let engine_of = |known: &Option<(RanOn, _)>| known.as_ref().map(|(ran_on, _)| *ran_on);
        let mut report = pass.report(
            &mut deck,
            engine,
            &engines.iter().map(engine_of).collect::<Vec<_>>(),
        );
        for (program, known) in report.programs.iter_mut().zip(engines) {
            program.engine_why = known.and_then(|(_, why)| why);
        }
        if let Some((story, found)) = pass.first() {
            let registers = self.registers(story, found, engine)?;
            report.explain(story, registers);
        }
        Ok(report)
    }

    fn pass(&self) -> Pass<'_> {
        Pass::new(&self.header, &self.programs, self.cpus())
    }

    fn cpus(&self) -> u32 {
        self.header.possible_cpus.max(1)
    }

    /// What registers hold at the place of a difference: all that was before is replayed
    /// once more.
    fn registers(
        &self,
        story: usize,
        found: &Found,
        engine: EngineKind,
    ) -> Result<Vec<(Reg, u64)>, ReplayError> {
        let Some((pc, nth)) = found.look else {
            return Ok(Vec::new());
        };
        let mut deck = Deck::new(&self.programs, self.cpus(), engine)?;
        let mut pass = self.pass();
        pass.until = Some(found.difference.firing);
        let mut player = deck.player()?;
        pass.play_all(&mut self.source.open()?.read_ahead(), &mut player)?;
        drop(player);
        let part = self.programs.parts.get(story);
        let form = part.and_then(|part| part.form.as_ref().ok());
        let (Some(form), Some(bytes)) = (form, pass.stopped_at) else {
            return Ok(Vec::new());
        };
        let Ok(firing) = Firing::parse(&bytes) else {
            return Ok(Vec::new());
        };
        // It may be another program's: tail calls led to the one that differs.
        Ok(match self.programs.find(firing.program) {
            Some((_, running)) => look(&mut deck, running, form, &firing, pc, nth),
            None => Vec::new(),
        })
    }
}

/// The programs of an object that were to be recorded and were not, as the recording says;
/// where it does not, all that are loaded with the object and are not in it.
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

/// Recordings of the first versions don't say what maps hold at the start, nor under which
/// license programs are: then it has to be the same file.
fn unsure(object: &Object, header: &Header) -> Option<String> {
    let is_told = header.maps.iter().all(|map| map.initial.is_some());
    let is_told = is_told && header.programs.iter().all(|one| one.license.is_some());
    let recorded = header.object.as_ref().filter(|_| !is_told)?;
    let file = std::fs::read(object.file()).ok()?;
    (checksum(&file) != recorded.checksum).then(|| {
        format!(
            "{} is not the file that was recorded, and the recording, of an earlier bpflab, does \
             not say whether data at the start and licenses were the same",
            object.file()
        )
    })
}

/// The types of the kernel that was recorded, if the recording has them where its files
/// stand: before anything happened. Damage there is told of by whoever replays it.
fn kernel_btf(recording: &mut Opened) -> Option<Btf> {
    while let Ok(Some(part)) = recording.next_part() {
        match part {
            Part::Resources(mut files) => {
                if let Some(types) = files.find(|file| file.name == Resource::KERNEL_BTF) {
                    return Btf::parse(types.bytes).ok();
                }
            }
            Part::Entries(_) | Part::MapReads(_) => {}
            _ => break,
        }
    }
    None
}
