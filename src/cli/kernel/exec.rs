//! `bpflab kernel exec`: a command in a virtual machine.

use std::ffi::OsString;

use clap::Args;

use crate::cli::exit::{Exit, Failure};
use crate::cli::vm::VmArguments;

/// Run a command in a virtual machine with another kernel, as root there
///
/// The machine has the command with its libraries, the files that its arguments name, and those
/// of --guest-file, each at its own path; the working folder is the same, too. There is no
/// shell, no network and no disk, and what the command writes is lost but for its output. Exit
/// code 1 if that of the command is not 0.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bpflab kernel exec --vm 6.12 -- cat /proc/version
  bpflab kernel exec --vm 6.12 --guest-file tests -- target/debug/deps/my_test-0123456789abcdef
  export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER='bpflab kernel exec --vm 6.12 --'
  cargo test                            every test binary in its own virtual machine")]
pub(super) struct Arguments {
    /// Command to run, and its arguments
    #[arg(value_name = "COMMAND", last = true, required = true)]
    _command: Vec<OsString>,
    #[command(flatten)]
    pub(super) vm: VmArguments,
}

/// Fails: without a virtual machine there is nothing to do.
pub(super) fn run(_: &Arguments) -> Result<Exit, Failure> {
    Err(Failure::bad(
        "no virtual machine: name a kernel (--vm IMAGE)",
    ))
}
