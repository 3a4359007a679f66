//! Records an example while a command runs, and replays it on every engine.

use crate::disk::Disk;
use crate::shared::{Need, skip};
use crate::work;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use bpflab::Object;
use bpflab::compare::live::{Live, LiveError, LiveOptions, Summary};
use bpflab::compare::replay::{Replay, Report, Word};
use bpflab::harness::EngineKind;

/// How many events to make: a few thousand, or `BPFLAB_LIVE_EVENTS`.
pub fn events() -> u64 {
    let given = std::env::var("BPFLAB_LIVE_EVENTS").ok();
    given.map_or(3000, |text| text.parse().expect("a number of events"))
}

/// An example of the repository.
pub fn example(name: &str) -> Object {
    let path = format!("{}/examples/bpf/{name}.bpf.o", env!("CARGO_MANIFEST_DIR"));
    Object::open(path).unwrap()
}

/// Prints an example's result, for `examples/kernels.sh`.
fn row(name: &str, result: &str) {
    eprintln!("row | {name} | {result}");
}

/// Prints what the kernel lacks for an example.
pub fn lacks(name: &str, why: &str) {
    row(name, &format!("lacks: {}", one_line(why)));
}

/// A text that fits a row.
fn one_line(text: &str) -> String {
    let binary = std::env::current_exe().unwrap_or_default();
    // The name of this binary says nothing to a reader.
    let text = text.replace(&*binary.to_string_lossy(), "BINARY");
    text.replace(['\n', '|'], " ")
}

/// A disk for an example. None if there can't be one, which is printed.
pub fn disk_for(name: &str) -> Option<Disk> {
    Disk::new(name)
        .map_err(|why| {
            lacks(name, &why);
            skip(Need::Tools, format_args!("{name}: {why}"));
        })
        .ok()
}

/// Whether the program is there that the examples of processes start; skips the test otherwise.
pub fn process_starts(name: &str) -> bool {
    let is_there = Path::new(work::PROCESS).exists();
    if !is_there {
        let why = format!("{} is not there", work::PROCESS);
        lacks(name, &why);
        skip(Need::Tools, format_args!("{name}: {why}"));
    }
    is_there
}

/// A recording, and its replay on each engine.
pub struct Compared {
    name: String,
    summary: Summary,
    reports: Vec<Report>,
}

/// Records an object's programs while a command runs. None if this machine can't, which is
/// printed.
pub fn record(
    name: &str,
    object: &Object,
    options: &LiveOptions,
    command: &mut Command,
) -> Option<(Vec<u8>, Summary)> {
    record_if(Need::Feature, name, object, options, command)
}

/// The same for programs with this need.
fn record_if(
    need: Need,
    name: &str,
    object: &Object,
    options: &LiveOptions,
    command: &mut Command,
) -> Option<(Vec<u8>, Summary)> {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        let why = "/sys/kernel/btf/vmlinux is not there";
        lacks(name, why);
        skip(Need::Kernel, format_args!("{name}: {why}"));
        return None;
    }
    let mut bytes = Vec::new();
    let recorded = match Live::start(object, options) {
        Ok(mut live) => live.run(command, &mut bytes),
        Err(error) => Err(error),
    };
    match recorded {
        Ok(summary) => Some((bytes, summary)),
        Err(error) if LiveError::is_unavailable(&error) => {
            lacks(name, &error.to_string());
            skip(need, format_args!("{name}: {error}"));
            None
        }
        Err(error) => {
            row(name, &format!("failed: {}", one_line(&error.to_string())));
            panic!("{name}: {error}")
        }
    }
}

/// Records, and replays on every engine.
pub fn compare(
    name: &str,
    object: &Object,
    options: &LiveOptions,
    command: &mut Command,
) -> Option<Compared> {
    compare_if(Need::Feature, name, object, options, command)
}

