//! Applies the oracles to a candidate.

use std::any::Any;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::candidate::Candidate;
use super::counts::Counts;
use super::known::is_known;
use super::oracle::Oracle;
use super::other_build::{OtherBuild, OtherEngines};
use super::problem::Problem;
use super::random::Random;
use super::runs::{CPUS, Prepared};
use super::verdicts::template;
use super::{round_trip, runs, sameness, values};
use crate::harness::Judged;
use crate::program::Program;
use crate::verifier::{Decision, Options, Verification, trace, verify};

/// The maximum number of recorded states of a program.
const STATES: u64 = 20_000;
/// Programs with more processed instructions are not traced and run.
const MAX_PROCESSED: u64 = 20_000;
/// Of generated programs with more processed instructions than [`MAX_PROCESSED`], which take the
/// kernel seconds, one of so many is compared with the kernel.
#[cfg(all(feature = "kernel", target_os = "linux"))]
const LONG: u64 = 16;
/// One of so many programs is written to a recording, which depends little on the program.
const RECORDED: u64 = 16;
/// Inputs that an accepted program runs on.
const INPUTS: u32 = 3;
/// One of so many programs is compared with the kernel's log.
#[cfg(all(feature = "kernel", target_os = "linux"))]
const LOGGED: u64 = 16;
/// One of so many programs is judged for a loader with fewer capabilities, too.
#[cfg(all(feature = "kernel", target_os = "linux"))]
const WEAKER: u64 = 8;
/// Inputs that a rejected program runs on.
const REJECTED_INPUTS: u32 = 8;

/// Applies oracles, and counts.
#[derive(Debug)]
pub struct Judge {
    oracles: Oracle,
    options: Options,
    /// Whether the running kernel can be asked.
    kernel: bool,
    /// What it has done.
    pub counts: Counts,
    /// The oracle that is at work, to which a panic belongs.
    current: Oracle,
    /// Another build of bpflab, which runs accepted programs, too.
    other: Option<OtherEngines>,
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    maps: Option<KnownMaps>,
}

/// The kernel's maps of the last program.
#[cfg(all(feature = "kernel", target_os = "linux"))]
#[derive(Debug)]
struct KnownMaps {
    defs: Arc<[crate::program::MapDef]>,
    maps: crate::kernel::LoadedMaps,
}

impl Judge {
    /// Applies these oracles; `kernel` says whether the running kernel can be asked.
    #[must_use]
    pub fn new(oracles: Oracle, kernel: bool) -> Self {
        let options = Options::default().with_cpus(NonZeroU32::new(CPUS));
        #[cfg(all(feature = "kernel", target_os = "linux"))]
        let options = match kernel && oracles.contains(Oracle::VERDICT) {
            true => super::kernel::options(),
            false => options,
        };
        Self {
            oracles,
            options,
            kernel,
            counts: Counts::default(),
            current: Oracle::SAFETY,
            other: None,
            #[cfg(all(feature = "kernel", target_os = "linux"))]
            maps: None,
        }
    }

    /// The same oracles and nothing counted.
    #[must_use]
    pub fn fresh(&self) -> Self {
        let other = self.other.as_ref().map(|other| other.build.clone());
        Self::new(self.oracles, self.kernel).with_other_build(other)
    }

    /// The same with another build of bpflab, which runs accepted programs for the oracle *value*.
    #[must_use]
    pub fn with_other_build(self, build: Option<OtherBuild>) -> Self {
        Self {
            other: build.map(OtherEngines::new),
            ..self
        }
    }

    /// The options of `bpflab fuzz` that make such a judge, besides the oracles, each after a space.
    #[must_use]
    pub fn options_of_fuzz(&self) -> String {
        let other = self.other.as_ref();
        let text = other.map_or_else(String::new, |other| other.build.option());
        #[cfg(all(feature = "kernel", target_os = "linux"))]
        let text = match crate::kernel::vm_image().filter(|_| self.kernel) {
            Some(image) => format!("{text} --vm {image}"),
            None => text,
        };
        text
    }

