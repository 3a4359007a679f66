//! The arguments of `bpflab bench`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
#[cfg(all(feature = "kernel", target_os = "linux"))]
use clap::Subcommand;

use crate::cli::run::{Engine, SetupArguments};
#[cfg(all(feature = "kernel", target_os = "linux"))]
use crate::cli::vm::VmArguments;
use crate::util::Bursts;

/// Measure how long programs run on bpflab's engines, and in the kernel
///
/// Runs each program repeatedly on one event, on each engine in turn. A turn counts its
/// shortest burst; the result is the median of the turns.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Without --event a program runs on the event that its section names. Programs that run on
packets get --data or 64 zero bytes, others the context of their type, all zero.

Examples:
  bpflab bench write_hist.bpf.o --set 'args[2]=4096'
  bpflab bench filter.bpf.o --data packet.bin --vs-kernel
  bpflab bench prog.bpf.o handle_exec --engine jit --json | jq .ns_per_run
  bpflab bench prog.bpf.o --save before.json; bpflab bench prog.bpf.o --against before.json
  bpflab bench prog.bpf.o --lines 10
  bpflab bench tracepoint       what watching a tracepoint costs")]
pub(in crate::cli) struct Arguments {
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    #[command(subcommand)]
    pub(super) verb: Option<Verb>,
    /// Object file
    #[arg(value_name = "OBJ", required = true)]
    object: Option<PathBuf>,
    /// Programs to run, by the names of their C functions [default: all that the event fires]
    #[arg(value_name = "PROGRAM")]
    pub(super) programs: Vec<String>,
    #[command(flatten)]
    pub(super) setup: SetupArguments,
    /// Time this engine (repeatable) [default: all]
    #[arg(long, value_enum)]
    pub(super) engine: Vec<Engine>,
    /// Time the running kernel, too, through BPF_PROG_TEST_RUN (root)
    #[arg(long)]
    pub(super) vs_kernel: bool,
    /// Give each engine N turns
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) samples: u16,
    /// Spend MS milliseconds on a turn, in five bursts
    #[arg(long, value_name = "MS", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) time: u16,
    /// Show the N lines of C of which a run executes most instructions; they are counted, not
    /// timed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) lines: Option<u16>,
    /// Write the times to a file, as with --json, for --against
    #[arg(long, value_name = "FILE")]
    pub(super) save: Option<PathBuf>,
    /// Show how the times have changed since an earlier run, which --save has written; exit code
    /// 1 if a run takes longer by more than --fail-above
    #[arg(long, value_name = "FILE")]
    pub(super) against: Option<PathBuf>,
    /// Exit with code 1 if a run takes more than N percent longer
    #[arg(long, value_name = "N", requires = "against", value_parser = percent, default_value_t = 10.0)]
    pub(super) fail_above: f64,
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    #[command(flatten)]
    vm: VmArguments,
}

/// A number of percent.
fn percent(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if number.is_finite() && number >= 0.0 {
        Ok(number)
    } else {
        Err("below zero or not finite".to_owned())
    }
}

/// Benchmarks with arguments of their own.
#[cfg(all(feature = "kernel", target_os = "linux"))]
#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    Tracepoint(super::tracepoint::Arguments),
}

impl Arguments {
    /// The options for virtual machines.
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    pub(in crate::cli) fn vm(&self) -> &VmArguments {
        match &self.verb {
            Some(Verb::Tracepoint(arguments)) => &arguments.vm,
            None => &self.vm,
        }
    }

    /// The object file; empty if only a subcommand is parsed.
    pub(super) fn object(&self) -> &Path {
        self.object.as_deref().unwrap_or(Path::new(""))
    }

    /// The bursts of a turn.
    pub(super) fn bursts(&self) -> Bursts {
        const COUNT: u8 = 5;
        Bursts {
            count: COUNT.into(),
            length: Duration::from_millis(self.time.into()) / COUNT.into(),
        }
    }
}
