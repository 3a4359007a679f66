//! Runs an object's programs on a recording of bare events. No program ran when they were
//! recorded, so there is nothing to compare with.

use rustc_hash::FxHashMap;

use super::by_time::{ByTime, OwnedSample};
use super::error::ReplayError;
use super::missing::Missing;
use super::replay_vm::engine_why;
use super::source::RecordingSource;
use super::verdict::{NotCompared, ProgramReport, Report, Verdict};
use crate::compare::recording::{Header, Part, RecordedEvent, Sample};
use crate::harness::{EngineKind, Runners, Vm};
use crate::object::Object;
use crate::spec::ProgType;
use crate::vm::events::{Event, Layout};
use crate::vm::maps::Kind;
use crate::vm::{ProgramHandle, World};

/// The result of running programs on bare events.
#[derive(Debug)]
#[non_exhaustive]
pub struct Bare {
    /// The firings of each program; each verdict is [`NotCompared::Events`].
    pub report: Report,
    /// The machine, with what the maps hold now.
    pub vm: Vm,
    /// The recorded events that no program attaches to, `group/name`, and how many samples
    /// each has.
    pub unwanted: Vec<(String, u64)>,
}

/// A program and the number of the event that its section names.
struct Attached {
    event: u32,
    program: ProgramHandle,
    firings: u64,
}

/// Runs the programs of an object on the events of a recording.
pub(super) fn run(
    object: &Object,
    source: &RecordingSource,
    header: &Header,
    engine: EngineKind,
) -> Result<Bare, ReplayError> {
    let mut vm = Vm::with_world(World::with_cpus(header.possible_cpus.max(1)));
    vm.set_engine(engine).set_counting(false);
    // Rejected and unjudged programs run, too: the report names each engine and the reason.
    vm.load_unverified(object.clone())?;
    let mut attached = Vec::new();
    let mut prepared = Vec::new();
    for event in &header.events {
        let name = format!("{}/{}", event.group, event.name);
        for program in vm.handles() {
            let Some(known) = vm.program(program) else {
                continue;
            };
            let is_for = known.attach_target.as_deref() == Some(&name);
            if known.prog_type == ProgType::Tracepoint && is_for {
                prepared.push((program, event_of(&vm, event, &name)?));
                attached.push(Attached {
                    event: event.number,
                    program,
                    firings: 0,
                });
            }
        }
    }
    let mut missing = Missing::default();
    let mut unwanted = FxHashMap::default();
    let mut runners = vm.runners(&prepared)?;
    let mut recording = source.open()?;
    let mut order = ByTime::default();
    let mut fire = |owned: OwnedSample| {
        let sample = owned.sample();
        if !fire(&mut runners, &mut attached, &sample)? {
            *unwanted.entry(sample.event).or_insert(0u64) += 1;
        }
        Ok::<_, ReplayError>(())
    };
    loop {
        match recording.next_part() {
            Ok(Some(Part::Samples(samples))) => {
                for sample in samples {
                    order.add(&sample);
                    while let Some(owned) = order.next() {
                        fire(owned)?;
                    }
                }
            }
            Ok(Some(Part::Losses(losses))) => losses.for_each(|loss| missing.loss(&loss)),
            Ok(Some(Part::CutOff(at))) => missing.cut_off(&at),
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => {
                missing.add(format!("the recording is {error}"));
                break;
            }
        }
    }
    while let Some(owned) = order.last() {
        fire(owned)?;
    }
    drop(runners);
    let firings = |program: ProgramHandle| {
        let own = attached.iter().filter(|one| one.program == program);
        own.map(|one| one.firings).sum()
    };
    let programs = vm.handles().filter_map(|handle| {
        let ran_on = vm.engine_of(handle).ok()?;
        Some(ProgramReport {
            name: vm.program(handle)?.name.clone(),
            engine: Some(ran_on.engine),
            fallback: ran_on.fallback,
            engine_why: engine_why(&vm, handle, ran_on),
            firings: firings(handle),
            led_to: 0,
            raced: 0,
            missed: 0,
            verdict: Verdict::NotCompared(NotCompared::Events),
        })
    });
    let named = header.events.iter().filter_map(|event| {
        let samples = unwanted.get(&event.number)?;
        Some((format!("{}/{}", event.group, event.name), *samples))
    });
    Ok(Bare {
        report: Report {
            engine,
            programs: programs.collect(),
            maps: Vec::new(),
            outputs: Vec::new(),
            findings: Vec::new(),
            missing: missing.lines(header),
        },
        unwanted: named.collect(),
        vm,
    })
}

/// An event with the layout of a recorded one, all fields zero.
fn event_of(vm: &Vm, event: &RecordedEvent, name: &str) -> Result<Event, ReplayError> {
    if event.format.is_empty() {
        return Ok(vm.tracepoint(name)?);
    }
    let layout = Layout::from_format(&event.group, &event.format);
    let layout = layout.map_err(crate::harness::Error::from)?;
    Ok(Event::tracepoint(layout))
}

/// Runs the programs of an event on one sample; false if it has none.
fn fire(
    runners: &mut Runners<'_>,
    attached: &mut [Attached],
    sample: &Sample<'_>,
) -> Result<bool, ReplayError> {
    let mut any = false;
    let world = runners.world();
    world.set_cpu(sample.cpu).clock().set_ns(sample.time);
    world.task().set_pid(sample.pid).set_tid(sample.tid);
    for (number, one) in attached.iter_mut().enumerate() {
        if one.event != sample.event {
            continue;
        }
        any = true;
        runners.set_context(number, sample.raw)?;
        runners.run(number)?;
        one.firings += 1;
    }
    // Outputs are not compared.
    runners.drain_outputs(|_| {});
    for (_, map) in runners.machine().maps() {
        if let Kind::RingBuf(ring) = map.kind() {
            ring.skip();
        }
    }
    Ok(any)
}