    /// The first problem that an oracle has with a candidate. A panic is a problem, too. Problems
    /// that are known to be Linux's are only counted, and the other oracles asked.
    pub fn judge(&mut self, candidate: &Candidate) -> Option<Problem> {
        let judged = catch_unwind(AssertUnwindSafe(|| self.ask(candidate)));
        let judged = judged.unwrap_or_else(|panic| {
            let text = text_of(&*panic);
            let kind = format!("panic: {text}");
            Err(Problem::new(self.current, &kind, "panics", text))
        });
        judged.err()
    }

    /// Counts a known problem; the error is any other one.
    fn explain(
        &mut self,
        problem: impl Into<Option<Problem>>,
        candidate: &Candidate,
    ) -> Result<(), Problem> {
        match problem.into() {
            None => Ok(()),
            Some(problem) if is_known(&problem, candidate) => {
                self.counts.known += 1;
                Ok(())
            }
            Some(problem) => Err(problem),
        }
    }

    fn has(&self, oracle: Oracle) -> bool {
        self.oracles.intersects(oracle)
    }

    fn ask(&mut self, candidate: &Candidate) -> Result<(), Problem> {
        self.current = Oracle::SAFETY;
        let verification = Arc::new(verify(&candidate.program, &self.options));
        let verdict = &verification.verdict;
        let counts = &mut self.counts;
        counts.programs += 1;
        counts.processed += verdict.processed();
        let is_accepted = verdict.is_accepted();
        match verdict.decision {
            Decision::Accept => counts.accepted += 1,
            Decision::Reject => counts.rejected += 1,
            Decision::Unjudged => counts.unjudged += 1,
        }
        if let Some(strategy) = candidate.strategy {
            let (made, accepted) = counts.strategies.entry(strategy).or_default();
            *made += 1;
            *accepted += u64::from(is_accepted);
        }
        if verdict.decision == Decision::Reject {
            let rule = template(&verdict.message);
            if !counts.rules.contains(&rule) {
                counts.rules.insert(rule);
            }
        }
        self.current = Oracle::ROUND_TRIP;
        if self.has(Oracle::ROUND_TRIP) {
            let records = candidate.seed.is_multiple_of(RECORDED);
            self.explain(round_trip::check(&candidate.program, records), candidate)?;
        }
        self.current = Oracle::SAFETY;
        let is_long = verdict.processed() > MAX_PROCESSED;
        #[cfg(all(feature = "kernel", target_os = "linux"))]
        let is_of_file = candidate.strategy.is_none();
        #[cfg(all(feature = "kernel", target_os = "linux"))]
        if self.has(Oracle::VERDICT)
            && self.kernel
            && (!is_long || is_of_file || candidate.seed.is_multiple_of(LONG))
        {
            let problem = self.compare_verdicts(candidate, verdict);
            self.explain(problem, candidate)?;
            if candidate.seed.is_multiple_of(WEAKER) {
                let problem = self.compare_for_loader(candidate);
                self.explain(problem, candidate)?;
            }
        }
        if is_long {
            return Ok(());
        }
        if self.has(Oracle::SAMENESS) && verdict.decision != Decision::Unjudged {
            self.current = Oracle::SAMENESS;
            let mut random = Random(candidate.seed);
            let (program, options) = (&candidate.program, &self.options);
            let problem = sameness::check(program, verdict, options, &mut random);
            self.explain(problem, candidate)?;
        }
        let runs = Oracle::STATE | Oracle::SAFETY | Oracle::MEMORY | Oracle::VALUE;
        let judged = match verdict.decision {
            Decision::Unjudged => return Ok(()),
            _ if self.has(runs) => self.judged(candidate, &verification),
            _ => Vec::new(),
        };
        let prepared = Prepared {
            candidate,
            judged: &judged,
            cpus: self.options.cpus.map_or(CPUS, NonZeroU32::get),
        };
        match verdict.decision {
            Decision::Accept => self.accepted(&prepared),
            _ => {
                self.rejected(&prepared);
                Ok(())
            }
        }
    }

