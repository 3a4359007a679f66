//! The arguments of `bpflab bench tracepoint`.

use crate::cli::vm::VmArguments;
use std::path::PathBuf;

use clap::Args;

/// Measure the overhead of tracing a tracepoint (root)
///
/// A separate process calls write(2) on /dev/null repeatedly, while syscalls/sys_enter_write
/// has nothing attached; an empty program, a histogram, a filter; the histogram recorded by
/// bpflab; recordings by perf and by ftrace, with filters and without. Each has a turn in every
/// round. Prints what each adds to a write.
#[derive(Debug, Args)]
#[command(after_help = "\
Programs pass the events of all other processes on; everything is detached at the end, even
if this process is killed.

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
    /// Write N times per burst, of which a turn has five; few enough that other processes do
    /// not interrupt all of them
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    pub calls: u32,
    /// Write N bytes each time
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub size: u16,
    /// Give each way of tracing N turns
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..))]
    pub samples: u16,
    /// Act as the writing process, N bytes each time, as often as standard input says
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub writer: Option<u16>,
    #[command(flatten)]
    pub vm: VmArguments,
}
