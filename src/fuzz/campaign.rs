//! A campaign: threads that make candidates and judge them.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::candidate::Candidate;
use super::counts::Counts;
use super::finding::Finding;
use super::judge::Judge;
use super::oracle::Oracle;
use super::other_build::OtherBuild;
use super::problem::Problem;
use super::reduce::reduce;
use super::seeds::{Seeds, without_targets};
use super::strategy::Strategy;
use crate::program::Program;

/// Attempts to remove parts of a program.
const TRIES: usize = 1500;
/// The time for reducing a program.
const REDUCING: Duration = Duration::from_secs(20);
/// How often a thread tells its counts.
const TELLING: Duration = Duration::from_millis(250);
/// The stack of a thread.
const STACK: usize = 64 << 20;

/// Options of a campaign.
#[derive(Debug, Clone)]
pub struct CampaignOptions {
    /// The seed. A program depends on it and on the program's number.
    pub seed: u64,
    /// The number of the first program.
    pub first: u64,
    /// Threads.
    pub threads: usize,
    /// The time after which it ends.
    pub time: Option<Duration>,
    /// The programs after which it ends.
    pub programs: Option<u64>,
    /// The kinds of problems after which it ends.
    pub findings: u64,
    /// The oracles.
    pub oracles: Oracle,
    /// The strategies.
    pub strategies: Vec<Strategy>,
    /// Whether the running kernel is asked.
    pub kernel: bool,
    /// Another build of bpflab, whose engines are compared, too.
    pub other_build: Option<OtherBuild>,
    /// Whether programs of findings are reduced.
    pub reduces: bool,
}

/// What a campaign tells while it runs.
#[derive(Debug)]
pub enum Event<'a> {
    /// The counts so far, and how many kinds of problems were found.
    Progress(&'a Counts, Duration, usize),
    /// A finding of a new kind.
    Finding(&'a Finding),
}

/// The result of a campaign.
#[derive(Debug, Default)]
pub struct Summary {
    /// What it has done.
    pub counts: Counts,
    /// The time that it took.
    pub elapsed: Duration,
    /// The findings, one of each kind.
    pub findings: Vec<Finding>,
    /// How often each kind was found.
    pub kinds: BTreeMap<(&'static str, String), u64>,
}

/// A campaign.
#[derive(Debug)]
pub struct Campaign<'a> {
    options: CampaignOptions,
    seeds: &'a Seeds,
}

/// What threads tell.
enum Told {
    Counts(Box<Counts>),
    Finding(Box<Finding>),
}

/// What threads share.
struct Shared {
    start: Instant,
    next: AtomicU64,
    programs: AtomicU64,
    stop: AtomicBool,
    kinds: Mutex<BTreeMap<(&'static str, String), u64>>,
}

impl<'a> Campaign<'a> {
    /// A campaign over programs made from these seeds.
    #[must_use]
    pub const fn new(options: CampaignOptions, seeds: &'a Seeds) -> Self {
        Self { options, seeds }
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn run(&self, mut tell: impl FnMut(Event<'_>)) -> io::Result<Summary> {
        let shared = Shared {
            start: Instant::now(),
            next: AtomicU64::new(self.options.first),
            programs: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            kinds: Mutex::default(),
        };
        let mut summary = Summary::default();
        thread::scope(|scope| {
            let (sender, told) = channel();
            for number in 0..self.options.threads.max(1) {
                let (sender, shared) = (sender.clone(), &shared);
                thread::Builder::new()
                    .name(format!("fuzz {number}"))
                    .stack_size(STACK)
                    .spawn_scoped(scope, move || self.work(shared, &sender))?;
            }
            drop(sender);
            for told in told {
                match told {
                    Told::Counts(counts) => {
                        summary.counts += &*counts;
                        let elapsed = shared.start.elapsed();
                        let found = summary.findings.len();
                        tell(Event::Progress(&summary.counts, elapsed, found));
                    }
                    Told::Finding(finding) => {
                        tell(Event::Finding(&finding));
                        summary.findings.push(*finding);
                    }
                }
            }
            io::Result::Ok(())
        })?;
        summary.elapsed = shared.start.elapsed();
        summary.kinds = shared
            .kinds
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        Ok(summary)
    }

    /// A thread: judges candidates until the end.
    fn work(&self, shared: &Shared, sender: &Sender<Told>) {
        let options = &self.options;
        let mut judge = Judge::new(options.oracles, options.kernel)
            .with_other_build(options.other_build.clone());
        let mut told = Instant::now();
        // The receiver ends after all threads.
        let flush = |judge: &mut Judge| {
            let counts = std::mem::take(&mut judge.counts);
            let _ = sender.send(Told::Counts(Box::new(counts)));
        };
        while !shared.stop.load(Ordering::Relaxed) {
            let number = shared.next.fetch_add(1, Ordering::Relaxed);
            let made = number.wrapping_sub(options.first);
            if options.programs.is_some_and(|programs| made >= programs) {
                break;
            }
            let candidate = self
                .seeds
                .candidate(options.seed, number, &options.strategies);
            let problem = judge.judge(&candidate);
            shared.programs.fetch_add(1, Ordering::Relaxed);
            if let Some(problem) = problem
                && shared.is_new(&problem, options.findings)
            {
                let finding = self.finding(shared, &judge, candidate, problem);
                let _ = sender.send(Told::Finding(Box::new(finding)));
            }
            if told.elapsed() > TELLING {
                flush(&mut judge);
                told = Instant::now();
            }
            if options
                .time
                .is_some_and(|time| shared.start.elapsed() >= time)
            {
                break;
            }
        }
        flush(&mut judge);
    }

    /// A finding, reduced.
    fn finding(
        &self,
        shared: &Shared,
        judge: &Judge,
        candidate: Candidate,
        problem: Problem,
    ) -> Finding {
        let mut finding = Finding {
            seed: self.options.seed,
            options: judge.options_of_fuzz(),
            insns_before: candidate.program.insns.len(),
            programs: shared.programs.load(Ordering::Relaxed),
            elapsed: shared.start.elapsed(),
            candidate,
            problem,
        };
        if self.options.reduces {
            finding.reduce(judge);
        }
        finding
    }
}

impl Finding {
    /// Removes what the problem does not need.
    pub fn reduce(&mut self, judge: &Judge) {
        let mut judge = judge.fresh();
        let end = Instant::now() + REDUCING;
        let mut last = self.problem.clone();
        let mut candidate = self.candidate.clone();
        // Without the targets of tail calls, if they don't matter.
        let mut alone = candidate.clone();
        alone.others.clear();
        alone.program = without_targets(&alone.program);
        if let Some(problem) = judge.judge(&alone)
            && problem.is_like(&last)
        {
            candidate = alone;
            last = problem;
        }
        let program = reduce(&candidate.program, TRIES, |program: &Arc<Program>| {
            if Instant::now() >= end {
                return false;
            }
            let problem = judge.judge(&candidate.with_program(program.clone()));
            let Some(problem) = problem.filter(|problem| problem.is_like(&last)) else {
                return false;
            };
            last = problem;
            true
        });
        candidate.program = program;
        self.candidate = candidate;
        self.problem = last;
    }
}

impl Shared {
    /// Counts a problem; whether it is the first of its kind. Too many kinds end the campaign.
    fn is_new(&self, problem: &Problem, most: u64) -> bool {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (problem.oracle.name(), problem.kind.clone());
        let count = kinds.entry(key).or_default();
        *count += 1;
        let is_new = *count == 1;
        if kinds.len() as u64 >= most {
            self.stop.store(true, Ordering::Relaxed);
        }
        is_new
    }
}
