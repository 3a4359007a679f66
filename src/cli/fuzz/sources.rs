//! What the programs of a campaign are made from.

use std::path::Path;
use std::sync::Arc;

use super::Arguments;
use crate::btf::Btf;
use crate::cli::exit::Failure;
use crate::cli::files::is_cases;
use crate::cli::input::kernel_types;
use crate::cli::printer::Printer;
use crate::fuzz::Seeds;
use crate::r#gen::KernelTypes;
use crate::object::cases::Cases;
use crate::object::{Object, Target};
use crate::program::Program;
use crate::verifier::{Options, verify};

/// Programs with more processed instructions are not changed.
const MAX_PROCESSED: u64 = 20_000;

/// The types, and the programs of `--from`.
pub(super) fn seeds(arguments: &Arguments, printer: &mut Printer) -> Result<Seeds, Failure> {
    let kernel = kernel_types(arguments.btf.as_deref())?;
    let mut programs = Vec::new();
    for file in &arguments.from {
        printer.working(format_args!("reading {}", file.display()));
        programs.extend(programs_of(file, kernel.as_ref())?);
    }
    // Long ones make slow campaigns.
    programs.retain(|program| {
        let verdict = verify(program, &Options::default()).verdict;
        !verdict.is_unjudged() && verdict.processed() <= MAX_PROCESSED
    });
    if programs.is_empty() && !arguments.from.is_empty() {
        let text = "--from: no program that can be changed: all are unjudged, or longer than \
                    20000 processed instructions";
        return Err(Failure::bad(text));
    }
    Ok(Seeds::new(kernel.as_ref().map(KernelTypes::new), programs))
}

/// The programs of an object or of a case file.
fn programs_of(file: &Path, kernel: Option<&Btf>) -> Result<Vec<Arc<Program>>, Failure> {
    if !is_cases(file) {
        return of_object(file, kernel);
    }
    let unreadable = |error: crate::object::cases::CaseError| Failure::bad(error.to_string());
    let mut cases = Cases::open(file).map_err(unreadable)?;
    if let Some(btf) = kernel {
        cases.set_kernel(btf.clone());
    }
    let mut programs = Vec::new();
    while let Some(case) = cases.next() {
        let case = case.map_err(unreadable)?;
        programs.push(Arc::new(cases.program(&case).map_err(unreadable)?));
    }
    Ok(programs)
}

/// The programs of an object. Those that can't be relocated are left out.
pub(super) fn of_object(file: &Path, kernel: Option<&Btf>) -> Result<Vec<Arc<Program>>, Failure> {
    let mut object = Object::open(file)?;
    if let Some(btf) = kernel {
        object.set_target(Target::Kernel(btf.clone()));
    }
    Ok(object
        .programs()
        .filter_map(Result::ok)
        .map(Arc::new)
        .collect())
}
