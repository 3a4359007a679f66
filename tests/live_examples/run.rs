//! Records an example while a command runs, and replays it on every engine.

use crate::shared::{Need, skip};
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
    if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
        skip(
            Need::Kernel,
            format_args!("{name}: /sys/kernel/btf/vmlinux is not there"),
        );
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
            skip(need, format_args!("{name}: {error}"));
            None
        }
        Err(error) => panic!("{name}: {error}"),
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
}
