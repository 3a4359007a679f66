//! The verifier: what Linux 6.18 would say about a program.
//!
//! It walks a program as the kernel does, with a set of possible values in place of
//! each register's one value. A program that passes has been shown to do no harm on
//! any input; one that doesn't gets the kernel's error line.
//!
//! | room | what it judges |
//! |---|---|
//! | `structure` | what can be seen before the walk: jumps, subprograms, reserved fields, BTF |
//! | `liveness` | which registers and stack slots are read later |
//! | `explore` | the walk: the story of one instruction, forks, the end of a path |
//! | `tnum`, `scalar` | numbers: known bits, bounds, arithmetic, comparisons |
//! | `reg`, `stack`, `state` | what is known of registers, stack slots, frames, references |
//! | `alu`, `branch`, `packet` | arithmetic on pointers, what a branch teaches |
//! | `memory` | loads and stores, by kind of pointer |
//! | `call` | helpers, subprograms, callbacks, return values |
//! | `precision`, `prune` | which numbers matter, and which paths are covered already |
//! | `log`, `reject`, `verdict` | the kernel's words |
//! | `facts` | what is proved, for the engines |
//!
//! Two laws hold for each operation. *Soundness*: a result contains every number that
//! the instruction could compute from members of its operands. *Parity*: it is exactly
//! as wide as the kernel's, for a program that relies on more than the kernel knows
//! would be rejected there, and the log prints it.

mod alu;
mod attach_target;
mod branch;
mod call;
mod context;
mod context_argument;
mod env;
mod explore;
mod facts;
mod liveness;
mod log;
mod maps;
mod memory;
mod packet;
mod precision;
mod prune;
mod reg;
mod reg_check;
mod reject;
pub mod scalar;
mod stack;
mod state;
mod structure;
pub mod tnum;
mod verdict;

use std::sync::Arc;
use std::time::Instant;

use std::num::NonZeroU32;

use crate::spec::limits::MAX_CPUS;
pub use reject::Reject;
pub use verdict::{LogLevel, Statistics, Verdict};

use crate::program::Program;
use crate::spec::helpers::Caller;
use crate::util::{MapId, Pc};
use attach_target::AttachTarget;
use env::Verifier;
use facts::Facts;
pub use facts::Through;
use log::Log;

/// How a program is verified.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// What the log holds; the error line is there anyway.
    pub log: LogLevel,
    /// Whether memory has to be aligned as on a machine that can't do otherwise
    /// (`BPF_F_STRICT_ALIGNMENT`; a program's own flags ask for it, too).
    pub strict_alignment: bool,
    /// How many CPUs the machine may have (`nr_cpu_ids`), which bounds the number that a
    /// program gets of its own; by default as many as a kernel is built for.
    pub cpus: Option<NonZeroU32>,
}

impl Options {
    /// How many CPUs the machine may have.
    pub(crate) fn cpus(&self) -> u32 {
        self.cpus.map_or(MAX_CPUS, NonZeroU32::get)
    }
}

/// What came of a verification.
#[derive(Debug, Clone)]
pub struct Verification {
    /// The verdict in the kernel's words.
    pub verdict: Verdict,
    /// The program with what was proved of it, or why it was refused.
    pub outcome: Result<Verified, Reject>,
}

/// A program that does no harm, with what was proved of it.
///
/// Only [`verify`] makes one, so whoever holds one may rely on it.
#[derive(Debug, Clone)]
pub struct Verified {
    program: Arc<Program>,
    facts: Arc<Facts>,
}

impl Verified {
    /// The program.
    #[must_use]
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Whether any path executes this instruction: the others are dead code.
    #[must_use]
    pub fn is_reachable(&self, pc: Pc) -> bool {
        self.facts.is_seen(pc)
    }

    /// What a load, store or atomic goes through, if a path executes it.
    #[must_use]
    pub fn through(&self, pc: Pc) -> Option<Through> {
        self.facts.through(pc)
    }

    /// The first instruction of each function, in rising order, and how many bytes below
    /// its frame pointer it and those to whom it gives pointers there touch.
    #[must_use]
    pub fn stacks(&self) -> &[(Pc, u32)] {
        self.facts.stacks()
    }

    /// The map that a call of a helper always gets.
    #[must_use]
    pub fn map_of_call(&self, pc: Pc) -> Option<MapId> {
        self.facts.map_of_call(pc)
    }
}

/// What a program is to helpers: its type, and what it attaches to by name.
fn caller_of(program: &Program) -> Caller<'_> {
    let kernel = program.kernel_btf.as_ref();
    let target = kernel
        .zip(program.attach_btf_id)
        .and_then(|(btf, id)| btf.get(id));
    let name = target.map(|ty| ty.name());
    let plain = name.map(|name| {
        let stripped = ["bpf_iter_", "bpf_lsm_"]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix));
        stripped.unwrap_or(name)
    });
    Caller {
        prog_type: program.prog_type,
        attach_type: program.prog_type.attach_type(program.expected_attach_type),
        target: plain,
    }
}

/// Verifies a program as Linux 6.18 does for a privileged user.
///
/// ```
/// use std::sync::Arc;
/// use bpflab::isa::assemble;
/// use bpflab::program::Program;
/// use bpflab::spec::ProgType;
/// use bpflab::verifier::{Options, verify};
///
/// let insns = assemble("r0 = r5\nexit")?;
/// let program = Arc::new(Program::new("pass", ProgType::Xdp, insns));
/// let verification = verify(&program, &Options::default());
/// assert_eq!(verification.verdict.message, "R5 !read_ok");
/// # Ok::<(), bpflab::isa::AsmError>(())
/// ```
#[must_use]
pub fn verify(program: &Arc<Program>, options: &Options) -> Verification {
    let start = Instant::now();
    let mut statistics = Statistics::default();
    let mut log;
    let caller = caller_of(program);
    let mut checked_log = Log::new(options.log);
    let attach = || AttachTarget::resolve(program);
    let checked = structure::check(program, &caller, attach, &mut checked_log);
    let outcome = match checked {
        Err(reject) => {
            log = checked_log.into_text();
            Err(reject)
        }
        Ok((structure, attach)) => {
            let mut verifier =
                Verifier::new(program, caller, attach, structure, checked_log, *options);
            verifier.log_live_registers();
            let result = verifier.verify();
            statistics = verifier.statistics();
            if result.is_ok() {
                statistics.stack_depth = verifier.reported_depths();
            }
            let facts = std::mem::take(&mut verifier.facts);
            log = verifier.log.into_text();
            result.map(|()| Verified {
                program: Arc::clone(program),
                facts: Arc::new(facts),
            })
        }
    };
    statistics.time_us = u64::try_from(start.elapsed().as_micros()).ok();
    let rejected = outcome.as_ref().err();
    if let Some(reject) = rejected
        && !reject.text().is_empty()
    {
        log.push_str(reject.text());
        log.push('\n');
    }
    if options.log.contains(LogLevel::STATISTICS) {
        log.push_str(&statistics.to_string());
    }
    let verdict = Verdict {
        accepted: outcome.is_ok(),
        errno: rejected.map(Reject::errno),
        message: rejected.map_or("", Reject::message).to_owned(),
        statistics: Some(statistics),
        log,
    };
    Verification { verdict, outcome }
}
