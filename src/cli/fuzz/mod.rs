//! `bpflab fuzz`: a campaign, or a finding again.

mod arguments;
mod rebuilt;
mod sources;

use std::path::Path;
use std::time::Duration;

use serde_json::json;

pub(super) use arguments::Arguments;

use super::exit::{Exit, Failure};
use super::files::is_cases;
use super::input::kernel_types;
use super::printer::Printer;
use crate::fuzz::{
    Campaign, CampaignEvent, CampaignOptions, Candidate, Finding, FuzzCase, Judge, Oracle,
    OtherBuild, Strategy, answer, write_case, write_corpus,
};
use crate::object::cases::Cases;
use crate::report::{FuzzFinding, FuzzProgress, FuzzSummary};

/// The time of a campaign without limits.
const SECONDS: u64 = 10;

/// Whether the running kernel can judge, and whether it is the release that bpflab models.
pub(super) fn kernel() -> (bool, bool) {
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    {
        let kernel = crate::kernel::Availability::probe();
        let is_same = kernel.release.starts_with("6.18.");
        (kernel.usable(), kernel.usable() && is_same)
    }
    #[cfg(not(all(feature = "kernel", target_os = "linux")))]
    {
        (false, false)
    }
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    if let Some(directory) = &arguments.corpus {
        let count = write_corpus(directory, &arguments.from)
            .map_err(|error| Failure::bad(format!("{}: {error}", directory.display())))?;
        let directory = directory.display().to_string();
        if printer.is_json() {
            printer.row(&json!({ "kind": "corpus", "directory": directory, "inputs": count }))?;
        } else {
            printer.text(format_args!("{count} inputs in {directory}\n"))?;
        }
        return Ok(Exit::Fine);
    }
    if arguments.answer {
        let types = || kernel_types(arguments.btf.as_deref());
        answer(std::io::stdin().lock(), std::io::stdout().lock(), types)?;
        return Ok(Exit::Fine);
    }
    let (mut usable, is_judge) = kernel();
    usable &= !arguments.no_kernel;
    let mut oracles = arguments
        .oracle
        .iter()
        .fold(Oracle::empty(), |all, one| all | *one);
    if oracles.is_empty() {
        oracles = Oracle::OF_VERIFIER;
        if !(usable && is_judge) {
            oracles -= Oracle::VERDICT;
        }
    } else if oracles.contains(Oracle::VERDICT) && !usable {
        let text = "the oracle `verdict` needs the running kernel: load programs as root, and \
                    leave out --no-kernel";
        return Err(Failure::with(Exit::Unavailable, text));
    }
    if arguments.other_bpflab.is_some() && !oracles.contains(Oracle::VALUE) {
        return Err(Failure::bad("--other-bpflab belongs to the oracle `value`"));
    }
    let other_build = arguments.other_bpflab.as_deref();
    let other_build = other_build
        .map(|file| OtherBuild::find(file, arguments.btf.as_deref()))
        .transpose()
        .map_err(|error| Failure::with(Exit::Unavailable, error.to_string()))?;
    if let Some(file) = &arguments.replay {
        let judge = Judge::new(oracles, usable).with_other_build(other_build);
        return replay(file, arguments, judge, printer);
    }
    let seeds = sources::seeds(arguments, printer)?;
    let strategies = strategies(arguments, seeds.kernel.is_some())?;
    let time = arguments
        .seconds
        .or_else(|| arguments.programs.is_none().then_some(SECONDS));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let options = CampaignOptions {
        seed: arguments.seed,
        first: arguments.first,
        threads: arguments.threads.unwrap_or(threads).max(1),
        time: time.map(Duration::from_secs),
        programs: arguments.programs,
        findings: arguments.findings.max(1),
        oracles,
        strategies,
        kernel: usable,
        other_build,
        reduces: !arguments.no_reduce,
    };
    let campaign = Campaign::new(options.clone(), &seeds);
    let mut failed = Ok(());
    let made_with = arguments.made_with();
    printer.working("generating programs");
    let summary = campaign.run(|event| match event {
        CampaignEvent::Progress(counts, elapsed, found) => {
            printer.working(FuzzProgress::new(counts, elapsed, found));
        }
        CampaignEvent::Finding(finding) => {
            if failed.is_ok() {
                failed = show(finding, arguments.output.as_deref(), &made_with, printer);
            }
        }
    });
    let summary = summary.map_err(|error| Failure::bad(format!("no thread: {error}")))?;
    failed?;
    printer.show(&FuzzSummary::new(&summary, &options))?;
    Ok(match summary.findings.is_empty() {
        true => Exit::Fine,
        false => Exit::No,
    })
}

