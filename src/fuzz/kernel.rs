//! The running kernel's verdicts.

use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::verdicts::{Both, Difference, Ours};
use crate::kernel::{
    LoadOptions, LoadedMaps, Loader, NoVerdict, load, possible_cpus, running_config,
};
use crate::object::cases::KernelSays;
use crate::program::{Initial, Program};
use crate::spec::ProgType;
use crate::verifier::{Decision, LogLevel, Options, verify};

/// The prefix of our reject of a load before the context, which the kernel allows in
/// tracepoint programs.
const NEGATIVE: &str = "invalid bpf_context access off=-";

/// A part of our reject of an extension that declares more memory for an argument than callers
/// pass, or memory that is never null, which the kernel allows.
const RELIES: &str = "() relies on more than callers of ";

/// The prefix of a reject whose instruction number counts rewritten instructions in the
/// kernel (`docs/verifier-differences.md`).
const NO_PROGRAM: &str = "verifier bug: No program to jit at insn ";

/// What the kernel's verifier prints where a scalar's bounds exclude each other
/// (`reg_bounds_sanity_check`, `kernel/bpf/verifier.c`).
const CONTRADICTION: &str = "verifier bug: REG INVARIANTS VIOLATION";

/// The result of a comparison.
#[derive(Debug)]
pub enum Compared {
    /// The kernel gives no verdict: missing rights, memory, or a feature.
    NoVerdict,
    /// The program is unjudged.
    Unjudged,
    /// We reject as unsafe what the kernel accepts (`docs/verifier-differences.md`).
    Unsafe,
    /// The kernel's verifier contradicts itself, and says so (docs/findings.md).
    Contradiction,
    /// Both gave a verdict.
    Judged(Box<Both>),
}

/// Options for this machine: its CPUs, its kernel's configuration and lockdown state.
#[must_use]
pub fn options() -> Options {
    Options::default()
        .with_cpus(NonZeroU32::new(possible_cpus()))
        .with_kernel(running_config().unwrap_or_default())
}

/// The program's maps, as far as a verdict needs them. The elements of maps of maps are left out:
/// for each of them the kernel waits until every running program has ended
/// (`maybe_wait_bpf_programs`, `kernel/bpf/syscall.c`), which takes ten milliseconds.
///
/// # Errors
/// As of [`LoadedMaps::create_as`].
pub(super) fn maps_for_verdict(
    program: &Program,
    loader: &Loader,
) -> Result<LoadedMaps, NoVerdict> {
    let mut defs = program.maps.to_vec();
    for def in &mut defs {
        let is_map = |entry: &Initial| matches!(entry, Initial::Map { .. });
        def.initial.retain(|entry| !is_map(entry));
    }
    LoadedMaps::create_as(&defs, program.btf.as_ref(), loader)
}

fn ours(program: &Arc<Program>, options: &Options) -> Ours {
    match catch_unwind(AssertUnwindSafe(|| verify(program, options).verdict)) {
        Ok(verdict) => Ours::of(&verdict),
        Err(_) => Ours::panicked("panicked"),
    }
}

/// Gets both verdicts. `maps` are the program's.
#[must_use]
pub fn compare(program: &Arc<Program>, maps: &LoadedMaps, options: &Options) -> Compared {
    let load = LoadOptions::default();
    compare_with(&ours(program, options), program, maps, &load)
}

/// Compares our verdict with the kernel's.
pub(super) fn compare_with(
    ours: &Ours,
    program: &Program,
    maps: &LoadedMaps,
    options: &LoadOptions,
) -> Compared {
    if ours.decision == Decision::Unjudged {
        return Compared::Unjudged;
    }
    if ours.line.starts_with(NEGATIVE) && program.prog_type == ProgType::Tracepoint {
        return Compared::Unsafe;
    }
    if ours.line.contains(RELIES) && program.prog_type == ProgType::Ext {
        return Compared::Unsafe;
    }
    let Ok(loaded) = load(program, maps, options) else {
        return Compared::NoVerdict;
    };
    let verdict = &loaded.verdict;
    if verdict.log.contains(CONTRADICTION) {
        return Compared::Contradiction;
    }
    let mut ours = ours.clone();
    let lines = [&ours.line, &verdict.message];
    if lines.iter().all(|line| line.starts_with(NO_PROGRAM)) {
        ours.line.clone_from(&verdict.message);
    }
    let kernel = KernelSays {
        verdict: verdict.decision.word().into(),
        errno: verdict.errno.map_or(0, |errno| i32::from(errno.0)),
        log_last: verdict.message.clone(),
        processed: verdict.processed(),
        ..KernelSays::default()
    };
    let differences = Difference::between(&ours, &kernel);
    // What the kernel rejects and we accept stays a difference.
    let is_false_accept = ours.decision == Decision::Accept && !verdict.is_accepted();
    if !differences.is_empty()
        && !is_false_accept
        && contradicts_itself(&kernel, program, maps, options)
    {
        return Compared::Contradiction;
    }
    Compared::Judged(Box::new(Both {
        ours,
        kernel,
        differences,
    }))
}

/// Whether the kernel's verifier reports itself: by the error line, or somewhere on the way, which
/// only a full log shows.
fn contradicts_itself(
    kernel: &KernelSays,
    program: &Program,
    maps: &LoadedMaps,
    options: &LoadOptions,
) -> bool {
    let full = || {
        let options = options.clone().with_log(LogLevel::ALL);
        load(program, maps, &options).is_ok_and(|it| it.verdict.log.contains(CONTRADICTION))
    };
    kernel.log_last.starts_with("verifier bug: ") || full()
}
