//! Records a batch in the kernel: verifies the programs, loads their recorded forms, attaches,
//! fires and reads them out.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::batch::{Batch, Member, TRACEPOINT};
use super::error::GeneratedError;
use super::fire::Calls;
use super::tally::{Detail, Finding, FindingKind, Tally};
use crate::compare::live::{Drain, Outputs, Snapshot};
use crate::compare::recording::{
    Cause, CpuTotal, Ended, Header, How, Loss, RecordedMap, RecordedProgram, Summary, When, Writer,
};
use crate::instrument::{Candidate, Plan, RecordMaps, RecordOptions, RecordState, Relays};
use crate::isa::assemble_with;
use crate::kernel::attach::{AttachPoint, Attachment, attach};
use crate::kernel::{
    self, LoadOptions, LoadedMaps, LoadedProgram, NoVerdictKind, TestRun, load, possible_cpus,
};
use crate::program::Program;
use crate::spec::{ProgType, UpdateFlags};
use crate::verifier::{self, Decision, verify};

/// Bytes of the ring for firings. A log has some hundred bytes, and the ring is drained after
/// each call.
const RING: u32 = 1 << 20;
/// Bytes of the context of `raw_syscalls:sys_enter`: eight hidden ones, the number of the call,
/// six arguments.
const CONTEXT: u32 = 64;

/// Records batches.
#[derive(Debug)]
pub(super) struct Recorder {
    /// This process's id, as helpers return it.
    process: u32,
    /// System calls for each batch.
    calls: usize,
}

/// What was recorded of a batch.
#[derive(Debug)]
pub(super) struct Recorded {
    /// The recorded members by index in the batch, each with its recorded programs, itself
    /// first; all programs in the order of their numbers in the recording.
    pub members: Vec<(usize, Vec<Arc<Program>>)>,
    /// The recording.
    pub bytes: Vec<u8>,
}

/// Returns the id of the calling process as helpers see it; in a container that can differ from
/// the one of system calls.
const WHO: &str = "call bpf_get_current_pid_tgid
    r0 >>= 32
    exit";

/// A member whose recorded forms are loaded.
struct Ready {
    member: usize,
    point: AttachPoint,
    /// Its own, then those of the programs that it jumps to.
    loaded: Vec<Loaded>,
}

/// A program whose recorded form is loaded.
struct Loaded {
    program: Arc<Program>,
    form: LoadedProgram,
}

impl Recorder {
    /// Prepares to record.
    ///
    /// # Errors
    /// The kernel can't load and run a program.
    pub(super) fn new(calls: usize) -> Result<Self, GeneratedError> {
        let mut program = Program::new("who", ProgType::RawTracepoint, Vec::new());
        program.insns = assemble_with(WHO, &program)?.slots;
        let maps = LoadedMaps::create(&[], None)?;
        let process = accepted(&program, &maps)?
            .test_run(&TestRun::default())?
            .retval;
        Ok(Self { process, calls })
    }

    /// Records a batch and counts programs that can't be recorded. None if no program can.
    pub(super) fn record(
        &self,
        batch: &Batch,
        tally: &mut Tally,
    ) -> Result<Option<Recorded>, GeneratedError> {
        let added = RecordMaps::add(&batch.maps, RING);
        let btf = batch
            .members
            .first()
            .and_then(|first| first.program.btf.as_ref());
        let start = Instant::now();
        let maps = Arc::new(LoadedMaps::create(&added.maps, btf)?);
        tally.times.maps += start.elapsed();

        let mut ready: Vec<Ready> = Vec::new();
        let mut number = 0;
        for (index, member) in batch.members.iter().enumerate() {
            let loaded = self.load(member, number, &added, &maps, tally)?;
            number += loaded.len();
            if !loaded.is_empty() {
                ready.push(Ready {
                    member: index,
                    point: AttachPoint::of(&member.program)?,
                    loaded,
                });
            }
        }
        if ready.is_empty() {
            return Ok(None);
        }
        let start = Instant::now();
        let attached = ready.iter().filter_map(|one| {
            let opening = one.loaded.first()?;
            Some(attach(&opening.form, &one.point))
        });
        let attached = attached.collect::<Result<Vec<_>, _>>()?;
        tally.times.attaching += start.elapsed();

        let start = Instant::now();
        let members = ready.iter().map(|one| {
            let programs = one.loaded.iter().map(|loaded| loaded.program.clone());
            (one.member, programs.collect())
        });
        let members: Vec<(usize, Vec<Arc<Program>>)> = members.collect();
        let programs = || members.iter().flat_map(|(_, programs)| programs);
        let mut writer = Writer::new(Vec::new(), &header(batch, programs()))?;
        Snapshot::read(&maps, &batch.maps).write(&mut writer, When::Before)?;
        let numbered = (0..).zip(programs().map(|program| &**program));
        let mut outputs = Outputs::open(&maps, &added, &batch.maps, numbered, false)?;
        self.fire(batch, &added, &maps, &mut outputs, &mut writer)?;
        Snapshot::read(&maps, &batch.maps).write(&mut writer, When::After)?;
        for loss in outputs.losses()? {
            writer.loss(&loss)?;
        }
        drop(outputs);
        let summary = summary(&added, &maps, &mut writer)?;
        tally.firings += writer.totals().firings;
        let bytes = writer.finish(summary)?;
        tally.times.firing += start.elapsed();

        let start = Instant::now();
        detach(attached);
        drop(ready);
        drop(maps);
        tally.times.detaching += start.elapsed();
        Ok(Some(Recorded { members, bytes }))
    }

