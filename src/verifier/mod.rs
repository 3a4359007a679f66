//! The verifier: decides whether Linux 6.18 would accept a program, and with which error.
//!
//! It explores every path of the program as the kernel does. Each register holds the set of
//! its possible values instead of one value. An accepted program is safe on any input; a
//! rejected one gets the kernel's error line. A program that uses a feature which bpflab
//! does not model is unjudged: it gets a list of these features instead of a verdict.
//!
//! | module | what it checks |
//! |---|---|
//! | `structure` | before exploration: jumps, subprograms, reserved fields, BTF |
//! | `liveness` | which registers and stack slots are read later |
//! | `explore` | the main loop: one instruction, branches, the end of a path |
//! | `tnum`, `scalar` | scalars: known bits, bounds, arithmetic, comparisons |
//! | `reg`, `stack`, `state` | the state of registers, stack slots, frames, references |
//! | `history` | the steps of a path that the code alone doesn't determine |
//! | `stack_object` | dynptrs and open-coded iterators on the stack |
//! | `alu`, `branch`, `packet` | pointer arithmetic, bounds refined by a branch |
//! | `memory` | loads and stores, by kind of pointer |
//! | `typed` | typed kernel pointers: members by BTF, trust, kernel pointers in maps |
//! | `struct_ops` | programs that implement a member of a structure of operations |
//! | `attach`, `attach_target`, `attach_program`, `loaded_target` | what programs attach to, by a type in BTF |
//! | `call` | helpers, kfuncs, subprograms, callbacks, return values |
//! | `precision`, `prune` | which scalars are precise, which paths are pruned |
//! | `privileges` | what the loader's capabilities allow |
//! | `speculation` | paths that only speculation takes, and their barriers |
//! | `missing` | features that are not modelled: a program that uses one is unjudged |
//! | `log`, `reject`, `verdict` | the kernel's messages |
//! | `facts` | what is proved, for the engines |
//! | `survey`, `survey_states` | what was explored how often, for pages |
//! | `oracle` | compares the explored states with actual runs |
//!
//! Two laws hold for each operation. *Soundness*: a result contains every number that the
//! instruction could compute from members of its operands. *Parity*: the result is exactly
//! as wide as the kernel's. A narrower one would accept programs that the kernel rejects,
//! and the log prints the bounds.

mod alu;
mod attach;
mod attach_program;
mod attach_target;
mod branch;
mod call;
mod context;
mod context_argument;
mod context_type;
pub mod diagnose;
mod env;
mod explore;
mod facts;
mod history;
mod id;
mod liveness;
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub(crate) mod loaded_target;
mod log;
mod maps;
mod memory;
mod missing;
mod options;
pub mod oracle;
mod packet;
mod pool;
mod precision;
mod privileges;
mod prune;
mod references;
mod reg;
mod reg_check;
mod reject;
mod requirements;
pub mod scalar;
mod speculation;
mod stack;
mod stack_object;
mod state;
mod struct_ops;
mod structure;
#[doc(hidden)]
pub mod survey;
mod survey_states;
pub mod tnum;
mod trace;
mod trail;
mod typed;
mod unverified;
mod verdict;

use std::sync::Arc;
use std::time::Instant;

use crate::isa::Code;
use crate::program::{MapDef, Program, TargetFunction, TargetProgram};
use crate::spec::Capabilities;
use crate::spec::ProgType;
use crate::spec::helpers::Caller;
use crate::util::{Errno, MapId, Pc};
use env::Verifier;
use facts::Facts;
use log::Log;
use oracle::Trace;
use oracle::record::{Function, Recorder};
use survey::Survey;

pub use facts::Through;
pub use missing::{Feature, Missing};
pub use options::Options;
pub use reject::Reject;
pub use requirements::Requirements;
pub(crate) use structure::is_gpl_compatible;
pub use trail::Trail;
pub use unverified::{Unjudged, Unverified};
pub use verdict::{Decision, LogLevel, Statistics, Verdict};

/// Whether a program that attaches through BTF may load the 8 bytes of its context at
/// `off`, which are an argument of the attach target; `None` if the target is not known.
pub(crate) fn context_argument_is_readable(program: &Program, off: u32) -> Option<bool> {
    let target = attach::resolve(program, &[]).ok().flatten()?;
    Some(context_argument::at(&target, program, off, 8).is_ok())
}

/// The result of a verification.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Verification {
    /// The verdict, with the kernel's error line.
    pub verdict: Verdict,
    /// The verified program with its facts, or why it is not verified.
    pub outcome: Result<Verified, Unverified>,
}

