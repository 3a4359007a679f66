//! The arguments of `bpflab bench tracepoint`.

use std::path::PathBuf;

use clap::Args;

/// Time what it costs to watch a tracepoint, in many ways (root)
///
/// A process of its own calls write(2) on /dev/null again and again, while
/// syscalls/sys_enter_write has nothing attached; a program that does nothing, a
/// histogram, a filter; the histogram recorded by bpflab; a recording by perf and by
/// ftrace, with filters and without. Each takes its turn in every round. Shown is what each adds to a write.
#[derive(Debug, Args)]
#[command(after_help = "\
Programs let the events of all other processes pass; everything is detached at the end, also
when this process is killed.

Examples:
  bpflab bench tracepoint
  bpflab bench tracepoint my_hist.bpf.o on_write --size 4096
  bpflab bench tracepoint --json | jq -r 'select(.ratio).what, .ratio'")]
pub(in crate::cli::bench) struct Arguments {
    /// Object with a program to attach instead of the histogram
    #[arg(value_name = "OBJ")]
    pub object: Option<PathBuf>,
    /// Its program, in SEC("tp/syscalls/sys_enter_write") [default: the first]
    #[arg(value_name = "PROGRAM", requires = "object")]
    pub program: Option<String>,
    /// Writes of a burst, of which a turn has five; so few that no other process
    /// interrupts all of them
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    pub calls: u32,
    /// Bytes of a write
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub size: u16,
    /// How often each takes its turn
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..))]
    pub samples: u16,
    /// Be the process that writes, so many bytes each time, when its input says how often
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub writer: Option<u16>,
}
