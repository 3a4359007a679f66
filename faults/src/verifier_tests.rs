//! The crate's own tests as what finds a fault, which is how cargo-mutants judges.

use std::error::Error;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use crate::campaign::{self, Outcome};
use crate::copy::SourceCopy;

/// A run of a test binary.
struct Step {
    /// The target that has the tests.
    target: &'static str,
    /// What the binary is to run.
    arguments: &'static [&'static str],
}

/// What runs: `tests/verifier`, then the unit tests. Those that take more than a second each are left
/// out, except for one, which has special fields.
const STEPS: [Step; 2] = [
    Step {
        target: "verifier",
        arguments: &[
            "--skip",
            "log::kernel::the_kernel_prints_the_same_of_our_objects",
            "--skip",
            "mutants::",
            "--skip",
            "helpers::",
            "--skip",
            "oracle::our_programs",
        ],
    },
    Step {
        target: "bpflab",
        arguments: &["verifier::", "--skip", "two_sets_of", "--skip", "one_set"],
    },
];

/// How long a step may take: several times what the slowest one takes.
const MOST: Duration = Duration::from_secs(30);

/// The variable that names the folder with the programs.
const SHARED: &str = "BPFLAB_SHARED";

/// The tests of the copy.
#[derive(Debug)]
pub struct Tests {
    /// Each binary and what it is to run.
    steps: Vec<(PathBuf, &'static [&'static str])>,
    folder: PathBuf,
    shared: PathBuf,
}

impl Tests {
    /// Builds the tests of a copy that is built.
    pub fn build(copy: SourceCopy<'_>) -> Result<Self, Box<dyn Error>> {
        let binaries = copy.tests()?;
        let mut steps = Vec::new();
        for step in &STEPS {
            let found = binaries.iter().find(|(target, _)| target == step.target);
            let (_, path) =
                found.ok_or_else(|| format!("the copy has no tests `{}`", step.target))?;
            steps.push((path.clone(), step.arguments));
        }
        Ok(Self {
            steps,
            folder: copy.sources(),
            shared: std::env::var_os(SHARED)
                .map_or_else(|| copy.root.join("../shared"), PathBuf::from),
        })
    }

    /// Runs the tests without a fault.
    ///
    /// # Errors
    /// A test fails: it would find every fault.
    pub fn without_fault(&self) -> Result<(), Box<dyn Error>> {
        match self.with_fault(0, "none")? {
            Some(outcome) => {
                let says = outcome.says.unwrap_or_default();
                Err(format!("a test fails without a fault: {says}").into())
            }
            None => Ok(()),
        }
    }

    /// Runs the tests until the first that fails; none if all pass.
    pub fn with_fault(&self, number: u32, id: &str) -> Result<Option<Outcome>, Box<dyn Error>> {
        let start = Instant::now();
        for (binary, arguments) in &self.steps {
            if let Some((oracle, says)) = self.step(binary, arguments, number)? {
                return Ok(Some(Outcome {
                    id: id.to_owned(),
                    oracle: Some(oracle.into()),
                    says: Some(says),
                    programs: None,
                    seconds: crate::seconds(start.elapsed()),
                    kernel: false,
                }));
            }
        }
        Ok(None)
    }

    /// Runs a step; returns how it found the fault, and what it says.
    fn step(
        &self,
        binary: &Path,
        arguments: &[&str],
        number: u32,
    ) -> Result<Option<(&'static str, String)>, Box<dyn Error>> {
        let mut child = Command::new(binary)
            .args(arguments)
            .args(["--test-threads", "1"])
            .current_dir(&self.folder)
            .env("BPFLAB_FAULT", number.to_string())
            .env(SHARED, &self.shared)
            // A test that is skipped finds nothing.
            .env("BPFLAB_REQUIRE", "corpus")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|why| crate::fault::at(binary, &why))?;
        let lines = campaign::lines(child.stdout.take());
        let start = Instant::now();
        loop {
            match lines.recv_timeout(MOST.saturating_sub(start.elapsed())) {
                Ok(line) => {
                    let failed = line.strip_suffix(" ... FAILED");
                    if let Some(name) = failed.and_then(|it| it.strip_prefix("test ")) {
                        campaign::end(&mut child)?;
                        return Ok(Some(("test", name.to_owned())));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    campaign::end(&mut child)?;
                    return Ok(Some(("hang", arguments.join(" "))));
                }
            }
        }
        let status = child.wait()?;
        match (status.code(), status.signal()) {
            (Some(0), _) => Ok(None),
            (None, Some(signal)) if campaign::FAULTS.contains(&signal) => {
                Ok(Some(("crash", format!("signal {signal}"))))
            }
            _ => Err(format!("{}: {status}", binary.display()).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What tests find that do this. The shell is the binary: one that was just written could
    /// not be run while a process that began meanwhile has it open.
    fn found(script: &'static [&'static str]) -> Result<Option<Outcome>, String> {
        let tests = Tests {
            steps: vec![("/bin/sh".into(), script)],
            folder: std::env::temp_dir(),
            shared: PathBuf::new(),
        };
        tests.with_fault(7, "a").map_err(|why| why.to_string())
    }

    #[test]
    fn a_failed_test_and_a_crash_find_a_fault() {
        let outcome = found(&[
            "-c",
            "echo test x::y ... ok; echo test a::b$BPFLAB_FAULT ... FAILED; exec sleep 60",
        ]);
        let outcome = outcome.unwrap().unwrap();
        let says = outcome.says.as_deref();
        assert_eq!(
            (outcome.oracle.as_deref(), says),
            (Some("test"), Some("a::b7"))
        );
        let outcome = found(&["-c", "kill -SEGV $$"]).unwrap().unwrap();
        assert_eq!(outcome.oracle.as_deref(), Some("crash"));
        assert!(found(&["-c", "echo test a ... ok"]).unwrap().is_none());
    }

    /// What a study can't judge ends it.
    #[test]
    fn other_ends_are_errors() {
        assert!(found(&["-c", "exit 3"]).is_err());
        assert!(found(&["-c", "kill -TERM $$"]).is_err());
    }
}
