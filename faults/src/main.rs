//! The study of seeded faults: how many faults in bpflab's verifier, lowering, JITs,
//! interpreters and maps `bpflab fuzz` finds.
//!
//! The faults are data (`*.toml` in this package): a text of a source file, and the text that
//! replaces it. The study copies the sources to `target/faults`, builds the copy once with all
//! faults, of which an environment variable activates one, and runs a campaign for each.

mod campaign;
mod copy;
mod fault;
mod mutants;
mod table;
mod verifier_tests;

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;

use campaign::{Campaign, Outcome};
use copy::SourceCopy;
use fault::{Faults, Seeds};
use mutants::Mutants;
use verifier_tests::Tests;

/// Run the fault study: build bpflab with every seeded fault, and search for each.
#[derive(Debug, Parser)]
struct Options {
    /// Seconds for each fault.
    #[arg(long, value_name = "N", default_value_t = 600)]
    seconds: u64,
    /// Programs for each fault at most, besides the time.
    #[arg(long, value_name = "N")]
    programs: Option<u64>,
    /// Threads of each campaign; with --tests, how many faults are tried side by side.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    threads: u32,
    /// Seed of each campaign.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Ask the running kernel, too, for the faults that were not found without it (Linux, root).
    #[arg(long, requires = "json")]
    kernel: bool,
    /// Judge by these oracles only [default: all]
    #[arg(long, value_name = "ORACLE")]
    oracle: Option<String>,
    /// Only faults whose id begins with one of these.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    only: Vec<String>,
    /// Write the results as JSON to this file, one fault a line; faults that are in it
    /// already are not run again.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the table as Markdown to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Print the table of the results in the JSON file, without running anything.
    #[arg(long, requires = "json")]
    table: bool,
    /// Run the tests of the verifier before each campaign; a test that fails has found the fault.
    #[arg(long)]
    tests: bool,
    /// Build the copy with the faults, and stop.
    #[arg(long)]
    build: bool,
    /// Use the copy as it was built last.
    #[arg(long, conflicts_with = "build")]
    no_build: bool,
    /// List the faults.
    #[arg(long)]
    list: bool,
    /// Study the mutants in this file, which `cargo mutants --list --json` printed, instead of
    /// the faults that are written down.
    #[arg(long, value_name = "FILE")]
    mutants: Option<PathBuf>,
}

/// Seconds of the campaign without a fault.
const BASELINE_SECONDS: u64 = 60;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.parent().unwrap_or(package);
    let (mut seeds, name): (Box<dyn Seeds>, _) = match &options.mutants {
        Some(path) => (Box::new(Mutants::read(path)?), "mutants"),
        None => (Box::new(Faults::read(package)?), "faults"),
    };
    let faults = &mut *seeds;
    let copy = SourceCopy { root, name };
    if options.list {
        for fault in faults.all() {
            // A reader that has seen enough is no error.
            if writeln!(io::stdout(), "{:30} {}", fault.id, fault.what).is_err() {
                break;
            }
        }
        return Ok(());
    }
    let mut results = match &options.json {
        Some(path) if path.exists() => table::read(path)?,
        _ => Vec::new(),
    };
    if !options.table {
        if options.no_build {
            copy.as_built(faults)?;
        } else {
            let start = Instant::now();
            copy.build(faults)?;
            let took = start.elapsed().as_secs();
            eprintln!("built {} faults in {took} s", faults.numbered().count());
        }
        if options.build {
            return Ok(());
        }
        campaigns(options, copy, faults, &mut results)?;
    } else if options.mutants.is_some() {
        copy.as_built(faults)?;
    }
    let text = match options.mutants {
        Some(_) => table::by_file(faults, &results),
        None => table::markdown(faults, &results),
    };
    match &options.markdown {
        Some(path) => std::fs::write(path, text).map_err(|why| fault::at(path, &why))?,
        None => print!("{text}"),
    }
    Ok(())
}

/// Runs the campaign of each fault that has no result yet.
fn campaigns(
    options: &Options,
    copy: SourceCopy<'_>,
    faults: &dyn Seeds,
    results: &mut Vec<Outcome>,
) -> Result<(), Box<dyn Error>> {
    let binary = copy.binary();
    let campaign = Campaign {
        binary: &binary,
        seconds: options.seconds,
        programs: options.programs,
        threads: options.threads,
        seed: options.seed,
        kernel: options.kernel,
        oracle: options.oracle.as_deref(),
    };
    let chosen = |id: &str| {
        options.only.is_empty() || options.only.iter().any(|start| id.starts_with(start))
    };
    let left = faults.numbered().filter(|(_, fault)| {
        let known = results.iter().find(|known| known.id == fault.id);
        let is_done = known.is_some_and(|known| known.found() || known.kernel || !options.kernel);
        chosen(&fault.id) && !is_done
    });
    let left: Vec<_> = left.collect();
    if left.is_empty() {
        return Ok(());
    }
    // A finding without a fault would be counted for every fault.
    let clean = Campaign {
        seconds: options.seconds.min(BASELINE_SECONDS),
        programs: None,
        ..campaign
    };
    let (outcome, known) = clean.without_fault()?;
    if outcome.found() {
        return Err(format!("without a fault: {}", table::line(&outcome)).into());
    }
    for (oracle, problem) in &known {
        eprintln!("found without a fault, and not counted: {oracle}: {problem}");
    }
    let tests = match options.tests {
        true => Some(Tests::build(copy)?),
        false => None,
    };
    if let Some(tests) = &tests {
        tests.without_fault()?;
    }
    // A test has one thread, so with tests faults are tried side by side, and a campaign has one, too.
    let (workers, threads) = match tests {
        Some(_) => (options.threads, 1),
        None => (1, options.threads),
    };
    let campaign = Campaign {
        threads,
        ..campaign
    };
    let judge = |number: u32, id: &str| -> Result<Outcome, Box<dyn Error>> {
        let failed = match &tests {
            Some(tests) => tests.with_fault(number, id)?,
            None => None,
        };
        match failed {
            Some(outcome) => Ok(outcome),
            None => campaign.with_fault(number, id, &known),
        }
    };
    let queue = Mutex::new(left.into_iter());
    let results = Mutex::new(results);
    let work = || -> Result<(), String> {
        loop {
            let next = lock(&queue).next();
            let Some((number, fault)) = next else {
                return Ok(());
            };
            let outcome = judge(number, &fault.id).map_err(|why| {
                // The other workers stop, too.
                lock(&queue).by_ref().for_each(drop);
                why.to_string()
            })?;
            eprintln!("{}", table::line(&outcome));
            let mut results = lock(&results);
            results.retain(|known| known.id != fault.id);
            results.push(outcome);
            if let Some(path) = &options.json {
                table::write(path, &results).map_err(|why| why.to_string())?;
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut ends = workers.into_iter().map(|it| it.join());
        ends.try_for_each(|end| end.unwrap_or_else(|_| Err("a worker panicked".into())))
    })?;
    Ok(())
}

/// The lock, which a panic can't leave half done: it ends the study.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Seconds with one decimal.
fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10.0).round() / 10.0
}