/// Converts the reject that ended a verification: an unmodelled feature makes it unjudged.
fn unverified(program: &Program, reject: Reject, options: &Options) -> Unverified {
    let Some(feature) = reject.feature() else {
        return reject.into();
    };
    let stopped = Missing::new(program, feature, reject.pc());
    Unjudged::new(
        stopped,
        missing::scan(
            program,
            &caller_of(program, options, options.loader_of(program)),
        ),
    )
    .into()
}

/// A program that passed verification, with the facts that were proved.
///
/// Only [`verify`] creates one, so its holder may rely on the facts.
#[derive(Debug, Clone)]
pub struct Verified {
    program: Arc<Program>,
    code: Arc<Code>,
    facts: Arc<Facts>,
    requirements: Requirements,
    /// Its functions, for programs that attach to it.
    functions: Arc<[TargetFunction]>,
}

impl Verified {
    /// The program.
    #[must_use]
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Its instructions.
    pub(crate) const fn code(&self) -> &Arc<Code> {
        &self.code
    }

    /// Whether any path executes this instruction: the others are dead code.
    #[must_use]
    pub fn is_reachable(&self, pc: Pc) -> bool {
        self.facts.is_seen(pc)
    }

    /// What kind of memory a load, store or atomic accesses; `None` if no path executes it.
    #[must_use]
    pub fn through(&self, pc: Pc) -> Option<Through> {
        self.facts.through(pc)
    }

    /// Whether some path loads a pointer to user memory (`__uptr`). The kernel pins the page; here
    /// a test may have given memory that is not there.
    pub(crate) fn has_user_pointers(&self) -> bool {
        self.facts.has_user_pointers()
    }

    /// What the program requires of its context and buffers.
    #[must_use]
    pub fn requirements(&self) -> &Requirements {
        &self.requirements
    }

    /// For each function, in ascending order: its first instruction, and how many bytes
    /// below its frame pointer are touched by it or through pointers that it passes on.
    #[must_use]
    pub fn stacks(&self) -> &[(Pc, u32)] {
        self.facts.stacks()
    }

    /// The program as one that other programs attach to: `freplace` programs replace one of its
    /// functions (`Object::set_attach_program`).
    #[must_use]
    pub fn target(&self) -> TargetProgram {
        TargetProgram {
            program: Arc::clone(&self.program),
            functions: self.functions.to_vec(),
            kernel_id: None,
        }
    }

    /// The map that this helper call gets on every path; `None` if there is no single one.
    #[must_use]
    pub fn map_of_call(&self, pc: Pc) -> Option<MapId> {
        self.facts.map_of_call(pc)
    }
}

/// How the helper tables see the program: program type, attach type, attach target's name,
/// kernel, and loader.
fn caller_of<'p>(
    program: &'p Program,
    options: &Options,
    capabilities: Capabilities,
) -> Caller<'p> {
    // A descriptor's program has types of its own.
    let types = program.kernel_btf.as_ref();
    let types = types.filter(|_| !program.attach_prog.is_some());
    let target = types
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
        member: (program.prog_type == ProgType::StructOps)
            .then(|| struct_ops::member_name(program))
            .flatten(),
        kernel: options.kernel,
        capabilities,
    }
}

/// Verifies a program as Linux 6.18 does, by default for a privileged user.
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
    verify_with(program, options, &mut None)
}

/// Verifies a program, and notes what exploration does at each instruction.
#[doc(hidden)]
#[must_use]
pub fn survey(
    program: &Arc<Program>,
    options: &Options,
    limits: survey::Limits,
) -> (Verification, Survey) {
    let mut survey = Some(Box::new(Survey::new(limits)));
    let verification = verify_with(program, options, &mut survey);
    (
        verification,
        survey.map(|survey| *survey).unwrap_or_default(),
    )
}

/// The program as libbpf loads it, where that is not as it is: without BTF, which takes `CAP_BPF`
/// (`bpf_btf_load`, `kernel/bpf/syscall.c`), and with maps without types where the kernel does not
/// create one with special fields (`map_check_btf`).
fn as_loaded(program: &Arc<Program>, options: &Options) -> Option<Arc<Program>> {
    let btf = program.btf.as_ref()?;
    if program.btf_refused || !options.loads_btf() {
        return Some(Arc::new(program.without_types()));
    }
    let is_refused = |map: &MapDef| {
        let creator = options.creator_of(map.map_type);
        !creator.allow(Capabilities::BPF)
            && map
                .special_fields(btf)
                .is_some_and(|fields| !fields.is_empty())
    };
    let mut maps = program.maps.iter().flat_map(MapDef::and_inner);
    maps.any(is_refused).then(|| {
        let mut loaded = Program::clone(program);
        loaded.maps = program.maps_without_types(is_refused);
        Arc::new(loaded)
    })
}