/// The same for programs with this need.
pub fn compare_if(
    need: Need,
    name: &str,
    object: &Object,
    options: &LiveOptions,
    command: &mut Command,
) -> Option<Compared> {
    let (bytes, summary) = record_if(need, name, object, options, command)?;
    let replay = Replay::new(object, bytes).unwrap();
    let reports = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit].map(|engine| {
        let start = Instant::now();
        let report = replay.run(engine).unwrap();
        let took = start.elapsed();
        let firings = report.firings();
        eprintln!(
            "{name}: {engine}: {}, {firings} firings in {took:?}",
            report.word()
        );
        report
    });
    Some(Compared {
        name: name.to_owned(),
        summary,
        reports: reports.into(),
    })
}

impl Compared {
    /// Prints the verdicts, a line for each program.
    pub fn tell(&self) {
        for (at, program) in self.reports[0].programs.iter().enumerate() {
            let verdicts = self.reports.iter().map(|report| {
                let program = &report.programs[at];
                let engine = program.engine.map_or("none", EngineKind::name);
                format!(
                    "{}: {} (on {engine})",
                    report.engine,
                    program.verdict.word()
                )
            });
            let verdicts: Vec<_> = verdicts.collect();
            eprintln!(
                "| {} | {} | {} | {} |",
                self.name,
                program.name,
                program.firings,
                verdicts.join(" | ")
            );
        }
        for report in &self.reports {
            for missing in &report.missing {
                eprintln!("  {}: missing: {missing}", report.engine);
            }
        }
    }

    /// The report of each engine.
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// Asserts that nothing differs on any engine, that exactly these parts were not compared, and
    /// that there were at least so many firings.
    #[track_caller]
    pub fn expect_without(&self, least: u64, parts: &[&str]) {
        self.expect(least, &[Word::PartlyCompared]);
        for report in &self.reports {
            for gap in report.gaps() {
                assert!(parts.contains(&&*gap.name), "{}: {gap:?}", self.name);
            }
        }
    }

    /// Asserts that the summary says that the programs run in any process.
    #[track_caller]
    pub fn expect_anywhere(&self) {
        let except = self.summary.except();
        for program in &self.reports[0].programs {
            assert!(except.contains(&*program.name), "{except}");
        }
    }

    /// Asserts that each program fired at least so often, and that the command succeeded.
    #[track_caller]
    pub fn expect_each(&self, least: u64) {
        let name = &self.name;
        for program in &self.reports[0].programs {
            let firings = program.firings;
            assert!(firings >= least, "{name}: {}: {firings}", program.name);
        }
        let status = self.summary.status;
        let succeeded = status.is_some_and(|status| status.success());
        assert!(succeeded, "{name}: the command: {status:?}");
    }

    /// Asserts the verdict of every engine, and that there were at least so many firings.
    #[track_caller]
    pub fn expect(&self, least: u64, expected: &[Word]) {
        self.tell();
        let is_fine =
            |report: &Report| expected.contains(&report.word()) && report.firings() >= least;
        let is_fine = self.summary.lost() == 0 && self.reports.iter().all(is_fine);
        self.print_row(is_fine);
        assert_eq!(self.summary.lost(), 0, "{}: {:?}", self.name, self.summary);
        for report in &self.reports {
            assert!(
                expected.contains(&report.word()),
                "{}: {report:#?}",
                self.name
            );
            assert!(report.firings() >= least, "{}: {report:#?}", self.name);
        }
    }

    /// Prints the verdict, with the parts that were not compared and the number of firings.
    fn print_row(&self, is_fine: bool) {
        let mut words: Vec<_> = self.reports.iter().map(Report::word).collect();
        words.dedup();
        let words: Vec<_> = words.iter().map(Word::to_string).collect();
        let mut parts: Vec<String> = Vec::new();
        for gap in self.reports.iter().flat_map(Report::gaps) {
            let part = match is_fine {
                true => gap.name,
                false => one_line(&format!("{}: {}", gap.name, gap.why)),
            };
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        let parts = match parts.is_empty() {
            true => String::new(),
            false => format!(" (not {})", parts.join(", ")),
        };
        let firings = self.reports.iter().map(Report::firings).min();
        let result = format!(
            "{}{parts}, {}",
            words.join(" or "),
            firings.unwrap_or_default()
        );
        let failed = if is_fine { "" } else { "failed: " };
        row(&self.name, &format!("{failed}{result}"));
    }
}
