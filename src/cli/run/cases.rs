//! `bpflab run --cases`: runs programs with inputs and expected return values.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use super::arguments::Arguments;
use super::setup;
use crate::cli::exit::{Exit, Failure};
use crate::cli::printer::Printer;
use crate::harness::{Error, Vm};
use crate::object::cases::{Case, Cases};
use crate::spec::ProgFlags;
use crate::verifier::Decision;
use crate::vm::events::Event;
use crate::vm::{Fallback, ProgramHandle, World};

/// A run of a case. Its fields are the keys of `--json`.
#[derive(Debug, Serialize)]
struct CaseRow {
    /// The case's id; none for a malformed line.
    id: Option<String>,
    /// Number of the run, from 0; none if the whole case is broken.
    run: Option<usize>,
    /// The engine that ran it; none if it did not run.
    engine: Option<&'static str>,
    /// Why that is not the requested engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    engine_why: Option<String>,
    /// The return value; none if the run did not finish.
    retval: Option<u32>,
    /// The expected return value.
    expected: Option<u32>,
    ok: bool,
    /// Why there is no return value.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Why a return value that differs from the expected one is not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_compared: Option<&'static str>,
    #[serde(skip)]
    fallback: Option<Fallback>,
}

/// Why a value other than the kernel's is no difference.
const RANDOM: &str = "BPF_F_TEST_RND_HI32 puts random bits into upper halves of registers";

#[derive(Debug, Default)]
struct Count {
    cases: usize,
    without_runs: usize,
    ok: usize,
    differ: usize,
    broken: usize,
    not_compared: usize,
    /// Runs on another engine than requested, by reason.
    elsewhere: BTreeMap<Fallback, usize>,
}

pub(super) fn run(
    file: &Path,
    arguments: &Arguments,
    printer: &mut Printer,
) -> Result<Exit, Failure> {
    let mut cases = arguments.setup.kernel.open_cases(file, None)?;
    let world = setup::world(&arguments.setup.world)?;
    let mut count = Count::default();
    while let Some(case) = cases.next() {
        count.cases += 1;
        let case = match case {
            Ok(case) => case,
            Err(error) => {
                count.show(CaseRow::broken(None, error), printer)?;
                continue;
            }
        };
        if case.runs.is_empty() {
            count.without_runs += 1;
            continue;
        }
        for row in runs(&mut cases, &case, world.clone(), arguments) {
            count.show(row, printer)?;
        }
    }
    if !printer.is_json() {
        let Count {
            cases,
            without_runs,
            ok,
            differ,
            broken,
            not_compared,
            elsewhere,
        } = &count;
        let not_compared = match not_compared {
            0 => String::new(),
            some => format!(", {some} not compared"),
        };
        printer.text(format_args!(
            "{cases} cases, {without_runs} without runs; {ok} runs ok, {differ} differ, \
             {broken} broken{not_compared}\n"
        ))?;
        for (why, runs) in elsewhere {
            printer.text(format_args!(
                "{runs} runs on another engine than asked for: {why}\n"
            ))?;
        }
    }
    let fine = count.differ == 0 && count.broken == 0 && count.not_compared == 0;
    Ok(if fine { Exit::Fine } else { Exit::No })
}

