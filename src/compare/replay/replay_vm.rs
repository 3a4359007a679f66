//! A machine with the replay forms of an object's programs, and running firings on it.

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

/// A machine with the replay forms of a recording's programs, and the object's maps.
pub(super) struct ReplayVm {
    pub vm: Vm,
    /// In the order of [`Programs::running`].
    pub programs: Vec<(ProgramHandle, Event)>,
    /// The recorded log that the replay forms read.
    recorded: Arc<Slab>,
    /// The log that they write.
    log: Arc<Slab>,
    /// The ring buffers of the object.
    rings: Vec<MapHandle>,
}

impl ReplayVm {
    pub fn new(programs: &Programs, cpus: u32, engine: EngineKind) -> Result<Self, ReplayError> {
        let mut vm = Vm::with_world(World::with_cpus(cpus));
        vm.set_engine(engine).set_counting(false);
        let opening = programs.running().map(|(part, form)| (part, &form.opening));
        let forms: Vec<_> = opening.chain(programs.following()).collect();
        let loaded = forms.iter().map(|(_, form)| form.program.clone()).collect();
        let handles = vm.load_forms(&programs.maps.maps, loaded)?;
        for (handle, (part, form)) in handles.iter().zip(forms) {
            vm.measure_form(*handle, &part.original, |pc| form.place(pc))?;
        }
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
            recorded: slab(programs.maps.recorded_log),
            log: slab(programs.maps.log),
            rings: rings.map(|map| map.handle()).collect(),
            programs: handles.into_iter().zip(contexts).collect(),
            vm,
        })
    }

    /// Prepares the programs for running firings.
    pub fn runner(&mut self) -> Result<FiringRunner<'_>, ReplayError> {
        Ok(FiringRunner {
            recorded: &self.recorded,
            log: &self.log,
            rings: &self.rings,
            ring_records: Vec::new(),
            runners: self.vm.runners(&self.programs)?,
            cpu: 0,
            pid_tgid: None,
            replayed_log: Vec::new(),
        })
    }

    /// Why a program, by its index in [`programs`](Self::programs), runs on another engine than
    /// was asked for: the verifier's message, if that is the reason.
    pub fn engine_why(&self, running: usize, ran_on: RanOn) -> Option<String> {
        let (handle, _) = self.programs.get(running)?;
        engine_why(&self.vm, *handle, ran_on)
    }

    /// Bytes of a program's context, by its index in [`programs`](Self::programs).
    pub fn context_len(&self, running: usize) -> usize {
        let event = self.programs.get(running).map(|(_, event)| event);
        event.map_or(0, |event| event.record().len())
    }

    /// Sets the recorded log, CPU, time and task of a firing, for a run without a
    /// [`FiringRunner`].
    pub fn set_firing(&mut self, firing: &Firing<'_>) {
        write_log(&self.recorded, &self.log, firing);
        let world = self.vm.world();
        world.set_cpu(firing.cpu).clock().set_ns(firing.time);
        set_task(world, firing.pid_tgid);
    }
}

/// Why a program runs on another engine than was asked for; none if it does not.
pub(super) fn engine_why(vm: &Vm, program: ProgramHandle, ran_on: RanOn) -> Option<String> {
    let why = ran_on.fallback?;
    let known = vm
        .verification(program)
        .ok()
        .filter(|_| why.is_unverified());
    Some(known.map_or_else(|| why.to_string(), |known| known.verdict.message.clone()))
}

/// Runs firings.
pub(super) struct FiringRunner<'d> {
    runners: Runners<'d>,
    recorded: &'d Slab,
    log: &'d Slab,
    rings: &'d [MapHandle],
    /// Ring buffer records of a firing, and whether the kernel's run sent each, too.
    ring_records: Vec<(MapHandle, bool, Vec<u8>)>,
    cpu: u32,
    pid_tgid: Option<u64>,
    /// The last log that differed from the recorded one.
    replayed_log: Vec<u8>,
}

/// The result of replaying a firing.
#[derive(Debug)]
pub(super) enum FiringResult<'p> {
    /// Log and return value equal the kernel's.
    Same,
    /// Log or return value differ.
    Differs {
        /// The replay's log.
        log: &'p [u8],
        /// The replay's return value.
        returned: u64,
    },
    /// The replay faulted.
    Faulted(Box<Fault>),
}

impl FiringRunner<'_> {
    /// Runs a firing on the program with this index among those that run.
    #[inline]
    pub fn run(
        &mut self,
        running: usize,
        firing: &Firing<'_>,
    ) -> Result<FiringResult<'_>, ReplayError> {
        self.set_world(firing);
        self.runners.set_context(running, firing.context)?;
        write_log(self.recorded, self.log, firing);
        let finished = match self.runners.run(running) {
            Ok(finished) => finished,
            Err(crate::harness::Error::Fault(fault)) => return Ok(FiringResult::Faulted(fault)),
            Err(error) => return Err(error.into()),
        };
        let log = self.log.values();
        let len = log.load(ReplayMaps::LOG_LEN_AT, 8).unwrap_or_default();
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let stopped = self.recorded.values().load(ReplayMaps::STOPPED_AT, 8);
        if len == firing.log.len()
            && stopped == Some(0)
            && finished.r0 == firing.returned
            && log.equals(ReplayMaps::LOG_AT, firing.log) == Some(true)
        {
            return Ok(FiringResult::Same);
        }
        self.replayed_log.clear();
        let len = len.min(ReplayMaps::ROOM);
        log.append(ReplayMaps::LOG_AT, len, &mut self.replayed_log);
        Ok(FiringResult::Differs {
            log: &self.replayed_log,
            returned: finished.r0,
        })
    }

    /// Sets time, CPU and current task to those of a firing.
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

    /// Moves the outputs of a firing to `to`, without those whose `sent` is false; outputs
    /// beyond the end of `sent` count as sent.
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

    /// Moves the records of a ring buffer to `to`. The buffer has them in the order in which
    /// they were reserved, `ring_records` in the order in which they were submitted.
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

    /// The machine.
    pub const fn machine(&self) -> &Machine {
        self.runners.machine()
    }

    /// The engine that ran a program, by its index among those that run.
    pub fn ran_on(&self, running: usize) -> Option<RanOn> {
        self.runners.ran_on(running)
    }
}

/// Writes the recorded log of a firing into `to`, and empties `log`.
#[inline]
fn write_log(to: &Slab, log: &Slab, firing: &Firing<'_>) {
    let to = to.values();
    let recorded = firing.log;
    let recorded = recorded.get(..ReplayMaps::ROOM).unwrap_or(recorded);
    to.write(ReplayMaps::RECORDED_AT, recorded);
    to.write(ReplayMaps::RECORDED_AT + recorded.len(), &ReplayMaps::END);
    to.store(ReplayMaps::STOPPED_AT, 8, 0);
    log.values().store(ReplayMaps::LOG_LEN_AT, 8, 0);
}

/// Sets the ids of the current task.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the low half is the thread's id"
)]
fn set_task(world: &mut World, pid_tgid: u64) {
    let (tgid, pid) = ((pid_tgid >> 32) as u32, pid_tgid as u32);
    world.task().set_pid(tgid).set_tid(pid);
}
