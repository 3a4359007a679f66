//! The whole way of a recording: maps before, firings, outputs, maps after, the end.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::bare::{self, Bare};
use super::contents::{self, After};
use super::error::ReplayError;
use super::look::look;
use super::missing::Missing;
use super::order::{Order, Turn};
use super::outputs::{Outputs, Stream};
use super::player::{Deck, Played, Player};
use super::programs::{Programs, Silent};
use super::sent::sent;
use super::source::{Opened, Source};
use super::stories::{Found, Story};
use super::touch::maps_named;
use super::verdict::{MapReport, MapVerdict, Report};
use super::writers::{Kind as MapKind, Writers};
use crate::btf::Btf;
use crate::compare::recording::{
    Cause, End, Header, Output, Part, Resource, Source as Origin, When,
};
use crate::harness::EngineKind;
use crate::instrument::{Firing, FiringFlags};
use crate::object::{Object, Target};
use crate::program::{MapDef, Program};
use crate::util::MapId;
use crate::vm::Machine;

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
}

impl Replay {
    /// Finds the programs of a recording in an object. Where they are others, the object is
    /// relocated for the kernel whose types the recording has, if it has them.
    ///
    /// # Errors
    /// [`ReplayError`]: the recording can't be read, or is one of another object.
    pub fn new(object: &Object, recording: impl Into<Source>) -> Result<Self, ReplayError> {
        let source = recording.into();
        let mut opened = source.open()?;
        let header = opened.header().clone();
        let programs = match Programs::of(object, &header) {
            Err(wrong @ ReplayError::WrongObject(_)) => match kernel_btf(&mut opened)? {
                Some(btf) => {
                    let mut object = object.clone();
                    object.set_target(Target::Kernel(btf));
                    Programs::of(&object, &header)?
                }
                None => return Err(wrong),
            },
            programs => programs?,
        };
        Ok(Self {
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
        let mut pass = Pass::of(self);
        let mut player = deck.player()?;
        pass.play_all(&mut self.source.open()?, &mut player)?;
        let checked = |running| player.is_checked(running);
        let engines: Vec<_> = self
            .programs
            .parts
            .iter()
            .map(|part| {
                let (_, running) = self.programs.find(part.recorded.number)?;
                Some(match checked(running) {
                    true => EngineKind::Checked,
                    false => engine,
                })
            })
            .collect();
        drop(player);
        let mut report = pass.report(&mut deck, engine, &engines);
        if let Some((story, found)) = pass.first() {
            let registers = self.registers(story, found, engine)?;
            report.explain(story, registers);
        }
        Ok(report)
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
    ) -> Result<Vec<(crate::isa::Reg, u64)>, ReplayError> {
        let Some((pc, nth)) = found.look else {
            return Ok(Vec::new());
        };
        let mut deck = Deck::new(&self.programs, self.cpus(), engine)?;
        let mut pass = Pass::of(self);
        pass.until = Some(found.difference.firing);
        let mut player = deck.player()?;
        pass.play_all(&mut self.source.open()?, &mut player)?;
        drop(player);
        let part = self.programs.parts.get(story);
        let form = part.and_then(|part| Some((part, part.form.as_ref().ok()?)));
        let (Some((part, form)), Some(bytes)) = (form, pass.stopped_at) else {
            return Ok(Vec::new());
        };
        let running = self.programs.find(part.recorded.number);
        Ok(match (Firing::parse(&bytes), running) {
            (Ok(firing), Some((_, running))) => look(&mut deck, running, form, &firing, pc, nth),
            _ => Vec::new(),
        })
    }
}

/// The BTF of the kernel that was recorded, if the recording has it before its firings.
fn kernel_btf(recording: &mut Opened) -> Result<Option<Btf>, ReplayError> {
    while let Some(part) = recording.next_part()? {
        match part {
            Part::Resources(resources) => {
                for resource in resources {
                    if resource.name == Resource::KERNEL_BTF {
                        return Ok(Btf::parse(resource.bytes).ok());
                    }
                }
            }
            Part::Firings(_) => break,
            _ => {}
        }
    }
    Ok(None)
}

/// One way through the recording.
struct Pass<'r> {
    header: &'r Header,
    programs: &'r Programs,
    stories: Vec<Story>,
    writers: Writers,
    outputs: Outputs,
    /// Whether a program puts anything out, so that somebody has to look.
    puts_out: bool,
    after: After,
    missing: Missing,
    order: Order,
    /// Firings replayed, and firings come.
    played: u64,
    come: u64,
    /// Where to stop: before the firing with this number.
    until: Option<u64>,
    /// That firing.
    stopped_at: Option<Vec<u8>>,
}

impl<'r> Pass<'r> {
    fn of(replay: &'r Replay) -> Self {
        let programs = &replay.programs;
        let defs = programs.maps.maps.iter();
        let kinds = defs.map(|def| MapKind {
            per_cpu: def.map_type.info().per_cpu,
            evicts: contents::is_lru(def),
        });
        Self {
            header: &replay.header,
            stories: programs.parts.iter().map(Story::of).collect(),
            writers: Writers::new(kinds, replay.cpus()),
            outputs: Outputs::default(),
            puts_out: programs.running().any(|(part, _)| puts_out(&part.original)),
            after: After::default(),
            missing: Missing::default(),
            order: Order::new(replay.cpus()),
            played: 0,
            come: 0,
            until: None,
            stopped_at: None,
            programs,
        }
    }

