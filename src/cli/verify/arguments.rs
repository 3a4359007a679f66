//! The arguments of `bpflab verify`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::subjects::ProgramArguments;
use crate::report::{Filter, SortKey};
use crate::spec::Lockdown;

/// Check whether the kernel would accept programs, and say why not
///
/// The verdict is that of Linux 6.18 for a privileged user, including its error line; no kernel
/// is needed. Exit code 0 if every program is accepted, 1 if not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bpflab verify prog.bpf.o
  bpflab verify prog.bpf.o handle_exec --log 2        with the verifier's log
  bpflab verify *.bpf.o --sort insns --filter 'insns>1000'
  bpflab verify *.bpf.o --csv > before.csv; bpflab verify *.bpf.o --compare before.csv
  bpflab verify prog.bpf.o --vs-kernel                with the running kernel's verdict
  bpflab verify --cases cases.jsonl --json | jq -r 'select(.verdict == \"reject\").message'")]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    pub programs: ProgramArguments,
    /// Print the verifier's log: 1 the path to the error, 2 every instruction explored; add 4
    /// for statistics
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=7))]
    pub log: u32,
    /// Reject accesses that are not aligned, as BPF_F_STRICT_ALIGNMENT does
    #[arg(long)]
    pub strict_alignment: bool,
    /// Judge for a kernel with this configuration (/boot/config-…): helpers that it is built
    /// without are rejected [default: every helper is available]
    #[arg(long, value_name = "FILE")]
    pub kernel_config: Option<PathBuf>,
    /// Judge for a kernel with this lockdown level
    #[arg(long, value_name = "LEVEL", value_enum)]
    pub lockdown: Option<Level>,
    /// Judge for a kernel with N possible CPUs [default: 8192]
    #[arg(long, value_name = "N")]
    pub cpus: Option<NonZeroU32>,
    /// Load each program into the running kernel, too, and compare (Linux, root); judge for
    /// that kernel's configuration, lockdown and CPUs unless options set them
    #[arg(long)]
    pub vs_kernel: bool,
    /// Explain rejects: for objects, but not for cases and comparisons (auto), always, or
    /// never
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto)]
    pub report: When,
    /// Sort by columns (insns, states, time, verdict, program …); counts in descending order by
    /// default
    #[arg(long, value_name = "KEY[:asc|desc]", value_delimiter = ',')]
    pub sort: Vec<SortKey>,
    /// Show only rows that match: verdict=reject, insns>1000, message=*text*, or a pattern of
    /// names, PROGRAM or OBJ/PROGRAM; a leading ! negates. Several must all match
    #[arg(long, value_name = "EXPR")]
    pub filter: Vec<Filter>,
    /// Print comma-separated values
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Show the changes since an earlier run, from a file with its output of --json or --csv
    #[arg(long, value_name = "FILE", conflicts_with_all = ["csv", "vs_kernel"])]
    pub compare: Option<PathBuf>,
}

/// A kernel's lockdown level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Level {
    /// No lockdown.
    None,
    /// Root can't change the running kernel: no bpf_probe_write_user.
    Integrity,
    /// Root can't read kernel memory, either: no bpf_probe_read_kernel.
    Confidentiality,
}

impl From<Level> for Lockdown {
    fn from(level: Level) -> Self {
        match level {
            Level::None => Self::None,
            Level::Integrity => Self::Integrity,
            Level::Confidentiality => Self::Confidentiality,
        }
    }
}

/// When rejects are explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum When {
    /// For programs of objects, unless an option asks for other output.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Arguments {
    /// Whether rejects are explained.
    pub(super) const fn explains(&self) -> bool {
        match self.report {
            When::Always => true,
            When::Never => false,
            When::Auto => !self.programs.are_cases() && !self.vs_kernel && self.compare.is_none(),
        }
    }
}