fn verify_with(
    program: &Arc<Program>,
    options: &Options,
    survey: &mut Option<Box<Survey>>,
) -> Verification {
    if let Some(program) = as_loaded(program, options) {
        return verify_with(&program, options, survey);
    }
    let start = Instant::now();
    let mut statistics = Statistics::default();
    let mut log;
    let judged = attach_program::as_target(program);
    let caller = caller_of(&judged, options, options.loader_of(program));
    let mut checked_log = Log::new(options.log);
    let attached = |functions: &[_]| attach::resolve(program, functions);
    let checked = structure::check(program, &caller, options, attached, &mut checked_log);
    let outcome = match checked {
        Err(reject) => {
            log = checked_log.into_text();
            Err(reject)
        }
        Ok((structure, attach)) => {
            let mut verifier = Verifier::new(
                &judged,
                &caller,
                attach.as_ref(),
                &structure,
                checked_log,
                options,
            );
            verifier.survey = survey.take();
            verifier.log_live_registers();
            let result = verifier.verify();
            statistics = verifier.statistics();
            if result.is_ok() {
                statistics.stack_depth = verifier.reported_depths();
            }
            let functions = match result {
                Ok(()) => verifier.target_functions(),
                Err(_) => Arc::default(),
            };
            let facts = std::mem::take(&mut verifier.facts);
            *survey = verifier.survey.take();
            let requirements = verifier.requires.get();
            let code = Arc::clone(&structure.code);
            log = verifier.log.into_text();
            result.map(|()| Verified {
                program: Arc::clone(program),
                code,
                facts: Arc::new(facts),
                requirements,
                functions,
            })
        }
    };
    statistics.time_us = u64::try_from(start.elapsed().as_micros()).ok();
    let outcome = outcome.map_err(|reject| unverified(program, reject, options));
    let (decision, text) = match &outcome {
        Ok(_) => (Decision::Accept, String::new()),
        Err(Unverified::Rejected(reject)) => (Decision::Reject, reject.text().to_owned()),
        Err(Unverified::Unjudged(unjudged)) => (Decision::Unjudged, unjudged.to_string()),
    };
    if !text.is_empty() {
        log.push_str(&text);
        log.push('\n');
    }
    if options.log.contains(LogLevel::STATISTICS) {
        log.push_str(&statistics.to_string());
    }
    let verdict = Verdict {
        decision,
        errno: outcome
            .as_ref()
            .err()
            .and_then(Unverified::reject)
            .map(Reject::errno),
        message: text.lines().next_back().unwrap_or_default().to_owned(),
        statistics: Some(statistics),
        log,
    };
    Verification { verdict, outcome }
}

/// Explores a program and records every state, at most `limit` of them (each takes a
/// kilobyte or more).
///
/// # Errors
/// Returns why the program is not verified.
pub fn trace(program: &Arc<Program>, options: &Options, limit: u64) -> Result<Trace, Unverified> {
    if let Some(program) = as_loaded(program, options) {
        return trace(&program, options, limit);
    }
    let judged = attach_program::as_target(program);
    let caller = caller_of(&judged, options, options.loader_of(program));
    let attached = |functions: &[_]| attach::resolve(program, functions);
    let mut log = Log::new(LogLevel::empty());
    let (structure, attach) = structure::check(program, &caller, options, attached, &mut log)
        .map_err(|reject| unverified(program, reject, options))?;
    let functions = structure.subprograms.iter().map(|sub| Function {
        start: sub.start,
        global: sub.global,
    });
    let recorder = Recorder::new(functions.collect(), limit);
    let mut verifier = Verifier::new(&judged, &caller, attach.as_ref(), &structure, log, options);
    verifier.recorder = Some(Box::new(recorder));
    let complete = match verifier.verify() {
        Ok(()) => true,
        // Too complex: the recording is incomplete.
        Err(reject) if reject.errno() == Errno::E2BIG => false,
        Err(reject) => return Err(unverified(program, reject, options)),
    };
    let recorder = verifier.recorder.take();
    let recording = recorder
        .map(|recorder| recorder.finish(complete))
        .unwrap_or_default();
    Ok(Trace::new(Arc::clone(program), recording))
}
