//! Reports of a campaign: `bpflab fuzz`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::fuzz::{CampaignOptions, Counts, Finding, Strategy, Summary};

/// The progress of a campaign in one line.
#[derive(Debug)]
pub struct FuzzProgress<'a> {
    counts: &'a Counts,
    elapsed: Duration,
    found: usize,
}

impl<'a> FuzzProgress<'a> {
    /// Of these counts, after a time, with so many findings.
    #[must_use]
    pub const fn new(counts: &'a Counts, elapsed: Duration, found: usize) -> Self {
        Self {
            counts,
            elapsed,
            found,
        }
    }
}

impl fmt::Display for FuzzProgress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.counts;
        write!(
            f,
            "{} programs ({:.0}/s), {:.0} % accepted, {:.0} instructions/s, {} rules, {} findings",
            counts.programs,
            rate(counts.programs, self.elapsed),
            percent(counts.accepted, counts.programs),
            rate(counts.processed, self.elapsed),
            counts.rules.len(),
            self.found
        )
    }
}

#[allow(clippy::cast_precision_loss, reason = "a figure to read")]
fn rate(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64().max(1e-9)
}

#[allow(clippy::cast_precision_loss, reason = "a figure to read")]
fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// A number with one digit after the point.
fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// A finding. Its fields are the keys of `--json`.
#[derive(Debug, Serialize)]
pub struct FuzzFinding {
    /// `finding`.
    kind: &'static str,
    /// The oracle that found it.
    oracle: &'static str,
    /// What is wrong: the same for findings with about the same cause.
    problem: String,
    /// bpflab's answer.
    ours: String,
    /// What the oracle has instead.
    other: String,
    /// How the program was made.
    strategy: Option<&'static str>,
    /// The seed of the campaign.
    seed: u64,
    /// The number of the program.
    number: u64,
    /// Programs judged when it was found.
    programs: u64,
    /// Seconds until it was found.
    seconds: f64,
    /// Instruction slots of the program as it was made.
    insns_before: usize,
    /// Instruction slots of the reduced program.
    insns: usize,
    /// The listing of the reduced program, by lines.
    listing: Vec<String>,
    /// The case file.
    file: Option<String>,
    /// The command that finds it again.
    command: String,
}

impl FuzzFinding {
    /// The report on a finding, written to a file if one is given; otherwise the options with
    /// which the campaign made its programs, besides the seed, find it again.
    #[must_use]
    pub fn new(finding: &Finding, file: Option<&Path>, made_with: &str) -> Self {
        let candidate = &finding.candidate;
        let oracle = finding.problem.oracle.name();
        let file = file.map(|file| file.display().to_string());
        let options = &finding.options;
        let command = match &file {
            Some(file) => format!("bpflab fuzz --replay {file} --oracle {oracle}{options}"),
            None => format!(
                "bpflab fuzz --seed {} --first {} --programs 1{made_with} --oracle {oracle}{options}",
                finding.seed, candidate.number
            ),
        };
        Self {
            kind: "finding",
            oracle,
            problem: finding.problem.kind.clone(),
            ours: finding.problem.ours.clone(),
            other: finding.problem.other.clone(),
            strategy: candidate.strategy.map(Strategy::name),
            seed: finding.seed,
            number: candidate.number,
            programs: finding.programs,
            seconds: tenths(finding.elapsed.as_secs_f64()),
            insns_before: finding.insns_before,
            insns: candidate.program.insns.len(),
            listing: candidate.listing().lines().map(str::to_owned).collect(),
            file,
            command,
        }
    }
}

impl fmt::Display for FuzzFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.oracle, self.problem)?;
        writeln!(f, "  {}", self.ours.trim_end())?;
        writeln!(f, "  {}", self.other.trim_end())?;
        for line in &self.listing {
            writeln!(f, "    {line}")?;
        }
        writeln!(
            f,
            "  program {} of seed {}, after {} programs and {} s; {} of {} instructions left",
            self.number, self.seed, self.programs, self.seconds, self.insns, self.insns_before
        )?;
        writeln!(f, "  again: {}", self.command)
    }
}

