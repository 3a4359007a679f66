//! Both verdicts on a program, and their differences.

use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bpflab::kernel::{LoadOptions, LoadedMaps, load, possible_cpus, running_config};
use bpflab::object::cases::KernelSays;
use bpflab::program::Program;
use bpflab::spec::ProgType;
use bpflab::verifier::{Decision, Options, verify};

use super::score::{Difference, Ours};

/// The prefix of our reject of a load before the context, which the kernel allows in
/// tracepoint programs.
const NEGATIVE: &str = "invalid bpf_context access off=-";

/// The prefix of a reject whose instruction number counts rewritten instructions in the
/// kernel (`docs/verifier-differences.md`).
const NO_PROGRAM: &str = "verifier bug: No program to jit at insn ";

/// The result of a comparison.
pub enum Compared {
    /// The kernel gives no verdict: missing rights, memory, or a feature.
    NoVerdict,
    /// The program is unjudged.
    Unjudged,
    /// We reject as unsafe what the kernel accepts (`docs/verifier-differences.md`).
    Unsafe,
    /// Both gave a verdict.
    Judged(Box<Both>),
}

/// Two verdicts on one program.
pub struct Both {
    pub ours: Ours,
    pub kernel: KernelSays,
    pub differences: Vec<Difference>,
}

impl Both {
    /// A key that is about the same for differences with one cause: the difference, and
    /// both messages without numbers.
    pub fn kind(&self) -> Option<String> {
        let first = self.differences.first()?;
        let (_, name) = Difference::ALL.iter().find(|(how, _)| how == first)?;
        let (ours, kernel) = (template(&self.ours.line), template(&self.kernel.log_last));
        Some(match first {
            Difference::Processed => {
                let more = self.ours.processed > self.kernel.processed;
                format!("{name}: {}", if more { "more" } else { "less" })
            }
            _ => format!("{name}: ours [{ours}], kernel [{kernel}]"),
        })
    }
}

/// A message without its numbers.
fn template(line: &str) -> String {
    let mut template = String::new();
    for c in line.chars() {
        match c {
            '0'..='9' if template.ends_with('#') => {}
            '0'..='9' => template.push('#'),
            c => template.push(c),
        }
    }
    template
}

/// Options for this machine: its CPUs, its kernel's configuration and lockdown state.
pub fn options() -> Options {
    Options::default()
        .with_cpus(NonZeroU32::new(possible_cpus()))
        .with_kernel(running_config().unwrap_or_default())
}

fn ours(program: &Arc<Program>, options: &Options) -> Ours {
    match catch_unwind(AssertUnwindSafe(|| verify(program, options).verdict)) {
        Ok(verdict) => Ours {
            decision: verdict.decision,
            errno: verdict.errno.map_or(0, |errno| i32::from(errno.0)),
            processed: verdict.processed(),
            line: verdict.message,
            panic: None,
        },
        Err(_) => Ours {
            decision: Decision::Reject,
            errno: 0,
            line: String::new(),
            processed: 0,
            panic: Some("panicked".into()),
        },
    }
}

/// Gets both verdicts. `maps` are the program's.
pub fn compare(program: &Arc<Program>, maps: &LoadedMaps, options: &Options) -> Compared {
    let ours = ours(program, options);
    if ours.decision == Decision::Unjudged {
        return Compared::Unjudged;
    }
    if ours.line.starts_with(NEGATIVE) && program.prog_type == ProgType::Tracepoint {
        return Compared::Unsafe;
    }
    let Ok(loaded) = load(program, maps, &LoadOptions::default()) else {
        return Compared::NoVerdict;
    };
    let verdict = &loaded.verdict;
    let mut ours = ours;
    if [&ours.line, &verdict.message]
        .iter()
        .all(|line| line.starts_with(NO_PROGRAM))
    {
        ours.line.clone_from(&verdict.message);
    }
    let mut kernel = KernelSays::default();
    kernel.verdict = verdict.decision.word().into();
    kernel.errno = verdict.errno.map_or(0, |errno| i32::from(errno.0));
    kernel.log_last.clone_from(&verdict.message);
    kernel.processed = verdict.processed();
    let differences = Difference::between(&ours, &kernel);
    Compared::Judged(Box::new(Both {
        ours,
        kernel,
        differences,
    }))
}
