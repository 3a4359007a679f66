//! One way through a recording: maps before, firings, outputs, maps after, the end.

use std::ops::ControlFlow;

use super::contents::{self, Recorded};
use super::difference::Instruction;
use super::error::ReplayError;
use super::missing::Missing;
use super::order::{Held, Order, Turn};
use super::outputs::{Outputs, Stream};
use super::player::{Played, Player};
use super::programs::Programs;
use super::sent::{puts_out, sent};
use super::source::Opened;
use super::stories::{Piece, Story};
use super::writers::{Kind as MapKind, Writers};
use crate::compare::recording::{
    Cause, End, Header, LeftOut, Output, Part, Source as Origin, When,
};
use crate::instrument::{Firing, FiringFlags};
use crate::util::MapId;
use crate::vm::Fault;

/// One way through the recording.
pub(super) struct Pass<'r> {
    pub header: &'r Header,
    pub programs: &'r Programs,
    pub stories: Vec<Story>,
    pub writers: Writers,
    pub outputs: Outputs,
    /// Whether a program puts anything out, so that somebody has to look.
    pub(super) puts_out: bool,
    /// What the recording has of maps.
    pub contents: Recorded,
    /// The programs that were not recorded.
    pub left_out: Vec<LeftOut>,
    pub missing: Missing,
    order: Order,
    /// Firings replayed, and firings come.
    played: u64,
    come: u64,
    /// How far they had filled the recorder's ring.
    ring: u64,
    /// Where to stop: before the firing with this number.
    pub until: Option<u64>,
    /// That firing.
    pub stopped_at: Option<Vec<u8>>,
}

impl<'r> Pass<'r> {
    pub fn new(header: &'r Header, programs: &'r Programs, cpus: u32) -> Self {
        let defs = programs.maps.maps.iter();
        let parts = programs.parts.iter();
        let stories: Vec<_> = parts.map(|part| Story::of(part, &header.kernel)).collect();
        let touches = stories.iter().map(|story| &story.touches);
        Self {
            header,
            writers: Writers::new(defs.map(MapKind::of), touches),
            stories,
            outputs: Outputs::default(),
            puts_out: programs.running().any(|(part, _)| puts_out(&part.original)),
            contents: Recorded::default(),
            left_out: Vec::new(),
            missing: Missing::default(),
            order: Order::new(cpus),
            played: 0,
            come: 0,
            ring: 0,
            until: None,
            stopped_at: None,
            programs,
        }
    }

    /// Plays all of a recording, or up to where it is to stop.
    pub fn play_all(
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
        while let Some(held) = self.order.rest() {
            if self.held(&held, player)?.is_break() {
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
                    if entry.when == When::After || contents::keeps_before(player.machine(), &entry)
                    {
                        self.contents.entry(&entry);
                    }
                    if entry.when == When::Before && !contents::set(player.machine(), &entry) {
                        let name = self.map_name(MapId(entry.map));
                        let what = format!("map {name} could not be set as it was before");
                        self.missing.add(what);
                    }
                }
            }
            Part::MapReads(reads) => {
                reads.for_each(|read| self.contents.read(&read));
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
        // Whatever it is, it was in the ring.
        self.ring += Firing::ring_bytes(bytes.len());
        let ended = self.ring;
        let firing = match Firing::parse(bytes) {
            Ok(firing) => firing,
            Err(damaged) => {
                self.missing
                    .add(format!("firing {at} is damaged: {damaged}"));
                return Ok(ControlFlow::Continue(()));
            }
        };
        let cpu = firing.cpu;
        while let Some(held) = self.order.overdue(&firing) {
            if self.held(&held, player)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        match self.order.offer(&firing, bytes, ended) {
            Some(Turn::Now) => {
                if self.play(&firing, bytes, ended, player)?.is_break() {
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
        while let Some(held) = self.order.ready(cpu) {
            if self.held(&held, player)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// A firing that was held.
    fn held(
        &mut self,
        held: &Held,
        player: &mut Player<'_>,
    ) -> Result<ControlFlow<()>, ReplayError> {
        match Firing::parse(&held.bytes) {
            Ok(firing) => self.play(&firing, &held.bytes, held.ended, player),
            Err(_) => Ok(ControlFlow::Continue(())),
        }
    }

    /// Plays a firing whose turn it is.
    #[inline]
    fn play(
        &mut self,
        firing: &Firing<'_>,
        bytes: &[u8],
        ended: u64,
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
        let played = player.play(running, firing)?;
        if form.plan.jumps().is_empty() {
            let mut astray = None;
            match played {
                Played::Same => {}
                Played::Other { log, returned } => {
                    if self.puts_out {
                        all_sent = sent(&part.original, &form.plan, firing.log, log);
                    }
                    let piece = Piece {
                        log,
                        earlier: &[],
                        returned: Some(returned),
                        then: (None, None),
                    };
                    let told = story.differ((&part.original, form), number, firing, &piece);
                    astray = told.strayed.map(|strayed| (strayed, log));
                }
                Played::Stopped(fault) => {
                    let pc = form.opening.original(fault.pc);
                    let place = pc.map(|pc| Instruction::of(&part.original, pc));
                    story.stop(number, firing, &fault, place);
                }
            }
            let astray = astray.as_ref().map(|(strayed, log)| (strayed, *log));
            let what = (&form.plan, &story.touches);
            self.writers.begin(firing, ended);
            self.writers.note(place, what, firing.log, astray);
        } else {
            all_sent = self.relayed(firing, ended, number, &played);
        }
        if self.puts_out {
            player.take_outputs(firing.cpu, &all_sent, &mut self.outputs);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// A run stopped, perhaps in a program that a tail call led to.
    pub(super) fn stop(&mut self, firing: &Firing<'_>, number: u64, fault: &Fault) {
        let programs = self.programs;
        let at = programs.original_of(&fault.program, fault.pc);
        let part = at.and_then(|(place, pc)| Some((programs.parts.get(place)?, pc)));
        let instruction = part.map(|(part, pc)| Instruction::of(&part.original, pc));
        let place = at.map(|(place, _)| place);
        let place = place.or_else(|| programs.find(firing.program).map(|(place, _)| place));
        if let Some(story) = place.and_then(|place| self.stories.get_mut(place)) {
            story.stop(number, firing, fault, instruction);
        }
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

    /// What a map is called.
    pub fn map_name(&self, map: MapId) -> String {
        let def = self.programs.maps.maps.get(map.index());
        def.map_or_else(|| format!("#{}", map.0), |def| def.name.clone())
    }
}
