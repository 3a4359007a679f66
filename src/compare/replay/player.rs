//! A machine that has the replay forms of an object's programs, and plays firings to them.

use std::sync::Arc;

use super::error::ReplayError;
use super::outputs::{Outputs, Stream};
use super::programs::Programs;
use crate::harness::{EngineKind, Runners, Vm};
use crate::instrument::{Firing, ReplayMaps};
use crate::util::MapId;
use crate::vm::events::Event;
use crate::vm::maps::Kind;
use crate::vm::memory::Slab;
use crate::vm::{Emitted, Fault, Machine, MapHandle, Output, ProgramHandle, RanOn, World};

/// A machine with the programs of a recording, and maps as its object has them.
pub(super) struct Deck {
    pub vm: Vm,
    /// In the order of the programs that run.
    pub programs: Vec<(ProgramHandle, Event)>,
    tape: Arc<Slab>,
    log: Arc<Slab>,
    /// The ring buffers of the object.
    rings: Vec<MapHandle>,
}

impl Deck {
    pub fn new(programs: &Programs, cpus: u32, engine: EngineKind) -> Result<Self, ReplayError> {
        let mut vm = Vm::with_world(World::with_cpus(cpus));
        vm.set_engine(engine);
        let opening = programs.running().map(|(_, form)| &form.opening);
        let forms = opening.chain(programs.following());
        let forms = forms.map(|running| running.program.clone()).collect();
        let handles = vm.load_unverified_programs(&programs.maps.maps, forms)?;
        let contexts = programs.running().map(|(part, form)| {
            let len = form.plan.context_len(part.recorded.context_len);
            Event::bytes(vec![0; len as usize])
        });
        let slab = |map: MapId| {
            let map = vm.maps().nth(map.index());
            let slab = map.and_then(|map| map.raw().slab().cloned());
            slab.unwrap_or_else(|| Arc::new(Slab::array(0, 0)))
        };
        let rings = vm
            .maps()
            .filter(|map| matches!(map.raw().kind(), Kind::RingBuf(_)));
        Ok(Self {
            tape: slab(programs.maps.tape),
            log: slab(programs.maps.log),
            rings: rings.map(|map| map.handle()).collect(),
            programs: handles.into_iter().zip(contexts).collect(),
            vm,
        })
    }

    /// Makes everything ready for one firing after another.
    pub fn player(&mut self) -> Result<Player<'_>, ReplayError> {
        Ok(Player {
            tape: &self.tape,
            log: &self.log,
            rings: &self.rings,
            ring_records: Vec::new(),
            runners: self.vm.runners(&self.programs)?,
            cpu: 0,
            pid_tgid: None,
            replayed: Vec::new(),
        })
    }

    /// Why a program, by its place among those that run, is on another engine than was asked
    /// for: in the verifier's words where it is the reason.
    pub fn engine_why(&self, running: usize, ran_on: RanOn) -> Option<String> {
        let (handle, _) = self.programs.get(running)?;
        engine_why(&self.vm, *handle, ran_on)
    }

    /// Bytes of the context of a program, by its place among those that run.
    pub fn context_len(&self, running: usize) -> usize {
        let event = self.programs.get(running).map(|(_, event)| event);
        event.map_or(0, |event| event.record().len())
    }

    /// Puts a firing on the tape, and its moment into the world: for a run by itself.
    pub fn cue(&mut self, firing: &Firing<'_>) {
        cue(&self.tape, &self.log, firing);
        let world = self.vm.world();
        world.set_cpu(firing.cpu).clock().set_ns(firing.time);
        set_task(world, firing.pid_tgid);
    }
}

/// What the verifier has against a program, or does not know of it.
pub(super) fn engine_why(vm: &Vm, program: ProgramHandle, ran_on: RanOn) -> Option<String> {
    let why = ran_on.fallback?;
    let known = vm.verification(program).filter(|_| why.is_unverified());
    Some(known.map_or_else(|| why.to_string(), |known| known.verdict.message.clone()))
}

/// Plays firings.
pub(super) struct Player<'d> {
    runners: Runners<'d>,
    tape: &'d Slab,
    log: &'d Slab,
    rings: &'d [MapHandle],
    /// What a firing gave to ring buffers, and whether the kernel took it.
    ring_records: Vec<(MapHandle, bool, Vec<u8>)>,
    cpu: u32,
    pid_tgid: Option<u64>,
    /// The last log, where it was not the recorded one.
    replayed: Vec<u8>,
}

/// What came of a firing.
#[derive(Debug)]
pub(super) enum Played<'p> {
    /// The same as in the kernel, in everything.
    Same,
    /// Something else.
    Other {
        /// What the replay wrote down.
        log: &'p [u8],
        /// What it returned.
        returned: u64,
    },
    /// The program stopped.
    Stopped(Box<Fault>),
}

