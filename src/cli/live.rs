//! Arguments that `bpflab record` and `bpflab compare` share: whose events, for how long, and
//! how they are recorded.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;

use super::exit::{Exit, Failure};
use super::input::KernelArguments;
use crate::compare::live::{LiveError, LiveOptions, Summary};
use crate::compare::recording::WriteError;
use crate::kernel::process::Stop;
use crate::object::Object;
use crate::spec::{AttachName, attach_target, nearest_section};

/// Options of a recording session. Its arguments form a group of this name.
#[derive(Debug, Args)]
pub(super) struct LiveArguments {
    /// Command to run, and its arguments
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<OsString>,
    /// Run programs for every process, not only for the command and its children
    #[arg(long)]
    all: bool,
    /// Run programs for an existing process and its children, instead of a command
    #[arg(long, value_name = "PID", conflicts_with_all = ["command", "all"])]
    pid: Option<u32>,
    /// Stop after this many seconds, whatever the command does
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<Duration>,
    /// Set the size of the ring buffer between kernel and recorder: a power of two, in bytes or
    /// with K, M or G [default: 64M, or a 32nd of the free memory]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    buffer: Option<u32>,
    /// Run programs of type perf_event HZ times a second [default: 99]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u64).range(1..))]
    frequency: Option<u64>,
    /// Attach a program to another target than its section's, with or without its kind
    /// (--attach count=syscalls/sys_enter_read, --attach probe=/bin/server:handle)
    #[arg(long, value_name = "PROGRAM=TARGET", value_parser = target)]
    attach: Vec<(String, String)>,
}

impl LiveArguments {
    /// Opens an object and sets the attach targets of `--attach`.
    pub fn open(&self, path: &Path, kernel: &KernelArguments) -> Result<Object, Failure> {
        let mut object = kernel.open(path)?;
        for (program, target) in &self.attach {
            object.entry_mut(program)?.set_attach_target(target);
        }
        Ok(object)
    }

    /// The options of a session that SIGINT, SIGTERM and SIGHUP end.
    pub fn options(&self, programs: &[String]) -> Result<LiveOptions, Failure> {
        if self.command.is_empty() && self.pid.is_none() && !self.all {
            return Err(Failure::bad(
                "nothing to record: name a command (-- COMMAND…), a process (--pid PID) or \
                 all processes (--all)",
            ));
        }
        let stop = Stop::on_signals()
            .map_err(|errno| Failure::bad(format!("cannot install signal handlers: {errno}")))?;
        Ok(LiveOptions {
            programs: programs.to_vec(),
            all: self.all,
            pid: self.pid,
            buffer: self.buffer,
            duration: self.duration,
            stop: Some(stop),
            frequency: self.frequency,
        })
    }

    /// The command, if there is one. Under `--json` its standard output goes to standard error,
    /// so that our standard output is JSON only.
    pub fn command(&self, json: bool) -> Option<Command> {
        let (program, arguments) = self.command.split_first()?;
        let mut command = Command::new(program);
        command.args(arguments);
        if json {
            command.stdout(Stdio::from(std::io::stderr()));
        }
        Some(command)
    }
}

/// Records into a file, which is removed if the session doesn't start.
pub(super) fn record_to(
    path: &Path,
    record: impl FnOnce(&File) -> Result<Summary, LiveError>,
) -> Result<Summary, Failure> {
    let shown = path.display();
    let file = File::create(path).map_err(|error| Failure::bad(format!("{shown}: {error}")))?;
    record(&file).map_err(|error| {
        let written = file.metadata().ok().filter(|file| file.is_file());
        let written = written.map(|file| file.len());
        if written == Some(0) {
            // An error does no harm: the file stays.
            let _ = std::fs::remove_file(path);
        }
        match (error, written) {
            // A disk may be full.
            (LiveError::Write(error @ WriteError::Io(_)), Some(1..)) => Failure::bad(format!(
                "{shown}: {error}; the file is cut off there: `bpflab inspect` and `bpflab \
                 replay` read it up to that point"
            )),
            (LiveError::Write(error @ WriteError::Io(_)), _) => {
                Failure::bad(format!("{shown}: {error}"))
            }
            (error, _) => error.into(),
        }
    })
}

/// Parses a time in seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|error| error.to_string())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Parses a number of bytes.
fn bytes(text: &str) -> Result<u32, String> {
    let units = [("K", 10), ("M", 20), ("G", 30)];
    let unit = units.into_iter().find_map(|(unit, shift)| {
        let number = text.strip_suffix(unit)?;
        Some((number, shift))
    });
    let (number, shift) = unit.unwrap_or((text, 0));
    let number: u64 = number.parse().map_err(|error| format!("{error}"))?;
    let bytes = number
        .checked_mul(1 << shift)
        .and_then(|bytes| u32::try_from(bytes).ok());
    bytes.ok_or_else(|| "at most 1G".to_owned())
}

/// Parses `PROGRAM=TARGET`.
fn target(text: &str) -> Result<(String, String), String> {
    let (program, target) = text.split_once('=').ok_or("`=` and a target are missing")?;
    if AttachName::parse(target).is_none()
        && let Some(nearest) = nearest_section(target)
    {
        return Err(format!(
            "unknown kind of target in '{target}'; similar is '{nearest}'"
        ));
    }
    Ok((program.to_owned(), attach_target(target)))
}

impl From<LiveError> for Failure {
    fn from(error: LiveError) -> Self {
        match error {
            LiveError::Object(error) => error.into(),
            error if error.is_unavailable() => Self::with(Exit::Unavailable, error),
            error => Self::bad(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_times_and_targets_are_read() {
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("64M"), Ok(64 << 20));
        assert_eq!(bytes("1G"), Ok(1 << 30));
        assert!(bytes("4G").is_err() && bytes("M").is_err() && bytes("-1").is_err());
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert!(seconds("-1").is_err() && seconds("x").is_err());
        let pair = |a: &str, b: &str| Ok((a.to_owned(), b.to_owned()));
        assert_eq!(target("p=/bin/x:f=1"), pair("p", "/bin/x:f=1"));
        assert_eq!(target("p=tracepoint:a:b"), pair("p", "a/b"));
        assert_eq!(target("p=kprobes:mine"), pair("p", "kprobes/mine"));
        assert!(target("p").is_err());
        assert_eq!(
            target("p=tracepont:a:b").unwrap_err(),
            "unknown kind of target in 'tracepont:a:b'; similar is 'tp/a/b'"
        );
    }
}
