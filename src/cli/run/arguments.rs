//! The arguments of `bpflab run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::input::KernelArguments;
use crate::harness::EngineKind;
use crate::vm::Injection;

/// Run programs on events
///
/// Prints what programs give out while they run, what they return, and what is in their
/// maps afterwards.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --event a program runs on the event that its section names; those that run on
packets get --data or 64 zero bytes, others the context of their type, all zero.

Examples:
  bpflab run write_hist.bpf.o --set 'args[2]=4096'
  bpflab run write_hist.bpf.o --events writes.jsonl     a line each: {\"args[2]\":4096}
  bpflab run prog.bpf.o --event sched/sched_process_exec --set filename=/bin/ls --comm ls
  bpflab run filter.bpf.o --data packet.bin --repeat 100000
  bpflab run prog.bpf.o handle_exec --global min_ns=1000 --json
  bpflab run prog.bpf.o --inject 'map-update(hist)=ENOMEM@3' --repeat 5
  bpflab run --cases cases.jsonl.xz")]
pub(in crate::cli) struct Arguments {
    /// Object file
    #[arg(value_name = "OBJ", required_unless_present = "cases")]
    pub(super) object: Option<PathBuf>,
    /// Program to run, by the name of its C function [default: all that the event fires]
    #[arg(value_name = "PROGRAM")]
    pub(super) program: Option<String>,
    #[command(flatten)]
    pub(super) setup: SetupArguments,
    /// Fire once for each line of a file (- for standard input): a JSON object of fields,
    /// beside which @event, @pid, @tid, @uid, @comm, @cpu, @ns may stand
    #[arg(long, value_name = "FILE")]
    pub(super) events: Option<PathBuf>,
    /// Engine that runs the programs [default: the fastest one here]
    #[arg(long, value_enum)]
    pub(super) engine: Option<Engine>,
    /// Tell perf which machine code is whose, in /tmp/perf-PID.map
    #[cfg(feature = "jit")]
    #[arg(long)]
    pub(super) perf_map: bool,
    /// Run N times on each event, and print the time per run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) repeat: Option<u32>,
    #[command(flatten)]
    pub(super) output: OutputArguments,
    /// Run the cases of a file (JSON lines, plain, gzip or xz; - for standard input) and
    /// compare what they return with what they expect
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "object", "program", "event", "set", "events", "format", "data", "global", "repeat",
            "map", "hist", "record", "kconfig", "ksym", "inject",
        ]
    )]
    pub(super) cases: Option<PathBuf>,
}

impl Arguments {
    /// The programs that were asked for.
    pub(super) const fn wanted(&self) -> &[String] {
        self.program.as_slice()
    }
}

/// From an object to programs on events, for every verb that runs them.
#[derive(Debug, Args)]
pub(in crate::cli) struct SetupArguments {
    #[command(flatten)]
    pub(in crate::cli) kernel: KernelArguments,
    #[command(flatten)]
    pub(in crate::cli) event: EventArguments,
    #[command(flatten)]
    pub(super) world: WorldArguments,
    /// Set a global variable, or a part of one, before the object is loaded
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) global: Vec<String>,
    /// Run rejected and unjudged programs, too, with each access checked
    #[arg(long)]
    pub(super) unverified: bool,
    /// Make calls of a helper fail, or what suffers from map-update, buffer-full,
    /// allocation, probe-read: CALL[(MAP)][=ERRNO][@WHICH], where WHICH is 3, 3-5, 3-, /2
    /// (every second) or 10%[:SEED] (repeatable)
    #[arg(long, value_name = "CALL")]
    pub(super) inject: Vec<Injection>,
}

/// What fires.
#[derive(Debug, Args)]
pub(in crate::cli) struct EventArguments {
    /// Event: GROUP/NAME of a tracepoint, the name of a raw tracepoint or function
    #[arg(long, value_name = "GROUP/NAME")]
    pub(in crate::cli) event: Option<String>,
    /// Set a field of the event: a number, text, "text", hex:BYTES, [1, 2]; fields go by
    /// the names of the format file and of BTF (count, args[2])
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(in crate::cli) set: Vec<String>,
    /// Lay the tracepoint out as this tracefs format file says
    #[arg(long, value_name = "FILE", requires = "event")]
    pub(in crate::cli) format: Option<PathBuf>,
    /// Packet, or context in bytes: a file, or hexadecimal digits; a capture (pcap,
    /// pcapng) is an event for each of its packets
    #[arg(long, value_name = "FILE|HEX", conflicts_with = "event")]
    pub(in crate::cli) data: Option<String>,
}

/// What programs see of the world.
#[derive(Debug, Args)]
pub(super) struct WorldArguments {
    /// Process id of the current task [default: 1000]
    #[arg(long, value_name = "N")]
    pub(super) pid: Option<u32>,
    /// Thread id, where it is not the process's
    #[arg(long, value_name = "N")]
    pub(super) tid: Option<u32>,
    /// User id of the current task [default: 1000]
    #[arg(long, value_name = "N")]
    pub(super) uid: Option<u32>,
    /// Command name of the current task [default: bpflab]
    #[arg(long, value_name = "NAME")]
    pub(super) comm: Option<String>,
    /// CPU that the events fire on [default: 0]
    #[arg(long, value_name = "N")]
    pub(super) cpu: Option<u32>,
    /// Number of CPUs, 1 to 4096
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(super) cpus: u32,
    /// Monotonic clock, in nanoseconds since boot
    #[arg(long, value_name = "NS")]
    pub(super) ns: Option<u64>,
    /// Seed of bpf_get_prandom_u32
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
}

/// What is shown.
#[derive(Debug, Args)]
pub(super) struct OutputArguments {
    /// Print only this map (repeatable) [default: all that programs may have changed]
    #[arg(long, value_name = "NAME")]
    pub(super) map: Vec<String>,
    /// Print a map as a histogram: log2 (slot n counts 2^n to 2^(n+1)-1), hist (of
    /// bpftrace), MIN:STEP (linear), or none to print its entries [default: log2 if the
    /// name says hist or dist]
    #[arg(long, value_name = "MAP[=BUCKETS]")]
    pub(super) hist: Vec<String>,
    /// Decode the records of a ring or perf buffer as this type
    /// [default: the map's, or a struct of their size that is kept for it]
    #[arg(long, value_name = "MAP=TYPE")]
    pub(super) record: Vec<String>,
}

/// An engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Engine {
    /// The checked interpreter: runs any program, judges every access
    Checked,
    /// The fast interpreter: runs verified programs
    Interp,
    /// Machine code for verified programs
    Jit,
}

impl From<Engine> for EngineKind {
    fn from(engine: Engine) -> Self {
        match engine {
            Engine::Checked => Self::Checked,
            Engine::Interp => Self::Interp,
            Engine::Jit => Self::Jit,
        }
    }
}