    /// What machines need of the candidate's programs. A machine relies on what is known with its
    /// own number of CPUs, not with that of the running kernel.
    fn judged(&self, candidate: &Candidate, known: &Arc<Verification>) -> Vec<Judged> {
        let is_known =
            |program: &Arc<Program>| !self.kernel && Arc::ptr_eq(program, &candidate.program);
        let programs = candidate.programs().cloned();
        let judged = programs.map(|program| match is_known(&program) {
            true => Judged {
                program,
                verification: Arc::clone(known),
            },
            false => Judged::new(program),
        });
        judged.collect()
    }

    fn accepted(&mut self, prepared: &Prepared<'_>) -> Result<(), Problem> {
        let Prepared {
            candidate, judged, ..
        } = *prepared;
        let traced = Oracle::STATE | Oracle::SAMENESS;
        let mut known = None;
        if self.has(traced) {
            self.current = Oracle::STATE & self.oracles;
            if self.current.is_empty() {
                self.current = Oracle::SAMENESS;
            }
            match trace(&candidate.program, &self.options, STATES) {
                Ok(trace) => {
                    self.counts.incomplete += u64::from(!trace.is_complete());
                    known = Some(trace);
                }
                Err(why) if self.has(Oracle::SAMENESS) => {
                    if let Some(reject) = why.reject() {
                        let (program, options) = (&candidate.program, &self.options);
                        let problem = sameness::without_pruning(program, reject, options, STATES);
                        self.explain(problem, candidate)?;
                    }
                }
                Err(_) => {}
            }
        }
        if self.has(Oracle::STATE | Oracle::SAFETY) {
            self.current = Oracle::SAFETY;
            let trace = known.as_ref().filter(|_| self.has(Oracle::STATE));
            let ran = runs::run(prepared, trace, self.oracles, INPUTS);
            self.counts.runs += ran.runs;
            self.counts.held += ran.held;
            self.explain(ran.problem, candidate)?;
            #[cfg(all(feature = "kernel", target_os = "linux"))]
            if self.kernel && self.has(Oracle::STATE) && candidate.seed.is_multiple_of(LOGGED) {
                let problem = self.compare_with_log(prepared);
                self.explain(problem, candidate)?;
            }
        }
        if self.has(Oracle::MEMORY) {
            self.current = Oracle::MEMORY;
            let ran = runs::memory(prepared, INPUTS);
            self.counts.runs += ran.runs;
            self.explain(ran.problem, candidate)?;
        }
        if self.has(Oracle::VALUE) && prepared.are_accepted() {
            self.current = Oracle::VALUE;
            let values = values::compare(candidate, judged, self.kernel);
            self.counts.engine_runs += values.runs;
            self.counts.kernel_runs += values.kernel_runs;
            self.explain(values.problem, candidate)?;
            if let (Some(other), Some(checked)) = (&mut self.other, &values.checked) {
                let (runs, problem) = other.compare(candidate, checked);
                self.counts.other_runs += runs;
                self.explain(problem, candidate)?;
            }
        }
        Ok(())
    }

    /// Counts a rejected program that never faults.
    fn rejected(&mut self, prepared: &Prepared<'_>) {
        if !self.has(Oracle::SAFETY) || has_loops(prepared.candidate) {
            return;
        }
        if let Some(fine) = runs::never_faults(prepared, REJECTED_INPUTS) {
            self.counts.rejected_run += 1;
            self.counts.precision += u64::from(fine);
        }
    }

    /// Runs it against the states in the kernel's log.
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    fn compare_with_log(&mut self, prepared: &Prepared<'_>) -> Option<Problem> {
        use super::kernel::maps_for_verdict;
        use crate::kernel::{LoadOptions, Loader, load};
        use crate::verifier::LogLevel;

        let program = &prepared.candidate.program;
        let maps = maps_for_verdict(program, &Loader::default()).ok()?;
        let options = LoadOptions::default().with_log(LogLevel::ALL);
        let loaded = load(program, &maps, &options).ok()?;
        let (checked, problem) = super::claims::check(prepared, &loaded.verdict.log, INPUTS);
        self.counts.claims += checked;
        problem.filter(|_| loaded.verdict.is_accepted())
    }