/// The strategies of a campaign: those asked for, or all that are possible.
fn strategies(arguments: &Arguments, has_types: bool) -> Result<Vec<Strategy>, Failure> {
    let needs = |strategy: &Strategy| strategy.needs_kernel_types() && !has_types;
    if let Some(strategy) = arguments.strategy.iter().find(|strategy| needs(strategy)) {
        let text = format!(
            "the strategy `{}` needs the types of a kernel: give its BTF with --btf FILE",
            strategy.name()
        );
        return Err(Failure::with(Exit::Unavailable, text));
    }
    if !arguments.strategy.is_empty() {
        return Ok(arguments.strategy.clone());
    }
    let all = Strategy::ALL.iter().map(|(strategy, ..)| *strategy);
    Ok(all.filter(|strategy| !needs(strategy)).collect())
}

/// Writes and prints a finding.
fn show(
    finding: &Finding,
    output: Option<&Path>,
    made_with: &str,
    printer: &mut Printer,
) -> Result<(), Failure> {
    let file = output.map(|directory| {
        write_case(directory, finding)
            .map_err(|error| Failure::bad(format!("{}: {error}", directory.display())))
    });
    let file = file.transpose()?;
    printer.show(&FuzzFinding::new(finding, file.as_deref(), made_with))?;
    printer.flush()
}

/// Judges the programs of a case file, or of an object.
fn replay(
    file: &Path,
    arguments: &Arguments,
    mut judge: Judge,
    printer: &mut Printer,
) -> Result<Exit, Failure> {
    let kernel = kernel_types(arguments.btf.as_deref())?;
    if let Some(other) = &arguments.rebuilt {
        if !arguments.oracle.is_empty() && arguments.oracle != [Oracle::SAMENESS] {
            return Err(Failure::bad("--rebuilt belongs to the oracle `sameness`"));
        }
        return rebuilt::compare([file, other], kernel.as_ref(), arguments.seed, printer);
    }
    let mut exit = Exit::Fine;
    if !is_cases(file) {
        for program in sources::of_object(file, kernel.as_ref())? {
            let id = program.name.clone();
            let candidate = Candidate::of_file(program, arguments.seed);
            judge_one(
                &id,
                candidate,
                arguments.seed,
                file,
                &mut judge,
                printer,
                &mut exit,
            )?;
        }
        return Ok(exit);
    }
    let unreadable = |error: crate::object::cases::CaseError| Failure::bad(error.to_string());
    let mut cases = Cases::open(file).map_err(unreadable)?;
    if let Some(btf) = &kernel {
        cases.set_kernel(btf.clone());
    }
    while let Some(case) = cases.next() {
        let case = case.map_err(unreadable)?;
        let program = cases.program(&case).map_err(unreadable)?;
        let candidate = FuzzCase::candidate(&case, program, kernel.as_ref())
            .map_err(|error| Failure::bad(format!("{}: {error}", case.id)))?;
        let seed = FuzzCase::of(&case).map_or(0, |own| own.seed);
        judge_one(
            &case.id, candidate, seed, file, &mut judge, printer, &mut exit,
        )?;
    }
    Ok(exit)
}

/// Judges a program of a file; a finding changes the exit code.
fn judge_one(
    id: &str,
    candidate: Candidate,
    seed: u64,
    file: &Path,
    judge: &mut Judge,
    printer: &mut Printer,
    exit: &mut Exit,
) -> Result<(), Failure> {
    if let Some(problem) = judge.judge(&candidate) {
        let finding = Finding {
            insns_before: candidate.program.insns.len(),
            candidate,
            problem,
            seed,
            options: judge.options_of_fuzz(),
            programs: judge.counts.programs,
            elapsed: Duration::ZERO,
        };
        *exit = Exit::No;
        printer.show(&FuzzFinding::new(&finding, Some(file), ""))
    } else if printer.is_json() {
        printer.row(&json!({ "kind": "no finding", "id": id }))
    } else {
        printer.text(format_args!("{id}: no finding\n"))
    }
}
