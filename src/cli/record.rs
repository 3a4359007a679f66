//! `bpflab record`: records what programs do in the kernel while a command runs.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use super::exit::{Exit, Failure};
use super::input::KernelArguments;
use super::live::{LiveArguments, record_to};
use super::printer::Printer;
use super::vm::{GuestVerb, VmArguments};
use crate::compare::live::{Live, LiveError, LiveEvents, Summary};
use crate::report::RecordReport;

/// Record what programs do in the kernel while a command runs (Linux, root)
///
/// Attaches the object's programs, runs the command, and writes each firing to a file: the
/// context, all other inputs, the outputs and the return value, with the maps before and after.
/// `bpflab replay` runs it again elsewhere, without root. Without an object it records
/// tracepoints.
///
/// Programs run for the command and its children only, from the command's first instruction;
/// for all other processes they do nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Recording ends with the command, after --duration, or by SIGINT or SIGTERM, which end the
command, too; the file holds everything up to then. Under --json the command's standard output
goes to standard error.

Exit codes: 0 all is in the file, 1 something was lost, 2 bad usage, or a command that can't be
started, 3 not available here. The output says how the command ended.

Examples:
  bpflab record write_hist.bpf.o -o dd.rec -- dd if=/dev/zero of=/dev/null count=1000
  bpflab record prog.bpf.o handle_exec -o make.rec -- make -j8
  bpflab record prog.bpf.o -o all.rec --all --duration 5
  bpflab record syscalls/sys_enter_write 'sched/sched_process_*' -o ls.rec -- ls
  bpflab record prog.bpf.o -o x.rec --json -- ./test | jq .lost")]
pub(super) struct Arguments {
    /// Object file, and those of its programs to record [default: all that it loads]; or,
    /// without an object, tracepoints: GROUP/NAME, with the wildcard *
    #[arg(value_name = "OBJ [PROGRAM]|GROUP/NAME", required = true)]
    what: Vec<String>,
    /// Write the recording to this file
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    live: LiveArguments,
    #[command(flatten)]
    kernel: KernelArguments,
    #[command(flatten)]
    pub(super) vm: VmArguments,
}

/// What to record.
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
    let mut session = arguments.session()?;
    let path = &arguments.output;
    let mut command = arguments.live.command(printer.is_json());
    let summary = record_to(path, |file| session.record(command.as_mut(), file))?;
    let exit = match summary.lost() {
        0 => Exit::Fine,
        _ => Exit::No,
    };
    printer.show(&RecordReport::new(path.display().to_string(), summary))?;
    Ok(exit)
}

impl Arguments {
    /// What a virtual machine does.
    pub(super) fn guest_verb(&self) -> GuestVerb {
        GuestVerb {
            output: Some(self.output.clone()),
            ..GuestVerb::default()
        }
    }

    fn session(&self) -> Result<Session, Failure> {
        let (first, programs) = self
            .what
            .split_first()
            .ok_or_else(|| Failure::bad("no object"))?;
        let path = Path::new(first);
        if path.is_file() {
            let options = self.live.options(programs)?;
            let object = self.live.open(path, &self.kernel)?;
            return Ok(Session::Object(Box::new(Live::start(&object, &options)?)));
        }
        let options = self.live.options(&[])?;
        if first.ends_with(".o") || !first.contains(['/', ':']) {
            return Err(Failure::bad(format!(
                "{first}: neither a file nor a tracepoint (GROUP/NAME)"
            )));
        }
        Ok(Session::Events(LiveEvents::start(&self.what, &options)?))
    }
}
