//! The arguments of `bpflab verify`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::subjects::ProgramArguments;
use crate::report::{Filter, SortKey};

/// Say whether the kernel would accept programs, and why not
///
/// The verdict is that of Linux 6.18 for a privileged user, its error line included; no
/// kernel is asked. Exit code 0 if every program is accepted, 1 if not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bpflab verify prog.bpf.o
  bpflab verify prog.bpf.o handle_exec --log 2        with the verifier's log
  bpflab verify *.bpf.o --sort insns --filter 'insns>1000'
  bpflab verify *.bpf.o --csv > before.csv; bpflab verify *.bpf.o --compare before.csv
  bpflab verify prog.bpf.o --vs-kernel                beside the running kernel's verdict
  bpflab verify --cases cases.jsonl --json | jq -r 'select(.verdict == \"reject\").message'")]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    pub programs: ProgramArguments,
    /// Print the verifier's log: 1 the path to the error, 2 every instruction walked; 4
    /// is added for statistics
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=7))]
    pub log: u32,
    /// Refuse accesses that are not aligned, as BPF_F_STRICT_ALIGNMENT does
    #[arg(long)]
    pub strict_alignment: bool,
    /// Load each program into the running kernel, too, and compare (Linux, root)
    #[arg(long)]
    pub vs_kernel: bool,
    /// Explain rejects: for objects, but not for cases and comparisons (auto), always, or
    /// never
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto)]
    pub report: When,
    /// Sort by columns (insns, states, time, verdict, program …), counts downwards unless
    /// asked otherwise
    #[arg(long, value_name = "KEY[:asc|desc]", value_delimiter = ',')]
    pub sort: Vec<SortKey>,
    /// Show only rows for which this holds: verdict=reject, insns>1000, message=*text*, or
    /// a pattern of names, PROGRAM or OBJ/PROGRAM; ! in front turns it around. Several
    /// must all hold
    #[arg(long, value_name = "EXPR")]
    pub filter: Vec<Filter>,
    /// Print comma-separated values
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Show what has changed since a former run, of which this file holds the output of
    /// --json or --csv
    #[arg(long, value_name = "FILE", conflicts_with_all = ["csv", "vs_kernel"])]
    pub compare: Option<PathBuf>,
}

/// When rejects are explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum When {
    /// For the programs of objects, if nothing else is asked.
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
