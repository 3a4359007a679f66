//! `bpflab kernel functions`: lists functions that programs can attach to.

use clap::Args;

use crate::cli::exit::{Exit, Failure};
use crate::cli::printer::Printer;
use crate::cli::vm::VmArguments;
use crate::kernel::functions::{Function, Functions};
use crate::report::{FunctionRow, FunctionTable};
use crate::util::glob;

/// List functions that kprobes, fentry and fexit can attach to
///
/// The functions are those that ftrace can trace (tracefs; root). fentry and fexit also need the
/// function's types: those that the compiler changed and renamed (`.constprop.0`, `.isra.0`) are
/// not in BTF.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit code 1 if a pattern matches nothing, 3 if the kernel does not list its functions.

Examples:
  bpflab kernel functions 'vfs_*'
  bpflab kernel functions '__netif_receive_skb_core*' --vm 6.12
  bpflab kernel functions 'tcp_*' --json | jq -r 'select(.fentry) | .function'")]
pub(super) struct Arguments {
    /// Functions to list, with the wildcards * and ?; a program's section works, too
    /// [default: all]
    #[arg(value_name = "PATTERN", value_delimiter = ',')]
    patterns: Vec<String>,
    /// Show names only
    #[arg(long)]
    names: bool,
    #[command(flatten)]
    pub(super) vm: VmArguments,
}

/// The pattern for a function's name in a section's name (`kprobe/vfs_*`) or a probe of bpftrace
/// (`kprobe:vfs_*`).
fn pattern(text: &str) -> &str {
    text.rsplit_once([':', '/']).map_or(text, |(_, name)| name)
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    let functions = Functions::of_this_kernel().map_err(|error| {
        let text = format!("the kernel does not list its functions: {error}");
        Failure::with(Exit::Unavailable, text)
    })?;
    let patterns: Vec<&str> = arguments.patterns.iter().map(|it| pattern(it)).collect();
    let wanted = |name: &str| patterns.is_empty() || patterns.iter().any(|it| glob(it, name));
    let found = functions.matching(wanted);
    show(&found, arguments.names, printer)?;
    let mut exit = Exit::Fine;
    for (pattern, text) in patterns.iter().zip(&arguments.patterns) {
        if found.iter().any(|function| glob(pattern, &function.name)) {
            continue;
        }
        let hint = functions.hint(pattern).map(|hint| format!("; {hint}"));
        let text = format!("no function matches '{text}'{}", hint.unwrap_or_default());
        exit = exit.max(printer.failure(Failure::with(Exit::No, text))?);
    }
    Ok(exit)
}

fn show(found: &[&Function], names: bool, printer: &mut Printer) -> Result<(), Failure> {
    let rows = found.iter().map(|function| FunctionRow::from(*function));
    if printer.is_json() {
        for row in rows {
            printer.row(&row)?;
        }
    } else if names {
        for function in found {
            printer.text(format_args!("{}\n", function.name))?;
        }
    } else if !found.is_empty() {
        printer.text(FunctionTable(rows.collect()))?;
    }
    Ok(())
}
