//! The verifier gives a verdict on any input, and soon: no panic, no endless exploration.
//! The inputs are streams of random bytes, of valid opcodes with random fields, and
//! programs of the shared corpus (if available) with a few fields changed.
//!
//! `BPFLAB_RANDOM_COUNT` is the total number of streams (20,000 with `BPFLAB_ALL_CASES=1`, otherwise a
//! part), `BPFLAB_SEED` selects others. `--nocapture` shows the slowest.

use crate::shared;
use crate::shared::sample;
mod streams;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bpflab::object::cases::Cases;
use bpflab::program::Program;
use bpflab::verifier::{Decision, Options, Verdict, verify};

use streams::Streams;

/// The maximum time for a verdict.
const LONGEST: Duration = Duration::from_secs(10);

/// The maximum time on this machine: ten times as long under emulation, with other work.
fn longest() -> Duration {
    match std::env::var_os("BPFLAB_EMULATED") {
        Some(_) => LONGEST * 10,
        None => LONGEST,
    }
}
/// Streams by default.
const COUNT: u64 = 20_000;
/// Without a count, programs with more processed instructions are skipped.
const MAX_PROCESSED: u64 = 5_000;

/// The number of streams requested.
fn asked() -> Option<u64> {
    let count = std::env::var("BPFLAB_RANDOM_COUNT").ok()?;
    Some(count.parse().expect("BPFLAB_RANDOM_COUNT is a number"))
}

#[derive(Debug, Default)]
struct Tally {
    accepted: u64,
    rejected: u64,
    unjudged: u64,
    slowest: Duration,
    slowest_program: String,
}

impl Tally {
    fn judge(&mut self, program: Program) {
        let program = Arc::new(program);
        let (verdict, mut time) = timed(&program);
        if time > longest() {
            // Other processes may have used the CPU.
            time = timed(&program).1;
        }
        match verdict.decision {
            Decision::Accept => self.accepted += 1,
            Decision::Reject => {
                self.rejected += 1;
                assert!(verdict.errno.is_some(), "{}", hex(&program));
            }
            Decision::Unjudged => {
                self.unjudged += 1;
                assert!(verdict.errno.is_none(), "{}", hex(&program));
            }
        }
        if time > self.slowest {
            self.slowest = time;
            self.slowest_program = hex(&program);
        }
        assert!(time < longest(), "{time:?}: {}", hex(&program));
    }

    fn tell(&self, what: &str) {
        let Self {
            accepted,
            rejected,
            unjudged,
            slowest,
            slowest_program,
        } = self;
        let program = slowest_program.get(..200).unwrap_or(slowest_program);
        eprintln!(
            "{what}: {accepted} accepted, {rejected} rejected, {unjudged} not judged, slowest {slowest:?}: {program}"
        );
    }
}

/// The verdict and the time that it took.
fn timed(program: &Arc<Program>) -> (Verdict, Duration) {
    let start = Instant::now();
    let verdict = catch_unwind(AssertUnwindSafe(|| {
        verify(program, &Options::default()).verdict
    }));
    let Ok(verdict) = verdict else {
        panic!("the verifier panics on {}", hex(program));
    };
    (verdict, start.elapsed())
}

/// The program's type and instructions, to reproduce a failure.
fn hex(program: &Program) -> String {
    let bytes = program.insns.iter().flat_map(|raw| raw.to_bytes());
    let hex: String = bytes.map(|byte| format!("{byte:02x}")).collect();
    format!("{} {hex}", program.prog_type.name())
}

#[test]
fn random_bytes() {
    let mut streams = Streams::seeded(1);
    let mut tally = Tally::default();
    for _ in 0..asked().unwrap_or_else(|| sample::cases(COUNT)) / 2 {
        tally.judge(streams.bytes());
    }
    tally.tell("bytes");
    assert!(tally.rejected > 0);
}

#[test]
fn random_instructions() {
    let mut streams = Streams::seeded(2);
    let mut tally = Tally::default();
    for _ in 0..asked().unwrap_or_else(|| sample::cases(COUNT)) * 2 / 5 {
        tally.judge(streams.instructions());
    }
    tally.tell("instructions");
    assert!(tally.accepted > 0 && tally.rejected > 0, "{tally:?}");
}

#[test]
fn changed_programs() {
    let Some(path) = shared::corpus() else { return };
    let mut cases = Cases::open(&path).unwrap();
    let all: Vec<_> = cases.by_ref().collect::<Result<_, _>>().unwrap();
    let processed = |case: &bpflab::object::cases::Case| {
        let says = case.kernel.as_ref();
        says.map_or(0, |says| says.processed)
    };
    let longest = asked().map_or(MAX_PROCESSED, |_| u64::MAX);
    let mut programs = Vec::new();
    for case in all.iter().filter(|case| processed(case) <= longest) {
        programs.push(cases.program(case).unwrap());
    }
    let mut streams = Streams::seeded(3);
    let mut tally = Tally::default();
    for _ in 0..asked().unwrap_or_else(|| sample::cases(COUNT)) / 10 {
        tally.judge(streams.changed(&programs));
    }
    tally.tell("changed programs");
    assert!(tally.accepted > 0 && tally.rejected > 0, "{tally:?}");
}
