//! The arguments of `bpflab run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::input::KernelArguments;
use crate::cli::target::ObjectTarget;
use crate::harness::EngineKind;
use crate::vm::Injection;

/// Run programs on events
///
/// Prints the programs' output while they run, their return values, and the contents of their
/// maps afterwards.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --event a program runs on the event that its section names. Programs that run on
packets get --data or 64 zero bytes, others the context of their type, all zero.

Examples:
  bpflab run write_hist.bpf.o --set 'args[2]=4096'
  bpflab run write_hist.bpf.o --events writes.jsonl     a line each: {\"args[2]\":4096}
  bpflab run prog.bpf.o --event sched/sched_process_exec --set filename=/bin/ls --comm ls
  bpflab run prog.bpf.o --event syscalls/sys_enter_openat --set filename=/etc/passwd
  bpflab run filter.bpf.o --map-set blocked=127.0.0.1=1 --data capture.pcap
  bpflab run filter.bpf.o --data packet.bin --repeat 100000
  bpflab run write_hist.bpf.o --events writes.jsonl --html run.html
  bpflab run prog.bpf.o handle_exec --global min_ns=1000 --json
  bpflab run ext.bpf.o --target prog.bpf.o:handle_packet --data packet.bin
  bpflab run prog.bpf.o --inject 'map-update(hist)=ENOMEM@3' --repeat 5
  bpflab run --cases cases.jsonl.xz")]
pub(in crate::cli) struct Arguments {
    /// Object file
    #[arg(value_name = "OBJ", required_unless_present = "cases")]
    pub(super) object: Option<PathBuf>,
    /// Program to run, by the name of its C function [default: all that the event fires]
    #[arg(value_name = "PROGRAM")]
    pub(super) program: Option<String>,
    /// Run this program, with the programs of OBJ attached to its functions: `freplace` programs,
    /// and fentry and fexit programs. An object, and the name of its program [default: the only
    /// one that is loaded with the object]. --global, --map, --hist and --record are for OBJ
    #[arg(long, value_name = "OBJ[:PROGRAM]")]
    pub(super) target: Option<ObjectTarget>,
    #[command(flatten)]
    pub(super) setup: SetupArguments,
    /// Fire once for each line of a file (- for standard input): a JSON object of fields, which
    /// may also have @event, @pid, @tid, @uid, @gid, @comm, @cgroup, @cpu, @ns, @after and @user
    #[arg(long, value_name = "FILE")]
    pub(super) events: Option<PathBuf>,
    /// Set entries of a map before programs run, from a file with the output of `bpftool map dump
    /// -j`, or one entry (repeatable)
    #[arg(long, value_name = "MAP=FILE.json|MAP=KEY=VALUE")]
    pub(super) map_set: Vec<String>,
    /// Write the packets that XDP and tc programs leave and don't drop to a capture file
    #[arg(long, value_name = "FILE.pcap", conflicts_with = "repeat")]
    pub(super) out: Option<PathBuf>,
    /// Look for uninitialised bytes that leave programs in map keys and values, records, packets
    /// or user memory, on the checked engine
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, require_equals = true,
          default_missing_value = "warn", default_value = "off", hide_default_value = true)]
    pub(super) uninit: Uninit,
    /// Write a page for a browser, which needs no other files: return values, records, output,
    /// changed packets, maps with histograms and heatmaps as pictures
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Write histograms and heatmaps as SVG: the only one to a file, all of them into a folder that
    /// exists
    #[arg(long, value_name = "FILE|DIR")]
    pub(super) svg: Option<PathBuf>,
    /// Run programs on this engine [default: the fastest one here]
    #[arg(long, value_enum)]
    pub(super) engine: Option<Engine>,
    /// Write the symbols of the machine code for perf, to /tmp/perf-PID.map
    #[cfg(feature = "jit")]
    #[arg(long)]
    pub(super) perf_map: bool,
    /// Run N times on each event, and print the time per run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) repeat: Option<u32>,
    #[command(flatten)]
    pub(super) output: OutputArguments,
    /// Run the cases of a file (JSON lines, plain, gzip or xz; - for standard input) and
    /// compare return values with the expected ones
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "object", "program", "target", "event", "set", "events", "format", "data", "global", "repeat",
            "map", "hist", "record", "kconfig", "ksym", "inject", "map_set", "rodata", "out",
            "html", "svg",
        ]
    )]
    pub(super) cases: Option<PathBuf>,
}

