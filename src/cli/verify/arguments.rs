//! The arguments of `bpflab verify`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::findings::FindingArguments;
use super::sort::SortKey;
use crate::cli::reports::When;
use crate::cli::subjects::ProgramArguments;
#[cfg(all(feature = "kernel", target_os = "linux"))]
use crate::cli::vm::{GuestVerb, VmArguments};
use crate::report::FailOn;
use crate::spec::{Capabilities, Lockdown, Token};

/// Check whether the kernel would accept programs, and say why not
///
/// The verdict is that of Linux 6.18, including its error line, for a privileged user unless
/// options say otherwise; no kernel is needed. Exit code 0 if every program is accepted, 1 if not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bpflab verify prog.bpf.o
  bpflab verify prog.bpf.o handle_exec --log 2        with the verifier's log
  bpflab verify *.bpf.o --sort insns
  bpflab verify *.bpf.o --json > base.json; bpflab verify *.bpf.o --against base.json
  bpflab verify *.bpf.o --against base.json --fail-on 'verdict,insns>10%' --sarif bpflab.sarif
  bpflab verify prog.bpf.o --html verdict.html        the source with instructions and states
  bpflab verify prog.bpf.o --unprivileged             as an ordinary user loads it
  bpflab verify prog.bpf.o --cap CAP_BPF,CAP_NET_ADMIN
  bpflab verify prog.bpf.o --vs-kernel                with the running kernel's verdict
  bpflab verify ext.bpf.o --target prog.bpf.o:handle_packet    freplace programs
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
    /// Judge for a loader with these capabilities: CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN,
    /// CAP_SYS_ADMIN [default: all]
    #[arg(long, value_name = "CAP,…", value_delimiter = ',')]
    pub cap: Vec<Capabilities>,
    /// Judge for an ordinary user: a loader without any of these capabilities, where the sysctl
    /// kernel.unprivileged_bpf_disabled is 0
    #[arg(long, conflicts_with = "cap")]
    pub unprivileged: bool,
    /// Judge for a loader with a BPF token, by the options of the BPF file system that it is from:
    /// delegate_cmds, delegate_maps, delegate_progs, delegate_attachs. --cap are then the loader's
    /// capabilities in its user namespace
    #[arg(long, value_name = "OPTION=VALUE,…")]
    pub token: Option<Token>,
    /// Load each program into the running kernel, too, and compare (Linux, root); judge for
    /// that kernel's configuration, lockdown and CPUs unless options set them
    #[arg(long)]
    pub vs_kernel: bool,
    /// Explain rejects: for objects, but not for cases and comparisons (auto), always, or
    /// never
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto)]
    pub report: When,
    /// Sort by a column of the table: counts and times descending, text ascending
    #[arg(long, value_name = "COLUMN", value_enum)]
    pub sort: Option<SortKey>,
    /// Show the changes since an earlier run, from a file with its output of --json; exit code 1
    /// if anything has changed
    #[arg(long, value_name = "FILE", conflicts_with = "vs_kernel")]
    pub against: Option<PathBuf>,
    /// Exit with code 1 only for these changes: `verdict` (a program is not accepted that was, or
    /// is new), `missing` (a program is not in this run), `insns>N%`, `states>N%` (the count of an
    /// accepted program grew by more)
    #[arg(
        long,
        value_name = "CHANGE,…",
        value_delimiter = ',',
        requires = "against"
    )]
    pub fail_on: Vec<FailOn>,
    /// Write a page for a browser, which needs no other files: the verdicts, for each program the
    /// failing path, what cost most, and the C source with instructions and states
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub findings: FindingArguments,
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    #[command(flatten)]
    pub vm: VmArguments,
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

impl Arguments {
    /// What a virtual machine does: it is there for its kernel's verdict.
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    pub(in crate::cli) fn guest_verb(&self) -> GuestVerb {
        GuestVerb {
            added: (!self.vs_kernel).then_some("--vs-kernel"),
            output: self.html.clone(),
            ..GuestVerb::of_verdicts()
        }
    }

    /// Whether no option takes capabilities from the loader.
    pub(super) const fn has_all_capabilities(&self) -> bool {
        self.cap.is_empty() && !self.unprivileged
    }

    /// The capabilities of the loader.
    pub(super) fn loader(&self) -> Capabilities {
        if self.has_all_capabilities() {
            Capabilities::all()
        } else {
            self.cap.iter().copied().collect()
        }
    }

    /// Whether rejects are explained.
    pub(super) const fn explains(&self) -> bool {
        self.report
            .applies(!self.programs.are_cases() && !self.vs_kernel && self.against.is_none())
    }
}
