//! `bpflab compare --generated`: compares on generated programs.

use super::Arguments;
use crate::cli::exit::{Exit, Failure};
use crate::cli::printer::Printer;
use crate::compare::generated::{GeneratedError, GeneratedOptions, Recipe, compare_generated};
use crate::report::{FindingRow, GeneratedSummary};

impl From<GeneratedError> for Failure {
    fn from(error: GeneratedError) -> Self {
        let exit = match error.is_unavailable() {
            true => Exit::Unavailable,
            false => Exit::No,
        };
        Self::with(exit, error)
    }
}

pub(super) fn run(
    count: u64,
    arguments: &Arguments,
    printer: &mut Printer,
) -> Result<Exit, Failure> {
    let options = GeneratedOptions {
        count,
        seed: arguments.seed,
        size: arguments.size.unwrap_or(Recipe::SIZE),
        engines: arguments.engines(),
        firings: arguments.firings,
    };
    let mut told = 0;
    let mut failed = Ok(());
    printer.working("generating programs");
    let tally = compare_generated(&options, |tally| {
        for finding in tally.findings.get(told..).unwrap_or_default() {
            if failed.is_ok() {
                failed = printer.show(&FindingRow::new(finding));
            }
        }
        told = tally.findings.len();
        printer.working(format_args!("{} of {count} generated programs", tally.made));
    })?;
    failed?;
    printer.show(&GeneratedSummary::new(&tally))?;
    Ok(if tally.is_fine() {
        Exit::Fine
    } else {
        Exit::No
    })
}