/// The result of a campaign. Its fields are the keys of `--json`.
#[derive(Debug, Serialize)]
pub struct FuzzSummary {
    /// `summary`.
    kind: &'static str,
    /// The seed.
    seed: u64,
    /// Threads.
    threads: usize,
    /// The oracles.
    oracles: Vec<&'static str>,
    /// Seconds.
    seconds: f64,
    /// The command of another build whose engines were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    other_build: Option<String>,
    /// Programs judged.
    programs: u64,
    /// Programs a second.
    programs_per_second: f64,
    /// Accepted programs.
    accepted: u64,
    /// Accepted programs of a hundred.
    accepted_percent: f64,
    /// Rejected programs.
    rejected: u64,
    /// Programs that the verifier does not judge.
    unjudged: u64,
    /// Different error lines of rejects, without their numbers.
    rules: usize,
    /// Instructions that the verifier processed.
    processed: u64,
    /// Processed instructions a second and thread.
    processed_per_second_and_thread: f64,
    /// Runs in the checked engine.
    runs: u64,
    /// Steps of these runs that lay in an explored state.
    held: u64,
    /// Steps compared with the states in the kernel's log.
    claims: u64,
    /// Programs whose exploration for the state oracle was not complete.
    incomplete: u64,
    /// Runs on other engines.
    engine_runs: u64,
    /// Runs on the engines of another build.
    other_runs: u64,
    /// Test runs in the kernel.
    kernel_runs: u64,
    /// Verdicts of the kernel.
    kernel_verdicts: u64,
    /// Programs without a verdict of the kernel.
    no_kernel_verdict: u64,
    /// Rejected programs without loops that were run.
    rejected_run: u64,
    /// Those that never faulted.
    precision: u64,
    /// Problems that are known to be Linux's.
    known: u64,
    /// Programs and accepted programs by strategy.
    strategies: BTreeMap<&'static str, (u64, u64)>,
    /// Kinds of findings.
    findings: usize,
    /// How often each was found, by oracle and kind.
    kinds: BTreeMap<String, u64>,
}

impl FuzzSummary {
    /// The report on a campaign.
    #[must_use]
    pub fn new(summary: &Summary, options: &CampaignOptions) -> Self {
        let counts = &summary.counts;
        let threads = options.threads.max(1);
        let processed = rate(counts.processed, summary.elapsed);
        let each = u32::try_from(threads).map_or(1.0, f64::from);
        Self {
            kind: "summary",
            seed: options.seed,
            threads,
            oracles: options.oracles.names(),
            other_build: options.other_build.as_ref().map(ToString::to_string),
            seconds: tenths(summary.elapsed.as_secs_f64()),
            programs: counts.programs,
            programs_per_second: tenths(rate(counts.programs, summary.elapsed)),
            accepted: counts.accepted,
            accepted_percent: tenths(percent(counts.accepted, counts.programs)),
            rejected: counts.rejected,
            unjudged: counts.unjudged,
            rules: counts.rules.len(),
            processed: counts.processed,
            processed_per_second_and_thread: tenths(processed / each),
            runs: counts.runs,
            held: counts.held,
            claims: counts.claims,
            incomplete: counts.incomplete,
            engine_runs: counts.engine_runs,
            other_runs: counts.other_runs,
            kernel_runs: counts.kernel_runs,
            kernel_verdicts: counts.kernel_verdicts,
            no_kernel_verdict: counts.no_kernel_verdict,
            rejected_run: counts.rejected_run,
            precision: counts.precision,
            known: counts.known,
            strategies: counts
                .strategies
                .iter()
                .map(|(strategy, counts)| (strategy.name(), *counts))
                .collect(),
            findings: summary.findings.len(),
            kinds: summary
                .kinds
                .iter()
                .map(|((oracle, kind), count)| (format!("{oracle}: {kind}"), *count))
                .collect(),
        }
    }
}

impl fmt::Display for FuzzSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} programs in {} s on {} threads ({}/s), seed {}, oracles {}",
            self.programs,
            self.seconds,
            self.threads,
            self.programs_per_second,
            self.seed,
            self.oracles.join(", ")
        )?;
        writeln!(
            f,
            "{} accepted ({} %), {} rejected by {} rules, {} not judged",
            self.accepted, self.accepted_percent, self.rejected, self.rules, self.unjudged
        )?;
        writeln!(
            f,
            "{} instructions processed ({}/s and thread)",
            self.processed, self.processed_per_second_and_thread
        )?;
        writeln!(
            f,
            "{} checked runs with {} steps in an explored state, {} compared with the kernel's log; \
             {} programs explored in part",
            self.runs, self.held, self.claims, self.incomplete
        )?;
        writeln!(
            f,
            "{} runs on other engines, {} in the kernel; {} verdicts of the kernel, {} without",
            self.engine_runs, self.kernel_runs, self.kernel_verdicts, self.no_kernel_verdict
        )?;
        if let Some(other) = &self.other_build {
            writeln!(f, "{} runs on the engines of {other}", self.other_runs)?;
        }
        writeln!(
            f,
            "{} of {} rejected programs without loops never faulted",
            self.precision, self.rejected_run
        )?;
        for (strategy, (made, accepted)) in &self.strategies {
            let share = percent(*accepted, *made);
            writeln!(
                f,
                "  {strategy:<12} {made:>9} programs, {share:.1} % accepted"
            )?;
        }
        for (kind, count) in &self.kinds {
            writeln!(f, "  {count:>6} x {kind}")?;
        }
        writeln!(
            f,
            "{} findings, {} known problems of Linux",
            self.findings, self.known
        )
    }
}
