//! `bpflab verify`: judges programs.

mod arguments;
mod findings;
mod kernel;
mod sort;

use std::num::NonZeroU32;
use std::sync::Arc;

pub(super) use arguments::Arguments;
use kernel::KernelVerdicts;

use super::exit::{Exit, Failure};
use super::files::{read_text, write_text};
use super::input::kernel_types;
use super::printer::Printer;
use super::reports::explain;
use super::subjects::Found;
use crate::object::build_options;
use crate::program::Program;
use crate::report::{
    Baseline, Changes, Finding, Judged, MatchTable, Subject, VerdictPage, VerdictRow, VerdictTable,
    VerdictTally,
};
use crate::spec::{KernelConfig, ProgFlags};
use crate::verifier::{LogLevel, Options, Unverified, Verification, survey, verify};

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    let baseline = arguments.against.as_ref().map(|file| {
        Baseline::read(&read_text(file)?)
            .map_err(|error| Failure::bad(format!("{}: {error}", file.display())))
    });
    let baseline = baseline.transpose()?;
    let log = LogLevel::from_bits_truncate(arguments.log);
    if arguments.vs_kernel && arguments.token.is_some() && !arguments.has_all_capabilities() {
        return Err(Failure::bad(
            "--token with --cap can't be compared with a kernel: there the loader has all \
             capabilities in the token's user namespace",
        ));
    }
    let kernel = arguments
        .vs_kernel
        .then(|| KernelVerdicts::new(log, arguments.loader(), arguments.token.as_ref()))
        .transpose()?;
    let (config, cpus) = kernel_config(arguments, kernel.as_ref())?;
    let mut session = Session {
        arguments,
        options: Options {
            log,
            strict_alignment: arguments.strict_alignment,
            cpus,
            kernel: config,
            capabilities: arguments.loader(),
            token: arguments.token,
            ..Options::default()
        },
        kernel,
        tally: VerdictTally::default(),
        rows: Vec::new(),
        page: arguments.html.is_some().then(VerdictPage::default),
        exit: Exit::Fine,
    };
    // Cases that the running kernel judges, too, can't have other ids than its own.
    let types = match session.kernel {
        Some(_) if arguments.programs.are_cases() => kernel_types(None)?,
        _ => None,
    };
    arguments
        .programs
        .each(types, |found| session.found(found, printer))?;
    session.finish(baseline, printer)
}

/// The kernel to judge for: the options, then the running kernel if it is compared, then the
/// default.
fn kernel_config(
    arguments: &Arguments,
    kernel: Option<&KernelVerdicts>,
) -> Result<(KernelConfig, Option<NonZeroU32>), Failure> {
    let (mut config, mut cpus) = match kernel {
        Some(kernel) => kernel.config()?,
        None => Default::default(),
    };
    if let Some(file) = &arguments.kernel_config {
        config.build = build_options(file)
            .map_err(|error| Failure::bad(format!("{}: {error}", file.display())))?;
    }
    if let Some(level) = arguments.lockdown {
        config.lockdown = level.into();
    }
    cpus = arguments.cpus.or(cpus);
    Ok((config, cpus))
}

/// Judges programs, prints what can be printed at once, and collects the rows.
struct Session<'a> {
    arguments: &'a Arguments,
    options: Options,
    kernel: Option<KernelVerdicts>,
    tally: VerdictTally,
    rows: Vec<VerdictRow>,
    page: Option<VerdictPage>,
    exit: Exit,
}