    /// Verifies a member and the programs that it jumps to, and loads their recorded forms,
    /// numbered from `number`. Empty if one of them can't be recorded.
    fn load(
        &self,
        member: &Member,
        number: usize,
        added: &RecordMaps,
        maps: &LoadedMaps,
        tally: &mut Tally,
    ) -> Result<Vec<Loaded>, GeneratedError> {
        if !accepted_by_both(member, &member.program, maps, tally)? {
            return Ok(Vec::new());
        }
        let programs = || [&member.program].into_iter().chain(&member.others);
        let plans: Vec<_> = programs().map(|program| Plan::new(program)).collect();
        let candidates = programs().zip(&plans).map(|(program, plan)| Candidate {
            program,
            plan: plan.as_ref().map_err(|why| why.reason.to_string()),
            context_len: CONTEXT,
        });
        let relays = Relays::new(&candidates.collect::<Vec<_>>());
        let mut loaded: Vec<Loaded> = Vec::new();
        for (place, (program, plan)) in programs().zip(&plans).enumerate() {
            let is_first = place == 0;
            let (relay, plan) = match (relays.get(place), plan) {
                (Ok(relay), Ok(plan)) => (relay, plan),
                (Err(why), plan) if is_first => {
                    let why = match plan {
                        Ok(_) => "its tail calls may lead to a program that can't be recorded",
                        Err(_) => &why,
                    };
                    Tally::count(&mut tally.unrecordable, why);
                    return Ok(Vec::new());
                }
                // No program jumps to it.
                _ => continue,
            };
            if !is_first {
                if !relay.follows {
                    continue;
                }
                if !accepted_by_both(member, program, maps, tally)? {
                    let why = "a program that it jumps to is rejected";
                    Tally::count(&mut tally.unrecordable, why);
                    return Ok(Vec::new());
                }
            }
            let number = u32::try_from(number + loaded.len()).unwrap_or(u32::MAX);
            let options = RecordOptions {
                number,
                context_len: CONTEXT,
                all: false,
            };
            let form = match is_first {
                true => plan.record_opening(added, &options, &relay),
                false => plan.record_following(added, &options, &relay),
            };
            let form = match form {
                Ok(form) => form,
                Err(unrecordable) => {
                    Tally::count(&mut tally.unrecordable, unrecordable.reason.to_string());
                    return Ok(Vec::new());
                }
            };
            let start = Instant::now();
            let judged = judged(&form, maps)?;
            tally.times.loading += start.elapsed();
            let Some(judged) = judged else {
                let reason = "the kernel gives no verdict on its recorded form: ENOMEM";
                Tally::count(&mut tally.unrecordable, reason);
                return Ok(Vec::new());
            };
            let Some(form) = judged.program else {
                let text = judged.verdict.message;
                find(tally, member, FindingKind::RecordedFormRefused, text);
                return Ok(Vec::new());
            };
            if !is_first {
                maps.set_program(&added.maps, &form)?;
            }
            let program = program.clone();
            loaded.push(Loaded { program, form });
        }
        tally.recorded += 1;
        Ok(loaded)
    }

    /// Fires the attached programs and writes their firings and outputs.
    fn fire(
        &self,
        batch: &Batch,
        added: &RecordMaps,
        maps: &LoadedMaps,
        outputs: &mut Outputs,
        writer: &mut Writer<Vec<u8>>,
    ) -> Result<(), GeneratedError> {
        let seed = batch.members.first().map_or(0, |first| first.recipe.seed);
        let mut calls = Calls::new(seed, self.calls);
        let targets = maps.map(added.targets).ok_or(GeneratedError::NoMap)?;
        let key = self.process.to_ne_bytes();
        let mut value = vec![0; targets.value_size()];
        if let Some(first) = value.first_mut() {
            *first = 1;
        }
        targets.update(&key, &value, UpdateFlags::empty())?;
        for _ in 0..self.calls {
            calls.make();
            outputs.drain(writer)?;
        }
        // This call is the last one that is recorded.
        targets.delete(&key)?;
        outputs.drain(writer)?;
        Ok(())
    }
}