impl Arguments {
    /// The programs named on the command line.
    pub(super) const fn wanted(&self) -> &[String] {
        self.program.as_slice()
    }
}

/// Arguments of all verbs that run programs on events.
#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct SetupArguments {
    #[command(flatten)]
    pub(in crate::cli) kernel: KernelArguments,
    #[command(flatten)]
    pub(in crate::cli) event: EventArguments,
    #[command(flatten)]
    pub(super) world: WorldArguments,
    /// Run rejected and unjudged programs, too, with each access checked
    #[arg(long)]
    pub(in crate::cli) unverified: bool,
    /// Make calls of a helper fail, or of a group: map-update, buffer-full, allocation,
    /// probe-read: CALL[(MAP)][=ERRNO][@WHICH], where WHICH is 3, 3-5, 3-, /2 (every second) or
    /// 10%[:SEED] (repeatable)
    #[arg(long, value_name = "CALL")]
    pub(super) inject: Vec<Injection>,
}

/// Arguments that describe the event.
#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct EventArguments {
    /// Fire this event: GROUP/NAME of a tracepoint, the name of a raw tracepoint or function; a
    /// section (tp/GROUP/NAME) or a probe of bpftrace (kprobe:NAME) works, too
    #[arg(long, value_name = "GROUP/NAME")]
    pub(in crate::cli) event: Option<String>,
    /// Set a field of the event: a number, text, "text", hex:BYTES, [1, 2]; fields are named as
    /// in the format file and in BTF (count, args[2]). Text and bytes for a pointer are put into
    /// memory, and the field points there
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(in crate::cli) set: Vec<String>,
    /// Take the tracepoint's layout from this tracefs format file
    #[arg(long, value_name = "FILE", requires = "event")]
    pub(in crate::cli) format: Option<PathBuf>,
    /// Set the packet, or the context in bytes: a file, or hexadecimal digits; a capture (pcap,
    /// pcapng) fires an event for each of its packets
    #[arg(long, value_name = "FILE|HEX", conflicts_with = "event")]
    pub(in crate::cli) data: Option<String>,
}

/// Arguments that set the world of the programs.
#[derive(Debug, Clone, Args)]
pub(super) struct WorldArguments {
    /// Set the process id of the current task [default: 1000]
    #[arg(long, value_name = "N")]
    pub(super) pid: Option<u32>,
    /// Set the thread id, if it differs from the process id
    #[arg(long, value_name = "N")]
    pub(super) tid: Option<u32>,
    /// Set the user id of the current task [default: 1000]
    #[arg(long, value_name = "N")]
    pub(super) uid: Option<u32>,
    /// Set the group id of the current task [default: 1000]
    #[arg(long, value_name = "N")]
    pub(super) gid: Option<u32>,
    /// Set the cgroup id of the current task [default: 1]
    #[arg(long, value_name = "ID")]
    pub(super) cgroup: Option<u64>,
    /// Set the command name of the current task [default: bpflab]
    #[arg(long, value_name = "NAME")]
    pub(super) comm: Option<String>,
    /// Fire events on this CPU [default: 0]
    #[arg(long, value_name = "N")]
    pub(super) cpu: Option<u32>,
    /// Set the number of CPUs, 1 to 4096
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(super) cpus: u32,
    /// Set the monotonic clock, in nanoseconds since boot
    #[arg(long, value_name = "NS")]
    pub(super) ns: Option<u64>,
    /// Put text, "text", hex:BYTES or file:PATH into user memory at an address (repeatable)
    #[arg(long, value_name = "ADDRESS=VALUE")]
    pub(super) user: Vec<String>,
    /// Set the seed of bpf_get_prandom_u32
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
}

/// Arguments that select the output.
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
    /// Decode the records of a ring or perf buffer as this type [default: the map's, or a
    /// struct of the records' size that refers to it]
    #[arg(long, value_name = "MAP=TYPE")]
    pub(super) record: Vec<String>,
}

/// What to do about uninitialised bytes that leave programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Uninit {
    /// Don't look for them
    Off,
    /// Warn
    Warn,
    /// Fail
    Fail,
}

/// An engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Engine {
    /// The checked interpreter: runs any program, checks every access
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