impl Player<'_> {
    /// Plays a firing to the program at this place among those that run.
    #[inline]
    pub fn play(&mut self, running: usize, firing: &Firing<'_>) -> Result<Played<'_>, ReplayError> {
        self.set_world(firing);
        self.runners.set_context(running, firing.context)?;
        cue(self.tape, self.log, firing);
        let finished = match self.runners.run(running) {
            Ok(finished) => finished,
            Err(crate::harness::Error::Fault(fault)) => return Ok(Played::Stopped(fault)),
            Err(error) => return Err(error.into()),
        };
        let log = self.log.values();
        let len = log.load(ReplayMaps::LOG_LEN_AT, 8).unwrap_or_default();
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let stopped = self.tape.values().load(ReplayMaps::STOPPED_AT, 8);
        if len == firing.log.len()
            && stopped == Some(0)
            && finished.r0 == firing.returned
            && log.equals(ReplayMaps::LOG_AT, firing.log) == Some(true)
        {
            return Ok(Played::Same);
        }
        self.replayed.clear();
        let len = len.min(ReplayMaps::ROOM);
        log.append(ReplayMaps::LOG_AT, len, &mut self.replayed);
        Ok(Played::Other {
            log: &self.replayed,
            returned: finished.r0,
        })
    }

    /// Puts the moment of a firing into the world.
    #[inline]
    fn set_world(&mut self, firing: &Firing<'_>) {
        let world = self.runners.world();
        world.clock().set_ns(firing.time);
        if self.cpu != firing.cpu {
            self.cpu = firing.cpu;
            world.set_cpu(firing.cpu);
        }
        if self.pid_tgid != Some(firing.pid_tgid) {
            self.pid_tgid = Some(firing.pid_tgid);
            set_task(world, firing.pid_tgid);
        }
    }

    /// Takes what the programs have put out, but for what is not `sent`; what is not
    /// said of is.
    #[inline]
    pub fn take_outputs(&mut self, cpu: u32, sent: &[bool], to: &mut Outputs) {
        let mut sent = sent.iter().copied().chain(std::iter::repeat(true));
        let rings = &mut self.ring_records;
        rings.clear();
        self.runners.drain_outputs(|one| match one {
            Emitted::Ring(map, bytes) => {
                rings.push((map, sent.next() != Some(false), bytes.to_vec()));
            }
            Emitted::Perf(..) | Emitted::Other(Output::Printk(_)) if sent.next() == Some(false) => {
            }
            Emitted::Perf(map, on, bytes) => to.replayed(Stream::Perf(MapId(map.0)), on, bytes),
            Emitted::Other(Output::Printk(line)) => {
                to.replayed(Stream::Printk, cpu, line.as_bytes());
            }
            Emitted::Other(_) => {}
        });
        for ring in self.rings {
            self.ring_outputs(*ring, cpu, to);
        }
    }

    /// Takes the records of a ring buffer. They lie there in the order in which they were
    /// reserved, and are given out as they are submitted.
    fn ring_outputs(&self, map: MapHandle, cpu: u32, to: &mut Outputs) {
        let Some(Kind::RingBuf(ring)) = self.runners.machine().map(map).map(|map| map.kind())
        else {
            return;
        };
        let stream = Stream::Ring(MapId(map.0));
        let own = || self.ring_records.iter().filter(|(of, ..)| *of == map);
        if own().count() < 2 {
            ring.skip();
            for (_, _, bytes) in own().filter(|(_, is_sent, _)| *is_sent) {
                to.replayed(stream, cpu, bytes);
            }
            return;
        }
        let mut there = ring.take();
        for (_, _, bytes) in own().filter(|(_, is_sent, _)| !is_sent) {
            if let Some(at) = there.iter().position(|record| record == bytes) {
                there.remove(at);
            }
        }
        for record in there {
            to.replayed(stream, cpu, &record);
        }
    }

    /// The machine beneath.
    pub const fn machine(&self) -> &Machine {
        self.runners.machine()
    }

    /// The engine that runs a program, by its place among those that run.
    pub fn ran_on(&self, running: usize) -> Option<RanOn> {
        self.runners.ran_on(running)
    }
}

/// Puts the log of a firing on the tape.
#[inline]
fn cue(tape: &Slab, log: &Slab, firing: &Firing<'_>) {
    let tape = tape.values();
    let recorded = firing.log;
    let recorded = recorded.get(..ReplayMaps::ROOM).unwrap_or(recorded);
    tape.write(ReplayMaps::TAPE_AT, recorded);
    tape.write(ReplayMaps::TAPE_AT + recorded.len(), &ReplayMaps::END);
    tape.store(ReplayMaps::STOPPED_AT, 8, 0);
    log.values().store(ReplayMaps::LOG_LEN_AT, 8, 0);
}

/// Makes the task the current one.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the low half is the thread's id"
)]
fn set_task(world: &mut World, pid_tgid: u64) {
    let (tgid, pid) = ((pid_tgid >> 32) as u32, pid_tgid as u32);
    world.task().set_pid(tgid).set_tid(pid);
}
