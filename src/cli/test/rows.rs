//! Results of tests, as text and as JSON.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::run::Ran;
use crate::cli::exit::{Exit, Failure};
use crate::harness::EngineKind;

/// The result of a test. Its fields are the keys of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct TestRow {
    /// `test`.
    pub kind: &'static str,
    /// The file of the test.
    pub file: String,
    pub test: String,
    pub status: Status,
    /// The engines that it ran on.
    pub engines: Vec<&'static str>,
    /// The engines that it did not run on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    pub seconds: f64,
    /// What differs from the expected, or why the test can't run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<TestFailure>,
    /// Programs that were left out, uninitialised bytes that left programs.
    #[serde(skip)]
    pub warnings: Vec<String>,
    #[serde(skip)]
    pub exit: Exit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Passed,
    Failed,
    /// It ran on no engine.
    Skipped,
    /// It can't run.
    Error,
}

#[derive(Debug, Serialize)]
pub(super) struct Skipped {
    pub engine: &'static str,
    pub why: String,
}

/// The same difference on some engines.
#[derive(Debug, Serialize)]
pub(super) struct TestFailure {
    pub engines: Vec<&'static str>,
    pub text: String,
}

impl TestRow {
    pub fn new(file: &str, test: &str) -> Self {
        Self {
            kind: "test",
            file: file.to_owned(),
            test: test.to_owned(),
            status: Status::Passed,
            engines: Vec::new(),
            skipped: Vec::new(),
            seconds: 0.0,
            failures: Vec::new(),
            warnings: Vec::new(),
            exit: Exit::Fine,
        }
    }

    /// Adds the time that it took.
    pub fn took(&mut self, time: Duration) {
        self.seconds += time.as_secs_f64();
    }

    /// Adds what became of it on an engine. What it can't do on one engine it can't do on the
    /// others: further errors are left out.
    pub fn ran(&mut self, engine: EngineKind, ran: Result<Ran, Failure>) -> Result<(), Failure> {
        let engine = engine.name();
        match ran {
            Ok(ran) => {
                self.warnings.extend(ran.warnings);
                match ran.skipped {
                    Some(why) => self.skipped.push(Skipped { engine, why }),
                    None => self.engines.push(engine),
                }
                for text in ran.differences {
                    self.fail(Status::Failed, Some(engine), text);
                }
                Ok(())
            }
            Err(_) if !self.failures.is_empty() => Ok(()),
            Err(failure) => self.error(failure),
        }
    }

    /// Adds what keeps it from running.
    pub fn error(&mut self, failure: Failure) -> Result<(), Failure> {
        let Failure::Error { exit, text } = failure else {
            return Err(failure);
        };
        self.exit = self.exit.max(exit);
        // A program that faults or is rejected is what a test is there for.
        let status = match exit {
            Exit::No => Status::Failed,
            _ => Status::Error,
        };
        self.fail(status, None, text);
        Ok(())
    }

    /// Ends it, after the last engine.
    pub fn finish(&mut self) {
        match self.status {
            Status::Failed => self.exit = self.exit.max(Exit::No),
            Status::Passed if self.engines.is_empty() => self.status = Status::Skipped,
            _ => {}
        }
    }

    /// Adds a difference on an engine, or what keeps it from running on any.
    pub fn fail(&mut self, status: Status, engine: Option<&'static str>, text: String) {
        if self.status != Status::Error {
            self.status = status;
        }
        match self.failures.iter_mut().find(|known| known.text == text) {
            Some(known) => known.engines.extend(engine),
            None => self.failures.push(TestFailure {
                engines: engine.into_iter().collect(),
                text,
            }),
        }
    }

    /// Why it ran on no engine.
    pub fn skip_text(&self) -> String {
        let mut why: Vec<_> = self
            .skipped
            .iter()
            .map(|skipped| skipped.why.as_str())
            .collect();
        why.dedup();
        why.join("; ")
    }

    /// The failures as text; those that not all engines have with the names of the engines.
    pub fn failure_text(&self) -> String {
        let told = self.failures.iter().map(|failure| {
            let some = failure.engines.len() < self.engines.len();
            match some && !failure.engines.is_empty() {
                true => format!("on {}: {}", failure.engines.join(", "), failure.text),
                false => failure.text.clone(),
            }
        });
        told.collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for TestRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, test, .. } = self;
        let status = match self.status {
            Status::Passed => "ok     ",
            Status::Failed => "FAILED ",
            Status::Skipped => "skipped",
            Status::Error => "ERROR  ",
        };
        writeln!(f, "{status} {file}: {test}")?;
        for line in self.failure_text().lines() {
            writeln!(f, "         {line}")?;
        }
        // Machine code that a host can't run is said once, in the summary.
        let skipped = self
            .skipped
            .iter()
            .filter(|skipped| skipped.engine != "jit");
        for Skipped { engine, why } in skipped {
            let why = why.lines().next().unwrap_or_default();
            writeln!(f, "         not on {engine}: {why}")?;
        }
        Ok(())
    }
}

/// The numbers of a run of tests. Its fields are the keys of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    /// `summary`.
    kind: &'static str,
    pub passed: usize,
    pub failed: usize,
    /// Tests that ran on no engine.
    pub skipped: usize,
    /// Tests and files that can't run.
    pub errors: usize,
    /// Tests that `--name` leaves out.
    pub left_out: usize,
    /// How many tests ran on each engine.
    #[serde(serialize_with = "by_name")]
    pub engines: Vec<(&'static str, usize)>,
    pub seconds: f64,
}

impl Summary {
    pub const fn new() -> Self {
        Self {
            kind: "summary",
            passed: 0,
            failed: 0,
            skipped: 0,
            errors: 0,
            left_out: 0,
            engines: Vec::new(),
            seconds: 0.0,
        }
    }

    pub fn add(&mut self, row: &TestRow) {
        match row.status {
            Status::Passed => self.passed += 1,
            Status::Failed => self.failed += 1,
            Status::Skipped => self.skipped += 1,
            Status::Error => self.errors += 1,
        }
        for engine in &row.engines {
            match self.engines.iter_mut().find(|(known, _)| known == engine) {
                Some((_, tests)) => *tests += 1,
                None => self.engines.push((engine, 1)),
            }
        }
        self.seconds += row.seconds;
    }

    /// Whether no test was found.
    pub const fn is_empty(&self) -> bool {
        self.passed + self.failed + self.skipped + self.errors + self.left_out == 0
    }
}

fn by_name<S: Serializer>(
    engines: &[(&'static str, usize)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(engines.iter().copied())
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
            errors,
            left_out,
            ..
        } = self;
        write!(f, "{passed} passed, {failed} failed")?;
        if *skipped > 0 {
            write!(f, ", {skipped} skipped")?;
        }
        if *errors > 0 {
            write!(f, ", {errors} with errors")?;
        }
        if *left_out > 0 {
            write!(f, ", {left_out} left out")?;
        }
        let on = self
            .engines
            .iter()
            .map(|(engine, tests)| format!("{tests} on {engine}"));
        let on: Vec<_> = on.collect();
        if !on.is_empty() {
            write!(f, " ({})", on.join(", "))?;
        }
        writeln!(f)
    }
}
