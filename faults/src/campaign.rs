//! The campaign of one fault.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// How the campaigns run.
#[derive(Debug, Clone, Copy)]
pub struct Campaign<'a> {
    pub binary: &'a Path,
    pub seconds: u64,
    /// How many programs at most.
    pub programs: Option<u64>,
    pub threads: u32,
    pub seed: u64,
    /// Whether the running kernel is asked.
    pub kernel: bool,
    /// The oracles; all if there are none.
    pub oracle: Option<&'a str>,
}

/// The outcome of a campaign.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub id: String,
    /// The oracle that found the fault, or how the command ended because of it; none if the
    /// fault was not found.
    pub oracle: Option<String>,
    /// What it says.
    pub says: Option<String>,
    /// How many programs were tried; none if the command did not end by itself.
    pub programs: Option<u64>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Whether the running kernel was asked.
    pub kernel: bool,
}

impl Outcome {
    pub const fn found(&self) -> bool {
        self.oracle.is_some()
    }
}

/// The time after its own that a campaign may take.
const EXTRA_TIME: Duration = Duration::from_secs(60);

/// The signals of a process that crashes: SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV. Others
/// come from outside, and say nothing about a fault.
pub const FAULTS: [i32; 6] = [4, 5, 6, 7, 8, 11];

/// A line that `bpflab fuzz --json` prints.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Line {
    Finding {
        oracle: String,
        problem: String,
        programs: u64,
        seconds: f64,
    },
    Summary {
        programs: u64,
    },
}

/// Kinds of findings: the oracle, and the problem.
pub type Kinds = BTreeSet<(String, String)>;

impl Campaign<'_> {
    /// Runs the campaign without a fault to its end; returns its outcome, and the kinds of its
    /// findings.
    pub fn without_fault(&self) -> Result<(Outcome, Kinds), Box<dyn Error>> {
        let mut kinds = Kinds::new();
        let outcome = self.run(0, "none", |kind| {
            kinds.insert(kind);
            false
        })?;
        Ok((outcome, kinds))
    }

    /// Runs the campaign of the fault with this number until its first finding of a kind that
    /// is not `known`.
    pub fn with_fault(
        &self,
        number: u32,
        id: &str,
        known: &Kinds,
    ) -> Result<Outcome, Box<dyn Error>> {
        self.run(number, id, |kind| !known.contains(&kind))
    }

    /// Runs a campaign until its first finding that `counts`.
    fn run(
        &self,
        number: u32,
        id: &str,
        mut counts: impl FnMut((String, String)) -> bool,
    ) -> Result<Outcome, Box<dyn Error>> {
        let mut child = self.command(number).spawn()?;
        let stderr = reader(child.stderr.take());
        let lines = lines(child.stdout.take());
        let start = Instant::now();
        let most = Duration::from_secs(self.seconds) + EXTRA_TIME;
        let mut outcome = Outcome {
            id: id.to_owned(),
            oracle: None,
            says: None,
            programs: None,
            seconds: 0.0,
            kernel: self.kernel,
        };
        loop {
            let line = match lines.recv_timeout(most.saturating_sub(start.elapsed())) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    end(&mut child)?;
                    outcome.oracle = Some("hang".into());
                    outcome.seconds = crate::seconds(start.elapsed());
                    return Ok(outcome);
                }
            };
            let line = serde_json::from_str(&line)
                .map_err(|why| format!("{id}: the campaign's report: {why}: {line}"))?;
            match line {
                Line::Finding {
                    oracle,
                    problem,
                    programs,
                    seconds,
                } => {
                    if counts((oracle.clone(), problem.clone())) {
                        end(&mut child)?;
                        outcome.oracle = Some(oracle);
                        outcome.says = Some(problem);
                        outcome.programs = Some(programs);
                        outcome.seconds = seconds;
                        return Ok(outcome);
                    }
                }
                Line::Summary { programs } => outcome.programs = Some(programs),
            }
        }
        let status = child.wait()?;
        outcome.seconds = crate::seconds(start.elapsed());
        let stderr = stderr.join().unwrap_or_default();
        match (status.code(), status.signal()) {
            (Some(0 | 1), _) => {}
            (Some(101), _) => {
                outcome.oracle = Some("panic".into());
                let mut lines = stderr.lines().skip_while(|line| !line.contains("panicked"));
                outcome.says = lines.nth(1).map(str::to_owned);
            }
            (None, Some(signal)) if FAULTS.contains(&signal) => {
                outcome.oracle = Some("crash".into());
                outcome.says = Some(format!("signal {signal}"));
            }
            _ => return Err(format!("{id}: the campaign failed: {status}: {stderr}").into()),
        }
        Ok(outcome)
    }

    fn command(&self, number: u32) -> Command {
        let mut command = Command::new(self.binary);
        command
            .args(["fuzz", "--json", "--no-reduce", "--findings", "1000"])
            .args(["--seconds", &self.seconds.to_string()])
            .args(["--threads", &self.threads.to_string()])
            .args(["--seed", &self.seed.to_string()])
            .env("BPFLAB_FAULT", number.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(programs) = self.programs {
            command.args(["--programs", &programs.to_string()]);
        }
        if let Some(oracle) = self.oracle {
            command.args(["--oracle", oracle]);
        }
        if !self.kernel {
            command.arg("--no-kernel");
        }
        command
    }
}

/// Ends a process.
pub fn end(child: &mut Child) -> Result<(), std::io::Error> {
    child.kill()?;
    child.wait().map(|_| ())
}

/// The lines of a pipe, from a thread that reads it to its end.
pub fn lines(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let Some(pipe) = pipe else { return };
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break; // the receiver has seen enough
            }
        }
    });
    receiver
}

/// A thread that reads a pipe to its end.
fn reader(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error counts.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// The outcome of a command that ends itself by a signal.
    fn ended_by(signal: &str) -> Result<Outcome, String> {
        let name = format!("bpflab-faults-{}-{signal}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, format!("#!/bin/sh\nkill -{signal} $$\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        let campaign = Campaign {
            binary: &path,
            seconds: 1,
            programs: None,
            threads: 1,
            seed: 1,
            kernel: false,
            oracle: None,
        };
        let outcome = campaign.with_fault(1, "a", &Kinds::new());
        std::fs::remove_file(&path).unwrap();
        outcome.map_err(|why| why.to_string())
    }

    /// A crash finds a fault; a campaign that is ended from outside finds nothing.
    #[test]
    fn only_signals_of_crashes_find_a_fault() {
        let outcome = ended_by("SEGV").unwrap();
        assert_eq!(outcome.oracle.as_deref(), Some("crash"));
        assert_eq!(outcome.says.as_deref(), Some("signal 11"));
        for signal in ["TERM", "KILL", "INT"] {
            let error = ended_by(signal).unwrap_err();
            assert!(error.contains("the campaign failed"), "{error}");
        }
    }
}
