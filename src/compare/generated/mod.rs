//! Runs [generated programs](crate::gen) in the kernel and replays them on all of bpflab's
//! engines.
//!
//! The programs are attached to `raw_syscalls:sys_enter`, and this process fires them with
//! unused system call numbers and chosen arguments. Each program is verified by the kernel and
//! by bpflab, recorded, and replayed: its inputs and outputs, return values and final map
//! contents must be the same. A difference is a [`Finding`], with the [`Recipe`] that generates
//! the program again.
//!
//! | file | its one job |
//! |---|---|
//! | `batch` | many programs as one object |
//! | `error` | why programs can't be compared |
//! | `fire` | unused system calls |
//! | `record` | recording a batch in the kernel |
//! | `verdict` | the part of a replay's report about one program |
//! | `tally` | counts and findings |
//!
//! Running the programs takes little time. Creating maps, verifying, and above all detaching
//! take more: the kernel waits for all CPUs. So a batch of programs is attached, fired and
//! detached at once.

mod batch;
mod error;
mod fire;
mod record;
mod tally;
mod verdict;

pub use batch::Recipe;
pub use error::GeneratedError;
pub use tally::{Detail, EngineTally, Finding, FindingKind, Tally, Times};
pub use verdict::Replayed;

use std::thread;
use std::time::{Duration, Instant};

use self::batch::Batch;
use self::record::Recorder;
use super::replay::{Replay, ReplayError, Report, Word};
use crate::r#gen;
use crate::harness::EngineKind;
use crate::kernel::NoVerdictKind;
use crate::spec::ProgType;
use crate::util::with;

/// How many programs, and on which engines.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GeneratedOptions {
    /// How many programs are generated.
    pub count: u64,
    /// The seed of the first program; each further one has the next seed.
    pub seed: u64,
    /// [`Recipe::size`] of each.
    pub size: usize,
    /// The engines that replay.
    pub engines: Vec<EngineKind>,
    /// How often each program is fired.
    pub firings: usize,
}

impl GeneratedOptions {
    with! {
        with_count(count: u64);
        with_seed(seed: u64);
        with_size(size: usize);
        with_engines(engines: impl Into<Vec<EngineKind>>);
        with_firings(firings: usize);
    }
}

impl Default for GeneratedOptions {
    fn default() -> Self {
        Self {
            count: 100,
            seed: 1,
            size: Recipe::SIZE,
            engines: vec![EngineKind::Checked, EngineKind::Interp, EngineKind::Jit],
            firings: 16,
        }
    }
}

/// Programs attached at a time: the kernel allows 64 at a tracepoint (`BPF_TRACE_MAX_PROGS`),
/// and others may be attached, too.
const BATCH: u64 = 48;

/// Generates programs, runs them in the kernel, and replays them; calls `progress` after each
/// batch.
///
/// # Errors
/// [`GeneratedError`] if nothing can be recorded or replayed.
pub fn compare_generated(
    options: &GeneratedOptions,
    mut progress: impl FnMut(&Tally),
) -> Result<Tally, GeneratedError> {
    let start = Instant::now();
    let recorder = Recorder::new(options.firings)?;
    let mut tally = Tally::default();
    let mut done = 0;
    while done < options.count {
        let count = (options.count - done).min(BATCH);
        let seeds = (0..count).map(|more| options.seed.wrapping_add(done + more));
        let size = options.size;
        let recipes: Vec<_> = seeds.map(|seed| Recipe { seed, size }).collect();
        let known = tally.findings.len();
        retry_without_memory(&mut tally, |tally| {
            compare_batch(&recorder, &recipes, &options.engines, tally)
        })?;
        shrink_from(known, &recorder, &mut tally)?;
        done += count;
        tally.times.total = start.elapsed();
        progress(&tally);
    }
    Ok(tally)
}

/// How often a batch is tried if the kernel has no memory, and the pause before the next try.
const ATTEMPTS: u32 = 6;
const PAUSE: Duration = Duration::from_millis(100);

/// Repeats `work` while the kernel has no memory: it frees memory some time after detaching.
fn retry_without_memory(
    tally: &mut Tally,
    mut work: impl FnMut(&mut Tally) -> Result<(), GeneratedError>,
) -> Result<(), GeneratedError> {
    let mut attempt = 1;
    loop {
        let before = tally.clone();
        match work(tally) {
            Err(GeneratedError::NoVerdict(none))
                if none.kind == NoVerdictKind::Memory && attempt < ATTEMPTS =>
            {
                *tally = before;
                thread::sleep(PAUSE * (1 << attempt));
                attempt += 1;
            }
            done => return done,
        }
    }
}