/// Runs a case: its program is loaded once, and each run finds the maps as the run before left
/// them.
fn runs(cases: &mut Cases, case: &Case, world: World, arguments: &Arguments) -> Vec<CaseRow> {
    let id = Some(name(case));
    // Engines do not need BTF: a case whose BTF file is missing runs all the same.
    let known = cases.program(case).or_else(|error| {
        let mut bare = case.clone();
        let wanted = std::mem::take(&mut bare.btf);
        if wanted.is_empty() {
            Err(error)
        } else {
            cases.program(&bare)
        }
    });
    let program = match known {
        Ok(program) => Arc::new(program),
        Err(error) => return vec![CaseRow::broken(id, error)],
    };
    let prog_type = program.prog_type;
    let is_random = program.flags.contains(ProgFlags::TEST_RND_HI32);
    let mut vm = Vm::with_world(world);
    if let Some(engine) = arguments.engine {
        vm.set_engine(engine.into());
    }
    let loaded = vm.load_unverified_programs(&program.maps.clone(), vec![program]);
    let handle = match loaded.as_deref() {
        Ok([handle, ..]) => *handle,
        Ok([]) => return Vec::new(),
        Err(error) => return vec![CaseRow::broken(id, error)],
    };
    if !arguments.setup.unverified
        && let Some(program) = vm.program(handle)
        && let Ok(known) = vm.verification(handle)
        && !known.verdict.is_accepted()
    {
        let what = match known.verdict.decision {
            Decision::Unjudged => "not judged",
            _ => "rejected",
        };
        let (name, message) = (&program.name, &known.verdict.message);
        let error = format!(
            "program '{name}' is {what}: {message}; --unverified runs it with each access checked"
        );
        return vec![CaseRow::broken(id, error)];
    }
    let numbered = case.runs.iter().enumerate();
    let rows = numbered.map(|(number, run)| {
        let event = Event::input(prog_type, run.data.0.clone());
        let outcome = vm.run(handle, &event);
        let ran = outcome
            .as_ref()
            .ok()
            .and_then(|outcome| outcome.runs.first());
        let retval = ran.map(|run| run.returned());
        let fallback = ran.and_then(|run| run.ran_on.fallback);
        CaseRow {
            id: id.clone(),
            run: Some(number),
            engine: ran.map(|run| run.ran_on.engine.name()),
            engine_why: fallback.map(|why| match unverified(&vm, handle) {
                Some(verdict) if why.is_unverified() => verdict,
                _ => why.to_string(),
            }),
            fallback,
            retval,
            expected: Some(run.retval),
            ok: retval == Some(run.retval),
            error: outcome.err().map(|error: Error| error.to_string()),
            not_compared: (is_random && retval.is_some_and(|it| it != run.retval))
                .then_some(RANDOM),
        }
    });
    rows.collect()
}

/// The verifier's message for a program that it does not accept.
fn unverified(vm: &Vm, program: ProgramHandle) -> Option<String> {
    let verdict = &vm.verification(program).ok()?.verdict;
    let what = match verdict.decision {
        Decision::Accept => return None,
        Decision::Reject => Fallback::Rejected,
        Decision::Unjudged => Fallback::Unjudged,
    };
    Some(format!("{what}: {}", verdict.message))
}

/// A case's id, or its origin if it has none.
fn name(case: &Case) -> String {
    match (case.id.as_str(), case.object.as_str()) {
        ("", "") => case.program.clone(),
        ("", object) => format!("{object}/{}", case.program),
        (id, _) => id.to_owned(),
    }
}

impl CaseRow {
    fn broken(id: Option<String>, error: impl ToString) -> Self {
        Self {
            id,
            run: None,
            engine: None,
            engine_why: None,
            fallback: None,
            retval: None,
            expected: None,
            ok: false,
            error: Some(error.to_string()),
            not_compared: None,
        }
    }

    fn text(&self) -> String {
        let id = self.id.as_deref().unwrap_or("?");
        let run = self
            .run
            .map(|run| format!(" run {run}"))
            .unwrap_or_default();
        if let (Some(retval), Some(expected), Some(why)) =
            (self.retval, self.expected, self.not_compared)
        {
            return format!(
                "-       {id}{run}: {retval}, expected {expected}: not compared: {why}"
            );
        }
        let engine = match (self.engine, &self.engine_why) {
            (Some(engine), Some(why)) => format!(" (on {engine}: {why})"),
            _ => String::new(),
        };
        match (self.retval, self.expected, &self.error) {
            (Some(retval), Some(expected), _) if self.ok => {
                debug_assert_eq!(retval, expected);
                format!("ok      {id}{run}: {retval}{engine}")
            }
            (Some(retval), Some(expected), _) => {
                format!("DIFFERS {id}{run}: {retval}, expected {expected}{engine}")
            }
            (_, _, Some(error)) => format!("BROKEN  {id}{run}: {error}"),
            _ => format!("BROKEN  {id}{run}"),
        }
    }
}

impl Count {
    fn show(&mut self, row: CaseRow, printer: &mut Printer) -> Result<(), Failure> {
        if let Some(why) = row.fallback {
            *self.elsewhere.entry(why).or_default() += 1;
        }
        match (&row.error, row.not_compared, row.ok) {
            (Some(_), _, _) => self.broken += 1,
            (None, Some(_), _) => self.not_compared += 1,
            (None, None, true) => self.ok += 1,
            (None, None, false) => self.differ += 1,
        }
        if printer.is_json() {
            printer.row(&row)
        } else {
            printer.text(format_args!("{}\n", row.text()))
        }
    }
}
