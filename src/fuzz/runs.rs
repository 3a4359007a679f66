//! The oracles that run a program in the checked engine: *state*, *safety* and *memory*.

use super::candidate::Candidate;
use super::inputs::Inputs;
use super::oracle::Oracle;
use super::problem::Problem;
use crate::harness::{self, Error, Judged, OracleReport, Vm};
use crate::verifier::oracle::Trace;
use crate::vm::events::Event;
use crate::vm::{FaultKind, HelperProblem, ProgramHandle, World};

/// The maximum number of checked instructions of a run.
const STEPS: u64 = 20_000;
/// The maximum number of instructions of a run.
const BUDGET: u64 = 200_000;

/// CPUs of machines, if no kernel is asked: its number of CPUs is that of the machines, too.
pub(super) const CPUS: u32 = 4;

/// The fault of a run that the verifier should have prevented.
#[must_use]
pub fn fault(error: &Error) -> Option<String> {
    let Error::Fault(fault) = error else {
        return None;
    };
    match &fault.kind {
        FaultKind::Access(_) | FaultKind::OutOfProgram(_) | FaultKind::Decode(_) => {
            Some(fault.to_string())
        }
        FaultKind::Helper {
            problem: HelperProblem::Callback(_),
            ..
        } => Some(fault.to_string()),
        _ => None,
    }
}

/// What runs need of a candidate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prepared<'a> {
    /// The candidate.
    pub candidate: &'a Candidate,
    /// Its [`programs`](Candidate::programs), whatever their verdicts.
    pub judged: &'a [Judged],
    /// The CPUs of its machine. The runs are on one of them, which depends on the seed.
    pub cpus: u32,
}

impl Prepared<'_> {
    /// Whether all its programs are accepted.
    pub(super) fn are_accepted(&self) -> bool {
        let mut judged = self.judged.iter();
        judged.all(|known| known.verification.verdict.is_accepted())
    }

    /// A machine with the programs. An extension is attached.
    pub(super) fn machine(&self) -> Result<(Vm, ProgramHandle), Error> {
        let mut world = World::with_cpus(self.cpus);
        world.set_cpu(self.candidate.cpu_of(self.cpus));
        let mut vm = Vm::with_world(world);
        vm.set_budget(BUDGET);
        let handles = vm.load_judged(&self.candidate.program.maps, self.judged.to_vec())?;
        let handle = handles.first().copied().unwrap_or(ProgramHandle(0));
        if self.candidate.target().is_some()
            && let Some(extension) = handles.last()
        {
            vm.attach_loaded(*extension)?;
        }
        Ok((vm, handle))
    }

    /// The input of a run: the candidate's own, then random ones.
    pub(super) fn event(&self, vm: &mut Vm, inputs: &mut Inputs, number: u32) -> Event {
        if number == 0 && !self.candidate.takes_objects() {
            return self.candidate.event();
        }
        inputs.fill_maps(vm);
        inputs.event_of(vm, self.candidate)
    }
}

/// What the runs of a program showed.
#[derive(Debug, Default)]
pub(super) struct Ran {
    /// Runs.
    pub runs: u64,
    /// Instructions whose registers and stack were in an explored state.
    pub held: u64,
    /// The first problem.
    pub problem: Option<Problem>,
}

/// Runs an accepted program on `count` inputs. With a trace, each step is checked.
pub(super) fn run(
    prepared: &Prepared<'_>,
    trace: Option<&Trace>,
    oracles: Oracle,
    count: u32,
) -> Ran {
    let mut ran = Ran::default();
    let Ok((mut vm, handle)) = prepared.machine() else {
        return ran;
    };
    // A rejected program that a tail call leads to may fault.
    let is_safe = oracles.contains(Oracle::SAFETY) && prepared.are_accepted();
    let mut inputs = Inputs::new(prepared.candidate.seed);
    for number in 0..count {
        let event = prepared.event(&mut vm, &mut inputs, number);
        let (outcome, violation) = match trace {
            Some(trace) => {
                let oracle = harness::Oracle::new(trace).with_limit(STEPS);
                let OracleReport {
                    outcome,
                    violation,
                    held,
                    ..
                } = oracle.run(&mut vm, handle, &event);
                ran.held += held;
                (outcome, violation)
            }
            None => (vm.run(handle, &event), None),
        };
        ran.runs += 1;
        if let Some(violation) = violation {
            let what = violation.what.split(" is ").next().unwrap_or_default();
            let kind = match violation.states {
                0 => "no explored path",
                _ => what,
            };
            ran.problem = Some(Problem::new(
                Oracle::STATE,
                kind,
                format!("explored: {}", violation.state.trim()),
                format!("run: {violation}"),
            ));
            return ran;
        }
        let Err(error) = outcome else { continue };
        if is_safe && let Some(fault) = fault(&error) {
            // Without the program's name, and where it is.
            let what = fault.lines().next().unwrap_or_default();
            let what = what.split_once(": ").map_or(what, |(_, what)| what);
            let kind = format!("accepted, but faults: {what}");
            ran.problem = Some(Problem::new(Oracle::SAFETY, &kind, "accepted", fault));
            return ran;
        }
        // A run that its budget ended has not released what it reserved.
        break;
    }
    ran
}

/// Runs an accepted program on `count` inputs, and looks for uninitialised bytes that leave it.
pub(super) fn memory(prepared: &Prepared<'_>, count: u32) -> Ran {
    let mut ran = Ran::default();
    let Ok((mut vm, handle)) = prepared.machine() else {
        return ran;
    };
    vm.find_uninit(true);
    let mut inputs = Inputs::new(prepared.candidate.seed);
    for number in 0..count {
        let event = prepared.event(&mut vm, &mut inputs, number);
        ran.runs += 1;
        // A run that its budget ended has not released what it reserved.
        let Ok(outcome) = vm.run(handle, &event) else {
            break;
        };
        if let Some(leak) = outcome.leaks.first() {
            let kind = format!("uninitialised bytes leave in {}", leak.target());
            let text = leak.to_string();
            ran.problem = Some(Problem::new(Oracle::MEMORY, &kind, "accepted", text));
            break;
        }
    }
    ran
}

/// Whether a rejected program runs on `count` inputs without a fault. `None` if it can't run.
pub(super) fn never_faults(prepared: &Prepared<'_>, count: u32) -> Option<bool> {
    let (mut vm, handle) = prepared.machine().ok()?;
    let mut inputs = Inputs::new(prepared.candidate.seed);
    for number in 0..count {
        let event = prepared.event(&mut vm, &mut inputs, number);
        if vm.run(handle, &event).is_err() {
            return Some(false);
        }
    }
    Some(true)
}