    fn play_all(
        &mut self,
        recording: &mut Opened,
        player: &mut Player<'_>,
    ) -> Result<(), ReplayError> {
        loop {
            let part = match recording.next_part() {
                Ok(Some(part)) => part,
                Ok(None) => break,
                Err(error) => {
                    // What stands before it is right.
                    self.missing.add(format!("the recording is {error}"));
                    break;
                }
            };
            if self.part(part, player)?.is_break() {
                return Ok(());
            }
        }
        while let Some(bytes) = self.order.rest() {
            if self.firing(&bytes, player)?.is_break() {
                return Ok(());
            }
        }
        for (cpu, lost) in self.order.lost() {
            let are = if lost == 1 {
                "firing is"
            } else {
                "firings are"
            };
            self.missing
                .add(format!("{lost} {are} missing on CPU {cpu}"));
        }
        Ok(())
    }

    fn part(
        &mut self,
        part: Part<'_>,
        player: &mut Player<'_>,
    ) -> Result<ControlFlow<()>, ReplayError> {
        match part {
            Part::Firings(firings) => {
                for bytes in firings {
                    if self.arrive(bytes, player)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            Part::Entries(entries) => {
                for entry in entries {
                    match entry.when {
                        When::After => self.after.entry(&entry),
                        When::Before => {
                            if !contents::set(player.machine(), &entry) {
                                let name = self.map_name(MapId(entry.map));
                                let what = format!("map {name} could not be set as it was before");
                                self.missing.add(what);
                            }
                        }
                    }
                }
            }
            Part::MapReads(reads) => {
                let after = reads.filter(|read| read.when == When::After);
                after.for_each(|read| self.after.read(&read));
            }
            Part::Outputs(outputs) => outputs.for_each(|output| self.output(&output)),
            Part::Losses(losses) => {
                for loss in losses {
                    self.missing.loss(&loss);
                    let story = loss.of.and_then(|of| self.programs.find(of));
                    if let (Cause::Missed, Some((story, _))) = (loss.cause, story)
                        && let Some(story) = self.stories.get_mut(story)
                    {
                        story.missed += loss.count;
                    }
                }
            }
            Part::End(end) => self.end(&end),
            Part::CutOff(at) => self.missing.cut_off(&at),
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    /// A firing has come; it may not be its turn yet.
    #[inline]
    fn arrive(
        &mut self,
        bytes: &[u8],
        player: &mut Player<'_>,
    ) -> Result<ControlFlow<()>, ReplayError> {
        let at = self.come;
        self.come += 1;
        let firing = match Firing::parse(bytes) {
            Ok(firing) => firing,
            Err(damaged) => {
                self.missing
                    .add(format!("firing {at} is damaged: {damaged}"));
                return Ok(ControlFlow::Continue(()));
            }
        };
        let cpu = firing.cpu;
        while let Some(bytes) = self.order.overdue(&firing) {
            if self.firing(&bytes, player)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        match self.order.offer(&firing, bytes) {
            Some(Turn::Now) => {
                if self.play(&firing, bytes, player)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Some(Turn::Held) => {}
            Some(Turn::Again) => {
                let number = firing.sequence;
                self.missing
                    .add(format!("firing {number} of CPU {cpu} comes twice"));
            }
            None => self
                .missing
                .add(format!("there is no CPU {cpu}, on which firings are")),
        }
        while let Some(bytes) = self.order.ready(cpu) {
            if self.firing(&bytes, player)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// A firing that was held.
    fn firing(
        &mut self,
        bytes: &[u8],
        player: &mut Player<'_>,
    ) -> Result<ControlFlow<()>, ReplayError> {
        match Firing::parse(bytes) {
            Ok(firing) => self.play(&firing, bytes, player),
            Err(_) => Ok(ControlFlow::Continue(())),
        }
    }

    /// Plays a firing whose turn it is.
    #[inline]
    fn play(
        &mut self,
        firing: &Firing<'_>,
        bytes: &[u8],
        player: &mut Player<'_>,
    ) -> Result<ControlFlow<()>, ReplayError> {
        let number = self.played;
        if self.until == Some(number) {
            self.stopped_at = Some(bytes.to_vec());
            return Ok(ControlFlow::Break(()));
        }
        self.played += 1;
        let found = self.programs.find(firing.program);
        let part = found.and_then(|(place, _)| self.programs.parts.get(place));
        let (Some((place, running)), Some(part)) = (found, part) else {
            let program = firing.program;
            self.missing.add(format!(
                "there is no program {program}, of which firings are"
            ));
            return Ok(ControlFlow::Continue(()));
        };
        let (Some(story), Ok(form)) = (self.stories.get_mut(place), &part.form) else {
            return Ok(ControlFlow::Continue(()));
        };
        if firing.flags.contains(FiringFlags::OVERFLOW) {
            story.without_log += 1;
            let name = &part.recorded.name;
            self.missing.add(format!(
                "firings of {name} whose log was too long have none"
            ));
            return Ok(ControlFlow::Continue(()));
        }
        story.firings += 1;
        let mut all_sent = Vec::new();
        let same = match player.play(running, firing)? {
            Played::Same => true,
            Played::Other { log, returned } => {
                if self.puts_out {
                    all_sent = sent(&part.original, &form.plan, firing.log, log);
                }
                let program = (&part.original, form);
                story.differ(program, number, firing, (log, returned))
            }
            Played::Stopped(fault) => {
                story.stop((&part.original, form), number, firing, &fault);
                false
            }
        };
        let what = (&form.plan, &story.touches);
        self.writers.note(place, what, firing, number, same);
        if self.puts_out {
            player.take_outputs(firing.cpu, &all_sent, &mut self.outputs);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn output(&mut self, output: &Output<'_>) {
        let map = output.map.map(MapId);
        let stream = match (output.source, map) {
            (Origin::Ring, Some(map)) => Stream::Ring(map),
            (Origin::Perf, Some(map)) => Stream::Perf(map),
            (Origin::Printk, _) => Stream::Printk,
            (_, None) => return,
        };
        self.outputs.recorded(stream, output.cpu, output.bytes);
    }

    fn end(&mut self, end: &End) {
        for cpu in &end.summary.cpus {
            self.order.end(cpu.cpu, cpu.sequence);
        }
        for total in &end.summary.programs {
            let story = self.programs.find(total.program);
            if let Some((story, _)) = story
                && let Some(story) = self.stories.get_mut(story)
            {
                story.missed = story.missed.max(total.missed);
            }
        }
    }

    fn map_name(&self, map: MapId) -> String {
        let def = self.programs.maps.maps.get(map.index());
        def.map_or_else(|| format!("#{}", map.0), |def| def.name.clone())
    }

    /// The program that differs first, and how.
    fn first(&self) -> Option<(usize, &Found)> {
        let lacks = self.missing.lacks_firings();
        let firsts = self.stories.iter().enumerate();
        let firsts =
            firsts.filter_map(|(place, story)| Some((place, story.first(&self.writers, lacks)?)));
        firsts.min_by_key(|(_, found)| found.difference.firing)
    }

    /// What is said in the end.
    fn report(
        &self,
        deck: &mut Deck,
        engine: EngineKind,
        engines: &[Option<EngineKind>],
    ) -> Report {
        let missing = self.missing.lines(self.header);
        let lacks = self.missing.lacks_firings();
        let maps = self.maps(deck.vm.machine());
        let outputs = self.outputs.judge(
            |stream| match stream {
                Stream::Ring(map) | Stream::Perf(map) => self.map_name(map),
                Stream::Printk => "printk".to_owned(),
            },
            |stream| self.unsaid_output(stream),
        );
        let programs = self.stories.iter().zip(&self.programs.parts).zip(engines);
        let programs = programs.map(|((story, part), engine)| {
            let first = story.first(&self.writers, lacks);
            let first = first.map(|found| found.difference.clone());
            let order = maps_named(&part.original).into_iter().find_map(|map| {
                let why = maps
                    .iter()
                    .find(|report| report.name == self.map_name(map))?;
                match &why.verdict {
                    MapVerdict::OrderUnknown { why: text, .. } => {
                        Some(format!("map {}: {text}", why.name))
                    }
                    _ => None,
                }
            });
            let missing = missing.first().filter(|_| lacks).cloned();
            story.report(part, *engine, first, order, missing)
        });
        Report {
            engine,
            programs: programs.collect(),
            maps,
            outputs,
            missing,
        }
    }

    /// What is said of the maps.
    fn maps(&self, machine: &Machine) -> Vec<MapReport> {
        let own = self.programs.maps.maps.iter().take(self.programs.own);
        let read = own.enumerate().filter(|(_, def)| {
            let is_record = contents::is_stream(def);
            !is_record && !def.frozen
        });
        let reports = read.map(|(number, def)| MapReport {
            name: def.name.clone(),
            verdict: self.map(machine, MapId::from_index(number)),
        });
        reports.collect()
    }

    fn map(&self, machine: &Machine, map: MapId) -> MapVerdict {
        let unseen = self
            .programs
            .parts
            .iter()
            .find(|part| part.form.is_err() && maps_named(&part.original).contains(&map));
        if let Some(part) = unseen {
            let name = &part.recorded.name;
            let why = match part.form {
                Err(Silent::Bare) => "no program ran when it was recorded".to_owned(),
                _ => format!("'{name}' uses it, of which there are no firings"),
            };
            return MapVerdict::NotCompared(why);
        }
        let verdict = self.after.compare(machine, map);
        let differing = match &verdict {
            MapVerdict::Equal(_) => 0,
            MapVerdict::Different { entries, .. } => *entries,
            _ => return verdict,
        };
        if differing > 0 && self.missing.lacks_firings() {
            return MapVerdict::NotCompared("firings are missing".to_owned());
        }
        match self.writers.unknown(map) {
            Some(why) => MapVerdict::OrderUnknown { why, differing },
            None => verdict,
        }
    }

    fn unsaid_output(&self, stream: Stream) -> Option<String> {
        let map = match stream {
            Stream::Ring(map) | Stream::Perf(map) => Some(map.0),
            Stream::Printk => None,
        };
        let silent = self.programs.parts.iter().find(|part| {
            let uses = || match map {
                Some(map) => maps_named(&part.original).contains(&MapId(map)),
                None => true,
            };
            part.form.is_err() && uses()
        });
        if let Some(part) = silent {
            return Some(format!("there are no firings of '{}'", part.recorded.name));
        }
        let lacks = self.missing.lacks_firings() || self.missing.lacks_outputs(map);
        lacks.then(|| "something is missing".to_owned())
    }
}

/// Whether a program calls a helper whose output is looked at.
fn puts_out(program: &Program) -> bool {
    use crate::isa::{CallTarget, Insn, decode_all};
    use crate::spec::helpers::id;
    const PUT_OUT: [crate::util::HelperId; 8] = [
        id::perf_event_output,
        id::trace_printk,
        id::trace_vprintk,
        id::ringbuf_output,
        id::ringbuf_reserve,
        id::ringbuf_reserve_dynptr,
        id::ringbuf_submit,
        id::ringbuf_submit_dynptr,
    ];
    decode_all(&program.insns).any(|(_, insn)| match insn {
        Ok(Insn::Call(CallTarget::Helper(helper))) => PUT_OUT.contains(&helper),
        _ => false,
    })
}