    #[cfg(all(feature = "kernel", target_os = "linux"))]
    fn compare_verdicts(
        &mut self,
        candidate: &Candidate,
        verdict: &crate::verifier::Verdict,
    ) -> Option<Problem> {
        use super::kernel::{compare_with, maps_for_verdict};
        use super::verdicts::Ours;
        use crate::kernel::{LoadOptions, Loader};

        let program = &candidate.program;
        let is_known = |known: &KnownMaps| known.defs == program.maps && program.btf.is_none();
        // A prog array keeps the type of the first program that uses it.
        let mut kinds = program.maps.iter().map(|map| map.map_type);
        let remembers = kinds.any(|kind| kind == crate::spec::MapType::ProgArray);
        if remembers || !self.maps.as_ref().is_some_and(is_known) {
            self.maps = None;
            match maps_for_verdict(program, &Loader::default()) {
                Ok(maps) => {
                    let defs = program.maps.clone();
                    self.maps = Some(KnownMaps { defs, maps });
                }
                Err(_) => {
                    self.counts.no_kernel_verdict += 1;
                    return None;
                }
            }
        }
        let known = self.maps.as_ref()?;
        let options = LoadOptions::default();
        let compared = compare_with(&Ours::of(verdict), program, &known.maps, &options);
        self.difference(compared, "")
    }

    /// Compares the verdicts for a loader without `CAP_PERFMON`, for whom speculative paths are
    /// explored, pointers must not leak, and fewer helpers are there. (A kernel refuses a loader
    /// without `CAP_BPF`.)
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    fn compare_for_loader(&mut self, candidate: &Candidate) -> Option<Problem> {
        use super::kernel::{compare_with, maps_for_verdict};
        use super::verdicts::Ours;
        use crate::kernel::LoadOptions;
        use crate::spec::Capabilities;

        let program = &candidate.program;
        let loader = Capabilities::BPF | Capabilities::NET_ADMIN;
        let Ok(maps) = maps_for_verdict(program, &loader.into()) else {
            self.counts.no_kernel_verdict += 1;
            return None;
        };
        let options = self.options.with_capabilities(loader);
        let verdict = verify(program, &options).verdict;
        let options = LoadOptions::default().with_loader(loader);
        let compared = compare_with(&Ours::of(&verdict), program, &maps, &options);
        self.difference(compared, &format!(" (as {loader})"))
    }

    /// Counts a comparison; returns the difference. `of` says for whom the verdicts are.
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    fn difference(&mut self, compared: super::kernel::Compared, of: &str) -> Option<Problem> {
        use super::kernel::Compared;

        match compared {
            Compared::Judged(both) => {
                self.counts.kernel_verdicts += 1;
                let kind = both.kind()?;
                let (ours, theirs) = (&both.ours, &both.kernel);
                Some(Problem::new(
                    Oracle::VERDICT,
                    &kind,
                    format!(
                        "bpflab{of}: {} errno {} processed {} {}",
                        ours.decision.word(),
                        ours.errno,
                        ours.processed,
                        ours.line
                    ),
                    format!(
                        "kernel{of}: {} errno {} processed {} {}",
                        theirs.verdict, theirs.errno, theirs.processed, theirs.log_last
                    ),
                ))
            }
            Compared::NoVerdict => {
                self.counts.no_kernel_verdict += 1;
                None
            }
            Compared::Contradiction => {
                self.counts.known += 1;
                None
            }
            Compared::Unjudged | Compared::Unsafe => None,
        }
    }
}

/// The text of a panic.
pub(super) fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or_default().to_owned()
}

/// Whether any jump of the programs leads back.
fn has_loops(candidate: &Candidate) -> bool {
    let back = |program: &Program| {
        program.insns.iter().any(|insn| {
            let jumps = matches!(insn.opcode & 7, 5 | 6);
            let calls = matches!(insn.opcode & 0xf0, 0x80 | 0x90);
            jumps && !calls && (insn.off < 0 || insn.opcode == 6 && insn.imm < 0)
        })
    };
    candidate.programs().any(|program| back(program))
}
