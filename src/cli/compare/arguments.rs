//! The arguments of `bpflab compare`.

use std::path::PathBuf;

use clap::Args;

use crate::cli::input::KernelArguments;
use crate::cli::live::LiveArguments;
use crate::cli::run::Engine;
use crate::cli::vm::{GuestVerb, VmArguments};
use crate::harness::EngineKind;

/// Compare programs in the running kernel with bpflab's engines (Linux, root)
///
/// Loads an object into the running kernel, instrumented to log the inputs and outputs of its
/// programs, attaches them, runs the command, and then replays every event on each of bpflab's
/// engines. Programs run for the command and its children only; everything is detached at the
/// end.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo bpflab compare examples/bpf/write_hist.bpf.o -- dd if=/dev/zero of=/dev/null count=100000
  sudo bpflab compare runqlat.bpf.o --all --duration 10
  sudo bpflab compare prog.bpf.o handle_exec --engine jit --json -- make
  sudo bpflab compare --generated 10000                 programs made up instead of an object")]
pub(in crate::cli) struct Arguments {
    /// Object file
    #[arg(value_name = "OBJ", required_unless_present = "generated")]
    pub(super) object: Option<PathBuf>,
    /// Programs to attach, by the names of their C functions [default: those that are loaded
    /// with the object]
    #[arg(value_name = "PROGRAM")]
    pub(super) programs: Vec<String>,
    #[command(flatten)]
    pub(super) live: LiveArguments,
    #[command(flatten)]
    pub(super) kernel: KernelArguments,
    /// Replay on this engine (repeatable) [default: all]
    #[arg(long, value_enum)]
    pub(super) engine: Vec<Engine>,
    /// Keep the recording in a file, for `bpflab replay`
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Write a page for a browser, which needs no other files: the verdicts, and the first difference
    /// side by side
    #[arg(long, value_name = "FILE", conflicts_with = "vm")]
    pub(super) html: Option<PathBuf>,
    /// Compare on N generated tracepoint programs, which bpflab fires itself
    // Flattened arguments form a group with the name of their struct.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..),
        conflicts_with_all = ["object", "output", "html", "LiveArguments", "KernelArguments"]
    )]
    pub(super) generated: Option<u64>,
    /// Set the seed of the first generated program; each further one adds 1
    #[arg(long, value_name = "N", default_value_t = 1, requires = "generated")]
    pub(super) seed: u64,
    /// Limit the random bytes that a program is generated from: fewer give smaller programs
    #[arg(long, value_name = "N", requires = "generated")]
    pub(super) size: Option<usize>,
    /// Fire each generated program N times
    #[arg(long, value_name = "N", default_value_t = 16, requires = "generated")]
    pub(super) firings: usize,
    #[command(flatten)]
    pub(in crate::cli) vm: VmArguments,
}

impl Arguments {
    /// What a virtual machine does.
    pub(in crate::cli) fn guest_verb(&self) -> GuestVerb {
        GuestVerb {
            output: self.output.clone(),
            ..GuestVerb::default()
        }
    }

    /// The engines to replay on.
    pub(super) fn engines(&self) -> Vec<EngineKind> {
        let engines = match self.engine.as_slice() {
            [] => &[Engine::Checked, Engine::Interp, Engine::Jit],
            engines => engines,
        };
        engines.iter().map(|engine| (*engine).into()).collect()
    }
}