/// Records and replays the programs of these recipes.
fn compare_batch(
    recorder: &Recorder,
    recipes: &[Recipe],
    engines: &[EngineKind],
    tally: &mut Tally,
) -> Result<(), GeneratedError> {
    let start = Instant::now();
    let batch = Batch::of(recipes, r#gen::Options::recorded(ProgType::Tracepoint));
    tally.made += recipes.len() as u64;
    tally.times.making += start.elapsed();
    let Some(recorded) = recorder.record(&batch, tally)? else {
        return Ok(());
    };
    let start = Instant::now();
    let programs = recorded.members.iter().flat_map(|(_, programs)| programs);
    let programs: Vec<_> = programs.cloned().collect();
    let replay = Replay::of_programs(&programs, &batch.maps, recorded.bytes)?;
    for (engine, report) in engines.iter().zip(replay_all(&replay, engines)) {
        let report = report?;
        let mut reports = &report.programs[..];
        for (member, programs) in &recorded.members {
            let (own, rest) = reports.split_at(programs.len().min(reports.len()));
            reports = rest;
            // The report on the program itself, unless one that it jumped to has a worse verdict.
            // Programs that never ran don't count.
            let ran = |word: &Word| *word != Word::NothingCompared;
            let worst = own.iter().rev();
            let worst = worst.max_by_key(|program| Some(program.verdict.word()).filter(ran));
            let (Some(program), Some(member)) = (worst, batch.members.get(*member)) else {
                continue;
            };
            let replayed = Replayed::of(&report, program, member.recipe);
            let word = replayed.word();
            if Some(engine) == engines.first() {
                for why in replayed.not_compared() {
                    *tally.not_compared.entry(why).or_default() += 1;
                }
            }
            // A run on another engine is no verdict on this one.
            let elsewhere = own.iter().find_map(|program| program.fallback);
            let counts = tally.engine(*engine);
            match elsewhere {
                Some(why) => *counts.elsewhere.entry(why).or_default() += 1,
                None => *counts.verdicts.entry(word).or_default() += 1,
            }
            let kind = match word {
                Word::Different => FindingKind::Different(*engine),
                Word::Incomplete => FindingKind::Incomplete(*engine),
                _ => continue,
            };
            tally.findings.push(Finding {
                recipe: member.recipe,
                shrunk: None,
                kind,
                detail: Detail::Replayed(Box::new(replayed)),
            });
        }
    }
    tally.times.replaying += start.elapsed();
    Ok(())
}

/// Replays on all engines at once.
fn replay_all(replay: &Replay, engines: &[EngineKind]) -> Vec<Result<Report, ReplayError>> {
    thread::scope(|scope| {
        let spawn = |engine: &EngineKind| {
            let engine = *engine;
            scope.spawn(move || replay.run(engine))
        };
        let threads: Vec<_> = engines.iter().map(spawn).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(report) => report,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().map(join).collect()
    })
}

/// How many findings are shrunk at most: each takes a dozen batches.
const MOST_SHRUNK: usize = 20;

/// Shrinks the findings from index `known` on, each program once for all engines.
fn shrink_from(known: usize, recorder: &Recorder, tally: &mut Tally) -> Result<(), GeneratedError> {
    for at in known..tally.findings.len().min(MOST_SHRUNK) {
        let (before, rest) = tally.findings.split_at_mut(at);
        let Some(finding) = rest.first_mut() else {
            break;
        };
        let same = before
            .iter()
            .find(|other| other.recipe == finding.recipe && other.kind.key() == finding.kind.key());
        match same {
            Some(other) => finding.shrunk = other.shrunk,
            None => shrink(recorder, finding)?,
        }
    }
    Ok(())
}

/// Finds the smallest recipe with the same finding.
fn shrink(recorder: &Recorder, finding: &mut Finding) -> Result<(), GeneratedError> {
    let engines = match finding.kind {
        FindingKind::Different(engine) | FindingKind::Incomplete(engine) => vec![engine],
        _ => Vec::new(),
    };
    let (mut least, mut most) = (0, finding.recipe.size);
    while least < most {
        let size = least + (most - least) / 2;
        let recipe = Recipe {
            size,
            ..finding.recipe
        };
        let mut tally = Tally::default();
        compare_batch(recorder, &[recipe], &engines, &mut tally)?;
        let same = tally
            .findings
            .into_iter()
            .find(|found| found.kind == finding.kind);
        match same {
            Some(found) => {
                most = size;
                finding.shrunk = Some(recipe);
                finding.detail = found.detail;
            }
            None => least = size + 1,
        }
    }
    Ok(())
}
