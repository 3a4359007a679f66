//! `bpflab kernel tracepoints`: lists tracepoints.

use std::path::PathBuf;

use clap::Args;

use crate::cli::exit::{Exit, Failure};
use crate::cli::printer::Printer;
use crate::cli::vm::VmArguments;
use crate::kernel::tracepoints::{Catalogue, Pattern};
use crate::object::Target;
use crate::report::{TracepointDetail, TracepointRow};

/// List tracepoints with their arguments and fields
///
/// Arguments are those of raw_tp and tp_btf programs, from BTF. Fields are those of the records
/// that tp programs and perf get, from tracefs (root; mounted privately if it is not mounted)
/// or else from BTF. Without tracefs the groups of most tracepoints are unknown.
#[derive(Debug, Args)]
#[command(after_help = "\
Without a pattern each tracepoint is one line; with one, its fields are shown, too.
Exit code 1 if a pattern matches nothing, 3 if neither BTF nor tracefs can be read.

Examples:
  bpflab kernel tracepoints 'softirq*'
  bpflab kernel tracepoints sched:sched_switch tp/syscalls/sys_enter_write -v
  bpflab kernel tracepoints --names | grep exec
  bpflab kernel tracepoints 'block:*' --json | jq -r '.tracepoint, .fields[].name'")]
pub(super) struct Arguments {
    /// Tracepoints to list, with the wildcards * and ?: softirq_*, irq:*, irq/softirq_entry; a
    /// program's section works, too, and so do probes of bpftrace and SystemTap [default: all]
    #[arg(value_name = "PATTERN", value_delimiter = ',')]
    patterns: Vec<String>,
    /// Show everything: fields, ids, and the sections of programs that can attach
    #[arg(long, short)]
    verbose: bool,
    /// Show names only
    #[arg(long, conflicts_with = "verbose")]
    names: bool,
    /// List the tracepoints of another kernel, from its BTF file (plain, gzip, xz)
    #[arg(long, value_name = "FILE")]
    btf: Option<PathBuf>,
    #[command(flatten)]
    pub(super) vm: VmArguments,
}

impl Arguments {
    fn catalogue(&self) -> Result<Catalogue, Failure> {
        let Some(file) = &self.btf else {
            return Catalogue::of_this_kernel()
                .map_err(|error| Failure::with(Exit::Unavailable, error));
        };
        match Target::file(file)? {
            Target::Kernel(btf) => Ok(Catalogue::of_btf(btf)),
            _ => Err(Failure::bad(format!(
                "{}: not a kernel's BTF",
                file.display()
            ))),
        }
    }

    fn detail(&self, json: bool) -> TracepointDetail {
        match self {
            Self { verbose: true, .. } => TracepointDetail::All,
            Self { names: true, .. } => TracepointDetail::Name,
            _ if json => TracepointDetail::All,
            Self { patterns, .. } if patterns.is_empty() => TracepointDetail::Arguments,
            _ => TracepointDetail::Fields,
        }
    }
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    let catalogue = arguments.catalogue()?;
    if let Some(error) = catalogue.without_tracefs() {
        printer.warn(&format!("groups are unknown: {error}"))?;
    }
    let patterns: Vec<_> = arguments
        .patterns
        .iter()
        .map(|text| Pattern::parse(text))
        .collect();
    let detail = arguments.detail(printer.is_json());
    for tracepoint in catalogue.matching(&patterns) {
        printer.show(&TracepointRow::new(&catalogue, tracepoint, detail))?;
    }
    let mut exit = Exit::Fine;
    for (pattern, text) in patterns.iter().zip(&arguments.patterns) {
        if catalogue
            .tracepoints()
            .iter()
            .any(|tracepoint| pattern.matches(tracepoint))
        {
            continue;
        }
        let hint = catalogue.hint(pattern).map(|hint| format!("; {hint}"));
        let text = format!("no tracepoint matches '{text}'{}", hint.unwrap_or_default());
        exit = exit.max(printer.failure(Failure::with(Exit::No, text))?);
    }
    Ok(exit)
}
