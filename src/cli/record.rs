//! `bpflab record`: what happens in the kernel while a command runs.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;

use super::exit::{Exit, Failure};
use super::input::KernelArguments;
use super::printer::Printer;
use crate::compare::live::{Live, LiveError, LiveEvents, LiveOptions, Summary};
use crate::kernel::process::Stop;
use crate::report::RecordReport;

/// Record what happens in the kernel while a command runs (Linux, root)
///
/// The object's programs are attached, the command is run, and each firing of them goes
/// into a file: the context, all that the program took from outside, what it did and what
/// it returned, with the maps before and after. `bpflab replay` runs it again elsewhere,
/// without root. Without an object the records of tracepoints are kept.
///
/// Programs run for the command and its children only, from before its first instruction;
/// for all others they do nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
It ends with the command, after --duration, or by SIGINT or SIGTERM, which end the command,
too; what was recorded until then is in the file. Under --json the command's standard output
goes to the standard error.

Exit codes: 0 all is in the file, 1 something was lost, 2 bad usage, a command that can't be
started, 3 not available here. How the command ended is in what is printed.

Examples:
  bpflab record write_hist.bpf.o -o dd.rec -- dd if=/dev/zero of=/dev/null count=1000
  bpflab record prog.bpf.o handle_exec -o make.rec -- make -j8
  bpflab record prog.bpf.o -o all.rec --all --duration 5
  bpflab record syscalls/sys_enter_write 'sched/sched_process_*' -o ls.rec -- ls
  bpflab record prog.bpf.o -o x.rec --json -- ./test | jq .lost")]
pub(super) struct Arguments {
    /// Object file, and which of its programs [default: all that it loads]; or, without an
    /// object, tracepoints: GROUP/NAME, in which * stands for anything
    #[arg(value_name = "OBJ [PROGRAM]|GROUP/NAME", required = true)]
    what: Vec<String>,
    /// File to write
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<OsString>,
    /// Record what happens to everybody, not only to the command and its children
    #[arg(long, conflicts_with = "pid")]
    all: bool,
    /// Record a process that runs already, and its children, instead of a command
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pid: Option<u32>,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<Duration>,
    /// Memory between kernel and recorder: a power of two, in bytes or with K, M or G
    /// [default: 64M, or a 32nd of the free memory]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    buffer: Option<u32>,
    /// How often programs of type perf_event run, in times a second [default: 99]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u64).range(1..))]
    frequency: Option<u64>,
    /// Attach a program elsewhere than its section says: what would follow the prefix there
    /// (--attach count=syscalls/sys_enter_read, --attach probe=/bin/server:handle)
    #[arg(long, value_name = "PROGRAM=TARGET", value_parser = target)]
    attach: Vec<(String, String)>,
    #[command(flatten)]
    kernel: KernelArguments,
}

/// A time in seconds.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|error| error.to_string())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// A number of bytes.
pub(super) fn bytes(text: &str) -> Result<u32, String> {
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
    bytes.ok_or_else(|| "it can have 1G at most".to_owned())
}

/// `PROGRAM=TARGET`.
pub(super) fn target(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').ok_or("`=` and a target are missing")?;
    Ok((parts.0.to_owned(), parts.1.to_owned()))
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

/// What is recorded.
enum Session {
    Object(Box<Live>),
    Events(LiveEvents),
}

impl Session {
    fn record(&mut self, command: Option<&mut Command>, file: &File) -> Result<Summary, LiveError> {
        match (self, command) {
            (Self::Object(live), Some(command)) => live.run(command, file),
            (Self::Object(live), None) => live.watch(file),
            (Self::Events(live), Some(command)) => live.run(command, file),
            (Self::Events(live), None) => live.watch(file),
        }
    }
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    if arguments.command.is_empty() && arguments.pid.is_none() && !arguments.all {
        return Err(Failure::bad(
            "what is to be recorded? Name a command (-- COMMAND…), a process (--pid PID), or \
             everybody (--all)",
        ));
    }
    let stop = Stop::on_signals()
        .map_err(|errno| Failure::bad(format!("signals can't be waited for: {errno}")))?;
    let mut session = arguments.session(stop)?;
    let path = &arguments.output;
    let unwritable = |error| Failure::bad(format!("{}: {error}", path.display()));
    let file = File::create(path).map_err(unwritable)?;
    let mut command = arguments.command(printer.is_json());
    let recorded = session.record(command.as_mut(), &file);
    let summary = recorded.inspect_err(|_| remove_if_empty(path))?;
    let exit = match summary.lost() {
        0 => Exit::Fine,
        _ => Exit::No,
    };
    printer.show(&RecordReport::new(path.display().to_string(), summary))?;
    Ok(exit)
}

/// Leaves nothing of a recording that has not begun.
fn remove_if_empty(path: &Path) {
    if std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0) {
        // It does no harm if it stays.
        let _ = std::fs::remove_file(path);
    }
}

impl Arguments {
    fn session(&self, stop: Stop) -> Result<Session, Failure> {
        let (first, programs) = self
            .what
            .split_first()
            .ok_or_else(|| Failure::bad("no object"))?;
        let is_file = Path::new(first).is_file();
        let options = LiveOptions {
            programs: if is_file {
                programs.to_vec()
            } else {
                Vec::new()
            },
            all: self.all,
            pid: self.pid,
            buffer: self.buffer,
            duration: self.duration,
            stop: Some(stop),
            frequency: self.frequency,
        };
        if !is_file {
            if first.ends_with(".o") || !first.contains(['/', ':']) {
                return Err(Failure::bad(format!(
                    "{first}: no such file, and no tracepoint (GROUP/NAME)"
                )));
            }
            return Ok(Session::Events(LiveEvents::start(&self.what, &options)?));
        }
        let mut object = self.kernel.open(Path::new(first))?;
        for (program, target) in &self.attach {
            object.entry_mut(program)?.set_attach_target(target);
        }
        Ok(Session::Object(Box::new(Live::start(&object, &options)?)))
    }

    fn command(&self, json: bool) -> Option<Command> {
        let (program, arguments) = self.command.split_first()?;
        let mut command = Command::new(program);
        command.args(arguments);
        if json {
            // Whoever reads our output wants values only.
            command.stdout(Stdio::from(std::io::stderr()));
        }
        Some(command)
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
        assert!(target("p").is_err());
    }
}