impl Session<'_> {
    fn found(&mut self, found: Found, printer: &mut Printer) -> Result<(), Failure> {
        match found {
            Found::Failed(failure) => {
                self.exit = self.exit.max(printer.failure(failure)?);
                Ok(())
            }
            Found::Warning(text) => printer.warn(&text),
            Found::Untyped(subject, text) => {
                self.without_program(VerdictRow::untyped(subject, &text), printer)
            }
            Found::Broken(subject, text) => {
                self.without_program(VerdictRow::broken(subject, &text), printer)
            }
            Found::Program(subject, program) => self.program(subject, program, printer),
        }
    }

    fn without_program(&mut self, row: VerdictRow, printer: &mut Printer) -> Result<(), Failure> {
        if let Some(page) = &mut self.page {
            page.add(&row, None, &|_| None);
        }
        self.keep(row, "", printer)
    }

    fn program(
        &mut self,
        subject: Subject,
        mut program: Arc<Program>,
        printer: &mut Printer,
    ) -> Result<(), Failure> {
        if self.arguments.strict_alignment {
            // The kernel takes the flag with the load, and it is part of the program.
            Arc::make_mut(&mut program).flags |= ProgFlags::STRICT_ALIGNMENT;
        }
        printer.working(format_args!("verifying {}", subject.name()));
        let Verification { verdict, outcome } = verify(&program, &self.options);
        let why = outcome.as_ref().err();
        let mut row = VerdictRow::of(subject)
            .judged(&verdict, self.arguments.log > 0)
            .refused(why, &program, self.arguments.explains());
        if self.arguments.findings.any() {
            row = row.with_headline(why, &program);
        }
        row.capabilities = Some(self.options.capabilities.names().collect());
        row.token = self.options.token.map(|token| token.to_string());
        row.btf = self.arguments.programs.btf_name(&program);
        if let Some(kernel) = &mut self.kernel {
            row = kernel.compare(row, &program, printer)?;
        }
        self.show_in_page(&row, &program);
        let lines = match why {
            None => "",
            Some(Unverified::Rejected(reject)) => reject.text(),
            Some(Unverified::Unjudged(_)) => &verdict.message,
        };
        self.keep(row, lines, printer)
    }

    /// Adds a row to the page, with the program's exploration, which is explored again for it.
    fn show_in_page(&mut self, row: &VerdictRow, program: &Arc<Program>) {
        let Some(page) = &mut self.page else {
            return;
        };
        let read = |name: &str| std::fs::read_to_string(name).ok();
        let Some(limits) = page.limits() else {
            page.add(row, None, &read);
            return;
        };
        let options = Options {
            log: LogLevel::PATH,
            ..self.options
        };
        let (verification, survey) = survey(program, &options, limits);
        let judged = Judged {
            program,
            why: verification.outcome.as_ref().err(),
            survey: &survey,
            log: &verification.verdict.log,
        };
        page.add(row, Some(&judged), &read);
    }

    /// Counts and stores a row; prints it if it need not wait for the others. `lines` are the
    /// kernel's log of a reject, or bpflab's lines on what is not modelled.
    fn keep(
        &mut self,
        mut row: VerdictRow,
        lines: &str,
        printer: &mut Printer,
    ) -> Result<(), Failure> {
        // Rows without a verdict have these keys, too.
        row.refused.get_or_insert_default();
        self.tally.add(&row);
        // Sorting and comparing need the other rows, too.
        let waits = self.arguments.sort.is_some() || self.arguments.against.is_some();
        if !printer.is_json() {
            explain(&mut row, lines, printer)?;
        } else if !waits {
            printer.row(&row)?;
            row.log = None;
            row.report = None;
        }
        self.rows.push(row);
        Ok(())
    }

    fn finish(
        mut self,
        baseline: Option<Baseline>,
        printer: &mut Printer,
    ) -> Result<Exit, Failure> {
        if let Some(key) = self.arguments.sort {
            key.sort(&mut self.rows);
        }
        if let (Some(file), Some(page)) = (&self.arguments.html, self.page.take()) {
            write_text(file, &page.finish(&self.tally))?;
        }
        let findings = &self.arguments.findings;
        let here = std::env::current_dir().unwrap_or_default();
        let no = |fine: bool| if fine { Exit::Fine } else { Exit::No };
        if let Some(baseline) = baseline {
            let changes = Changes::new(&self.rows, baseline).with_fail_on(&self.arguments.fail_on);
            if printer.is_json() {
                for change in changes.all() {
                    printer.row(change)?;
                }
            } else {
                printer.text(&changes)?;
            }
            if findings.any() {
                findings.write(&Finding::of_changes(&changes, &here), printer)?;
            }
            return Ok(self.exit.max(no(changes.pass())));
        }
        let matches = MatchTable(&self.rows);
        if printer.is_json() {
            if self.arguments.sort.is_some() {
                for row in &self.rows {
                    printer.row(row)?;
                }
            }
        } else if self.kernel.is_some() {
            printer.text(&matches)?;
        } else if !self.rows.is_empty() {
            printer.text(VerdictTable(&self.rows))?;
            printer.text(format_args!("{}\n", self.tally))?;
        }
        if findings.any() {
            findings.write(&Finding::of_rows(&self.rows, &here), printer)?;
        }
        let answer = if self.kernel.is_some() {
            matches.all_match()
        } else {
            self.tally.all_accepted()
        };
        Ok(self.exit.max(no(answer)))
    }
}
