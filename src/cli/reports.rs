//! Reports on rejects, for the verbs that show verdicts.

use clap::ValueEnum;

use super::exit::Failure;
use super::printer::Printer;
use crate::report::VerdictRow;

/// When rejects are explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum When {
    /// For programs of objects, unless an option asks for other output.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl When {
    /// Whether to explain; `auto` is what this word means to the verb.
    pub const fn applies(self, auto: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => auto,
        }
    }
}

/// Prints a row's log and report as text, the kernel's error lines first.
pub(super) fn explain(
    row: &mut VerdictRow,
    lines: &str,
    printer: &mut Printer,
) -> Result<(), Failure> {
    let (log, report) = (row.log.take(), row.report.take());
    match (&log, &report) {
        (Some(log), _) => printer.text(log)?,
        (None, Some(_)) if !lines.is_empty() => printer.text(format_args!("{lines}\n"))?,
        (None, _) => {}
    }
    if let Some(report) = report {
        printer.text(format_args!("\n{}\n", report.styled()))?;
    }
    Ok(())
}