/// Detaches all in parallel: each detaching waits until no CPU can be in its program.
fn detach(attached: Vec<Attachment>) {
    thread::scope(|scope| {
        for attachment in attached {
            scope.spawn(move || drop(attachment));
        }
    });
}

/// The header of a batch's recording.
fn header<'p>(batch: &Batch, programs: impl Iterator<Item = &'p Arc<Program>>) -> Header {
    let programs = (0..).zip(programs).map(|(number, program)| {
        RecordedProgram::new(number, program, TRACEPOINT, CONTEXT, How::Instrumented)
    });
    let maps = (0..).zip(&*batch.maps);
    Header {
        bpflab: env!("CARGO_PKG_VERSION").to_owned(),
        possible_cpus: possible_cpus(),
        programs: programs.collect(),
        maps: maps
            .map(|(number, def)| RecordedMap::new(number, def))
            .collect(),
        ..Header::default()
    }
}

/// The kernel's counts; writes its losses.
fn summary(
    added: &RecordMaps,
    maps: &LoadedMaps,
    writer: &mut Writer<Vec<u8>>,
) -> Result<Summary, GeneratedError> {
    let states = maps
        .lookup(added.state, &0u32.to_ne_bytes())?
        .unwrap_or_default();
    let len = states.len() / (possible_cpus() as usize).max(1);
    let mut cpus = Vec::new();
    for (cpu, state) in (0..).zip(states.chunks(len.max(1))) {
        let state = RecordState::parse(state).map_err(|_| GeneratedError::NoMap)?;
        for (cause, count) in [
            (Cause::RingFull, state.lost),
            (Cause::TooDeep, state.skipped),
        ] {
            writer.loss(&Loss {
                cause,
                cpu: Some(cpu),
                of: None,
                count,
            })?;
        }
        cpus.push(CpuTotal {
            cpu,
            sequence: state.begun,
        });
    }
    Ok(Summary {
        ended: Ended::Exited { code: 0 },
        cpus,
        ..Summary::default()
    })
}

/// Whether the kernel and bpflab both accept a program of a member; adds a finding if they
/// disagree.
fn accepted_by_both(
    member: &Member,
    program: &Arc<Program>,
    maps: &LoadedMaps,
    tally: &mut Tally,
) -> Result<bool, GeneratedError> {
    let start = Instant::now();
    let ours = verify(program, &verifier::Options::default()).verdict;
    tally.times.making += start.elapsed();
    let start = Instant::now();
    let theirs = judged(program, maps)?;
    tally.times.loading += start.elapsed();
    let Some(theirs) = theirs else {
        tally.unjudged += 1;
        return Ok(false);
    };
    let theirs = theirs.verdict;
    match (ours.decision, theirs.is_accepted()) {
        (Decision::Unjudged, _) => tally.unjudged += 1,
        (Decision::Accept, true) => return Ok(true),
        (Decision::Reject, false) => Tally::count(&mut tally.refused, ours.message),
        (Decision::Accept, false) => find(tally, member, FindingKind::OnlyWeAccept, theirs.message),
        (Decision::Reject, true) => {
            find(tally, member, FindingKind::OnlyKernelAccepts, ours.message);
        }
    }
    Ok(false)
}

/// Adds a finding about a verdict on a member.
fn find(tally: &mut Tally, member: &Member, kind: FindingKind, text: String) {
    tally.findings.push(Finding {
        recipe: member.recipe,
        shrunk: None,
        kind,
        detail: Detail::Refused(text),
    });
}

/// The kernel's verdict. None if it fails with ENOMEM each time, which is a limit of the
/// verifier and not a lack of memory.
fn judged(program: &Program, maps: &LoadedMaps) -> Result<Option<kernel::Loaded>, GeneratedError> {
    let mut attempts = 3;
    loop {
        match load(program, maps, &LoadOptions::default()) {
            Ok(loaded) => return Ok(Some(loaded)),
            Err(none) if none.kind != NoVerdictKind::Memory => return Err(none.into()),
            Err(_) if attempts == 0 => return Ok(None),
            Err(_) => {
                attempts -= 1;
                thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

/// Loads one of bpflab's own programs.
fn accepted(program: &Program, maps: &LoadedMaps) -> Result<LoadedProgram, GeneratedError> {
    let loaded = load(program, maps, &LoadOptions::default())?;
    let message = loaded.verdict.message;
    loaded.program.ok_or(GeneratedError::Own(message))
}
