//! The *value* oracle: all engines have the same results.

use std::sync::{Arc, LazyLock};

use super::candidate::Candidate;
use super::inputs::Inputs;
use super::oracle::Oracle;
use super::problem::Problem;
use crate::compare::{Answer, Engine, Ours, Subject, difference};
use crate::harness::{EngineKind, Judged, Vm};
use crate::isa::RawInsn;
use crate::program::Program;
use crate::spec::ProgType;
use crate::vm::events::Event;

/// The most instructions of a run.
const BUDGET: u64 = 100_000;

/// A program that writes to its frame and to that of its function.
static FILLER: LazyLock<Judged> = LazyLock::new(|| {
    let store = |slot: i16| RawInsn::new(0x7a, 10, 0, -8 * slot, 0x5a5a_5a5a);
    let stores = (1..=32).map(store);
    let call = RawInsn::new(0x85, 0, 1, 0, 2);
    let end = [
        RawInsn::new(0xb7, 0, 0, 0, 0),
        RawInsn::new(0x95, 0, 0, 0, 0),
    ];
    let main = stores.clone().chain([call]).chain(end);
    let insns = main.chain(stores).chain(end).collect();
    Judged::new(Arc::new(Program::new("filler", ProgType::Xdp, insns)))
});

/// Leaves bytes on the stack, which the program must not see: engines zero what it reads without
/// having written it.
fn use_stack(vm: &mut Vm) {
    let loaded = vm.load_judged(&[], vec![FILLER.clone()]);
    if let Some(filler) = loaded.ok().and_then(|all| all.first().copied()) {
        // It runs to its end, on any engine.
        let _ = vm.run(filler, &Event::packet([0; 64]));
    }
}

/// Moves to the CPU of a candidate's runs. The kernel's run may be on another one.
fn choose_cpu(vm: &mut Vm, candidate: &Candidate) {
    let world = vm.world();
    let cpus = world.cpus();
    world.set_cpu(candidate.cpu_of(cpus));
}

/// What the engines did with a program.
#[derive(Debug, Default)]
pub(super) struct Values {
    /// Runs on an engine other than the checked one.
    pub runs: u64,
    /// Runs in the kernel.
    pub kernel_runs: u64,
    /// The answer of the checked engine.
    pub checked: Option<Answer>,
    /// The first difference.
    pub problem: Option<Problem>,
}

/// Runs an accepted program on all engines, and in the running kernel if `kernel` says so.
/// `judged` are [`Candidate::programs`].
pub(super) fn compare(candidate: &Candidate, judged: &[Judged], kernel: bool) -> Values {
    let mut values = Values::default();
    let subject = candidate.subject();
    // The verifier relies on pointers to objects, which differ from one machine to another.
    if candidate.takes_objects() {
        let event = |vm: &mut Vm| Inputs::new(candidate.seed).event_of(vm, candidate);
        values.checked = on_all_engines(candidate, &subject, judged, &event, &mut values);
        return values;
    }
    let event = |_: &mut Vm| subject.event.clone();
    let checked = on_all_engines(candidate, &subject, judged, &event, &mut values);
    // A run that was ended early by its budget is not comparable with the kernel's.
    if let Some(checked) = checked.as_ref().filter(|answer| answer.retval.is_some())
        && kernel
        && candidate.defined
        && values.problem.is_none()
    {
        in_the_kernel(candidate, checked, &mut values);
    }
    values.checked = checked;
    values
}

/// Runs a program on all engines, on a stack that was used; returns the checked one's answer.
fn on_all_engines(
    candidate: &Candidate,
    subject: &Subject,
    judged: &[Judged],
    event: &dyn Fn(&mut Vm) -> Event,
    values: &mut Values,
) -> Option<Answer> {
    let event = |vm: &mut Vm| {
        choose_cpu(vm, candidate);
        use_stack(vm);
        event(vm)
    };
    let limited = subject.with_budget(BUDGET);
    let checked = Ours::new(EngineKind::Checked);
    let checked = checked.run_on(&limited, judged.to_vec(), event).ok()?;
    let mut engines = vec![
        Ours::new(EngineKind::Interp).with_loop(),
        Ours::new(EngineKind::Interp),
        Ours::new(EngineKind::Jit),
    ];
    // Machine code that does not count ends by itself only.
    if checked.retval.is_some() {
        engines.push(Ours::new(EngineKind::Jit).without_counts());
    }
    for engine in engines {
        let name = engine.name();
        let subject = match engine.counts {
            true => &limited,
            false => subject,
        };
        match engine.run_on(subject, judged.to_vec(), event) {
            Ok(answer) => {
                values.runs += 1;
                values.problem = differing(&checked, &answer, &name);
            }
            Err(error) => {
                let error = error.to_string();
                values.problem = Some(Problem::new(
                    Oracle::VALUE,
                    &format!("{name} does not run it: {error}"),
                    "runs on the checked engine",
                    error,
                ));
            }
        }
        if values.problem.is_some() {
            break;
        }
    }
    Some(checked)
}

fn differing(checked: &Answer, answer: &Answer, name: &str) -> Option<Problem> {
    let found = difference(checked, answer)?;
    let kind = format!("{name}: {}", found.what);
    Some(Problem::new(
        Oracle::VALUE,
        &kind,
        format!("checked: {}", found.one),
        format!("{name}: {}", found.other),
    ))
}

#[cfg(all(feature = "kernel", target_os = "linux"))]
fn in_the_kernel(candidate: &Candidate, checked: &Answer, values: &mut Values) {
    use crate::compare::Kernel;
    use crate::isa::{CallTarget, Code, Insn};
    use crate::kernel::possible_cpus;
    use crate::spec::helpers::id;

    // The value of another CPU, which a virtual machine does not have.
    let lookup = Insn::Call(CallTarget::Helper(id::map_lookup_percpu_elem));
    let looks_up = |program: &Arc<Program>| {
        let code = Code::new(&program.insns);
        code.insns().any(|(_, insn)| insn == lookup)
    };
    if possible_cpus() == 1 && candidate.programs().any(looks_up) {
        return;
    }
    // Not available, or refused: the verdict oracle compares that.
    let Ok(answer) = Kernel.run(&candidate.subject()) else {
        return;
    };
    values.kernel_runs += 1;
    values.problem = differing(checked, &answer, "kernel");
}

#[cfg(not(all(feature = "kernel", target_os = "linux")))]
fn in_the_kernel(_: &Candidate, _: &Answer, _: &mut Values) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::World;

    /// Every engine runs all of it: 32 stores in each frame, the call, and the two ends.
    #[test]
    fn the_stack_is_used() {
        assert!(FILLER.verification.verdict.is_accepted());
        for kind in [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit] {
            let mut vm = Vm::with_world(World::default());
            vm.set_engine(kind);
            let handles = vm.load_judged(&[], vec![FILLER.clone()]).unwrap();
            let outcome = vm.run(handles[0], &Event::packet([0; 64])).unwrap();
            assert_eq!(outcome.runs[0].insns, Some(2 * 32 + 1 + 4), "{kind}");
        }
    }
}
