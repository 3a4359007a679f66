//! Reads a recording once: maps before, firings, outputs, maps after, the end.

use std::ops::ControlFlow;

use super::comparison::{Piece, ProgramComparison};
use super::contents::{self, Recorded};
use super::difference::Instruction;
use super::error::ReplayError;
use super::missing::Missing;
use super::order::{Order, Turn, WaitingFiring};
use super::outputs::{Outputs, Stream};
use super::programs::Programs;
use super::replay_vm::{FiringResult, FiringRunner};
use super::sent::{puts_out, sent};
use super::source::Opened;
use super::writers::{Kind as MapKind, Writers};
use crate::compare::recording::{Cause, End, Header, LeftOut, Output, OutputSource, Part, When};
use crate::instrument::{Firing, FiringFlags};
use crate::util::MapId;
use crate::vm::Fault;

/// One pass over a recording, and what it found.
pub(super) struct Pass<'r> {
    pub header: &'r Header,
    pub programs: &'r Programs,
    pub comparisons: Vec<ProgramComparison>,
    pub writers: Writers,
    pub outputs: Outputs,
    /// Whether a program sends or prints anything, so that outputs are compared.
    pub(super) puts_out: bool,
    /// The recorded contents of maps.
    pub contents: Recorded,
    /// The programs that were not recorded.
    pub left_out: Vec<LeftOut>,
    pub missing: Missing,
    order: Order,
    /// Firings replayed, and firings read.
    replayed: u64,
    read: u64,
    /// Bytes of the recorder's ring that the firings read so far took.
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
        let comparisons = parts.map(|part| ProgramComparison::of(part, &header.kernel));
        let comparisons: Vec<_> = comparisons.collect();
        let touches = comparisons.iter().map(|comparison| &comparison.touches);
        Self {
            header,
            writers: Writers::new(defs.map(MapKind::of), touches),
            comparisons,
            outputs: Outputs::default(),
            puts_out: programs.running().any(|(part, _)| puts_out(&part.original)),
            contents: Recorded::default(),
            left_out: Vec::new(),
            missing: Missing::default(),
            order: Order::new(cpus),
            replayed: 0,
            read: 0,
            ring: 0,
            until: None,
            stopped_at: None,
            programs,
        }
    }

    /// Replays a recording, to its end or up to [`until`](Self::until).
    pub fn replay_all(
        &mut self,
        recording: &mut Opened,
        runner: &mut FiringRunner<'_>,
    ) -> Result<(), ReplayError> {
        loop {
            let part = match recording.next_part() {
                Ok(Some(part)) => part,
                Ok(None) => break,
                Err(error) => {
                    // Everything before the damage is intact.
                    self.missing.add(format!("the recording is {error}"));
                    break;
                }
            };
            if self.part(part, runner)?.is_break() {
                return Ok(());
            }
        }
        while let Some(waiting) = self.order.rest() {
            if self.replay_waiting(&waiting, runner)?.is_break() {
                return Ok(());
            }
        }
        for (cpu, lost) in self.order.lost() {
            let are = match lost {
                1 => "firing is",
                _ => "firings are",
            };
            self.missing
                .add(format!("{lost} {are} missing on CPU {cpu}"));
        }
        Ok(())
    }

    fn part(
        &mut self,
        part: Part<'_>,
        runner: &mut FiringRunner<'_>,
    ) -> Result<ControlFlow<()>, ReplayError> {
        match part {
            Part::Firings(firings) => {
                for bytes in firings {
                    if self.arrive(bytes, runner)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            Part::Entries(entries) => {
                for entry in entries {
                    if entry.when == When::After || contents::keeps_before(runner.machine(), &entry)
                    {
                        self.contents.entry(&entry);
                    }
                    if entry.when == When::Before && !contents::set(runner.machine(), &entry) {
                        let name = self.map_name(MapId(entry.map));
                        let what = format!("the initial contents of map {name} could not be set");
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
                    let found = loss.of.and_then(|of| self.programs.find(of));
                    if let (Cause::Missed, Some((program, _))) = (loss.cause, found)
                        && let Some(comparison) = self.comparisons.get_mut(program)
                    {
                        comparison.missed += loss.count;
                    }
                }
            }
            Part::End(end) => self.end(&end),
            Part::CutOff(at) => self.missing.cut_off(&at),
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Handles the next firing of the file: replays it if it is its turn.
    #[inline]
    fn arrive(
        &mut self,
        bytes: &[u8],
        runner: &mut FiringRunner<'_>,
    ) -> Result<ControlFlow<()>, ReplayError> {
        let at = self.read;
        self.read += 1;
        // A damaged record took up space in the ring, too.
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
        while let Some(waiting) = self.order.overdue(&firing) {
            if self.replay_waiting(&waiting, runner)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        match self.order.offer(&firing, bytes, ended) {
            Some(Turn::Now) => {
                if self.replay(&firing, bytes, ended, runner)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Some(Turn::Waits) => {}
            Some(Turn::Duplicate) => {
                let number = firing.sequence;
                self.missing
                    .add(format!("duplicate or late firing {number} of CPU {cpu}"));
            }
            None => self
                .missing
                .add(format!("firings on CPU {cpu}, which does not exist")),
        }
        while let Some(waiting) = self.order.ready(cpu) {
            if self.replay_waiting(&waiting, runner)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Replays a firing that waited.
    fn replay_waiting(
        &mut self,
        waiting: &WaitingFiring,
        runner: &mut FiringRunner<'_>,
    ) -> Result<ControlFlow<()>, ReplayError> {
        match Firing::parse(&waiting.bytes) {
            Ok(firing) => self.replay(&firing, &waiting.bytes, waiting.ended, runner),
            Err(_) => Ok(ControlFlow::Continue(())),
        }
    }

    /// Replays a firing whose turn it is.
    #[inline]
    fn replay(
        &mut self,
        firing: &Firing<'_>,
        bytes: &[u8],
        ended: u64,
        runner: &mut FiringRunner<'_>,
    ) -> Result<ControlFlow<()>, ReplayError> {
        let number = self.replayed;
        if self.until == Some(number) {
            self.stopped_at = Some(bytes.to_vec());
            return Ok(ControlFlow::Break(()));
        }
        self.replayed += 1;
        let found = self.programs.find(firing.program);
        let part = found.and_then(|(place, _)| self.programs.parts.get(place));
        let (Some((place, running)), Some(part)) = (found, part) else {
            let program = firing.program;
            if self.programs.is_silent(program) {
                return Ok(ControlFlow::Continue(()));
            }
            self.missing.add(format!(
                "firings of program number {program}, which does not exist"
            ));
            return Ok(ControlFlow::Continue(()));
        };
        let (Some(comparison), Ok(form)) = (self.comparisons.get_mut(place), &part.form) else {
            return Ok(ControlFlow::Continue(()));
        };
        if firing.flags.contains(FiringFlags::OVERFLOW) {
            comparison.without_log += 1;
            let name = &part.recorded.name;
            self.missing.add(format!(
                "logs of {name} that were too long for the recorder"
            ));
            return Ok(ControlFlow::Continue(()));
        }
        comparison.firings += 1;
        let mut all_sent = Vec::new();
        let result = runner.run(running, firing)?;
        if form.plan.jumps().is_empty() {
            let mut astray = None;
            match result {
                FiringResult::Same => {}
                FiringResult::Differs { log, returned } => {
                    if self.puts_out {
                        all_sent = sent(&part.original, &form.plan, firing.log, log);
                    }
                    let piece = Piece {
                        log,
                        earlier: &[],
                        returned: Some(returned),
                        then: (None, None),
                    };
                    let program = (&part.original, form);
                    let compared = comparison.differ(program, number, firing, &piece);
                    astray = compared.strayed.map(|strayed| (strayed, log));
                }
                FiringResult::Faulted(fault) => {
                    let pc = form.opening.original(fault.pc);
                    let place = pc.map(|pc| Instruction::of(&part.original, pc));
                    comparison.fault(number, firing, &fault, place);
                }
            }
            let astray = astray.as_ref().map(|(strayed, log)| (strayed, *log));
            let what = (&form.plan, &comparison.touches);
            self.writers.begin(firing, ended);
            self.writers.note(place, what, firing.log, astray);
        } else {
            all_sent = self.relayed(firing, ended, number, &result);
        }
        if self.puts_out {
            runner.take_outputs(firing.cpu, &all_sent, &mut self.outputs);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Adds a fault of a firing, which may be in a program that a tail call led to.
    pub(super) fn fault(&mut self, firing: &Firing<'_>, number: u64, fault: &Fault) {
        let programs = self.programs;
        let at = programs.original_of(&fault.program, fault.pc);
        let part = at.and_then(|(place, pc)| Some((programs.parts.get(place)?, pc)));
        let instruction = part.map(|(part, pc)| Instruction::of(&part.original, pc));
        let place = at.map(|(place, _)| place);
        let place = place.or_else(|| programs.find(firing.program).map(|(place, _)| place));
        if let Some(comparison) = place.and_then(|place| self.comparisons.get_mut(place)) {
            comparison.fault(number, firing, fault, instruction);
        }
    }

    fn output(&mut self, output: &Output<'_>) {
        let map = output.map.map(MapId);
        let stream = match (output.source, map) {
            (OutputSource::Ring, Some(map)) => Stream::Ring(map),
            (OutputSource::Perf, Some(map)) => Stream::Perf(map),
            (OutputSource::Printk, _) => Stream::Printk,
            (_, None) => return,
        };
        self.outputs.recorded(stream, output.cpu, output.bytes);
    }

    fn end(&mut self, end: &End) {
        for cpu in &end.summary.cpus {
            self.order.end(cpu.cpu, cpu.sequence);
        }
        for total in &end.summary.programs {
            let found = self.programs.find(total.program);
            if let Some((program, _)) = found
                && let Some(comparison) = self.comparisons.get_mut(program)
            {
                comparison.missed = comparison.missed.max(total.missed);
            }
        }
    }

    /// The name of a map.
    pub fn map_name(&self, map: MapId) -> String {
        let def = self.programs.maps.maps.get(map.index());
        def.map_or_else(|| format!("#{}", map.0), |def| def.name.clone())
    }
}
