//! The *sameness* oracle on two builds of one source: a compiler chooses the instructions, not what
//! the program does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::candidate::Candidate;
use super::inputs::Inputs;
use super::oracle::Oracle;
use super::problem::Problem;
use super::runs::{CPUS, Prepared};
use crate::compare::MapContents;
use crate::harness::{Error, Judged, Vm};
use crate::program::{MapDef, MapOrigin, Program};
use crate::verifier::Decision;
use crate::vm::Outcome;

/// Inputs that two accepted builds run on.
const INPUTS: u64 = 16;

/// What a comparison of a program in two builds showed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Rebuilt {
    /// Both are accepted, and all of so many runs had the same results.
    Same(u64),
    /// Both are rejected.
    Rejected,
    /// Both are accepted, but one has no results, and why.
    NotRun(String),
    /// At least one has no verdict, and why: they are not compared.
    Unjudged(String),
    /// Only the first build has it, or only the other.
    OnlyIn(usize),
    /// They differ.
    Different(Problem),
}

/// Compares two builds of one source, program by program: their verdicts, and if both are accepted
/// their results on random inputs of a seed in the checked interpreter. Compared are return values,
/// outputs, packets, contexts, maps, and global variables that both have. Returns a result for each
/// name.
#[must_use]
pub fn compare_builds(builds: [&[Arc<Program>]; 2], seed: u64) -> BTreeMap<String, Rebuilt> {
    let judge = |program: &Arc<Program>| Judged::new(program.clone());
    let [one, other] = builds.map(|build| build.iter().map(judge).collect::<Vec<_>>());
    let find = |build: &[Judged], name: &str| build.iter().position(|it| it.program.name == name);
    let names = one.iter().chain(&other).map(|it| it.program.name.clone());
    let names: BTreeSet<_> = names.collect();
    let compared = names.into_iter().map(|name| {
        let result = match (find(&one, &name), find(&other, &name)) {
            (Some(at), Some(other_at)) => compare([(&one, at), (&other, other_at)], seed),
            (Some(_), _) => Rebuilt::OnlyIn(0),
            (None, _) => Rebuilt::OnlyIn(1),
        };
        (name, result)
    });
    compared.collect()
}

/// Compares programs of two builds, each with its place there.
fn compare(builds: [(&[Judged], usize); 2], seed: u64) -> Rebuilt {
    let verdicts = builds.map(|(build, at)| &build[at].verification.verdict);
    if let Some(unjudged) = verdicts.iter().find(|verdict| verdict.is_unjudged()) {
        return Rebuilt::Unjudged(unjudged.message.clone());
    }
    if verdicts[0].decision != verdicts[1].decision {
        let said =
            verdicts.map(|verdict| format!("{} {}", verdict.decision.word(), verdict.message));
        return Rebuilt::Different(problem("verdict", &said));
    }
    if verdicts[0].decision == Decision::Reject {
        return Rebuilt::Rejected;
    }
    for number in 0..INPUTS {
        match builds.map(|(build, at)| run(build, at, seed ^ number)) {
            [Ok(one), Ok(other)] => {
                if let Some(problem) = difference(&one, &other) {
                    return Rebuilt::Different(problem);
                }
            }
            [Err(why), _] | [_, Err(why)] if number == 0 => return Rebuilt::NotRun(why),
            // They have different numbers of instructions: only one may have reached the limit.
            _ => return Rebuilt::Same(number),
        }
    }
    Rebuilt::Same(INPUTS)
}

/// The results of a run as text, by name.
type Results = BTreeMap<String, String>;

/// Runs a program of a build on the input of a seed, with the others of its object, which it may
/// jump to; or why it has no results.
fn run(build: &[Judged], at: usize, seed: u64) -> Result<Results, String> {
    let program = &build[at].program;
    let candidate = Candidate::of_file(program.clone(), seed);
    let others = build.iter().enumerate();
    let others = others.filter(|(other, it)| {
        *other != at
            && it.verification.verdict.is_accepted()
            && it.program.prog_type == program.prog_type
    });
    let judged = [&build[at]].into_iter().chain(others.map(|(_, it)| it));
    let judged: Vec<_> = judged.cloned().collect();
    let prepared = Prepared {
        candidate: &candidate,
        judged: &judged,
        cpus: CPUS,
    };
    let (mut vm, handle) = prepared.machine().map_err(|error| error.to_string())?;
    let mut inputs = Inputs::new(seed);
    inputs.fill_declared_maps(&mut vm);
    let event = inputs.event(&mut vm, program);
    let mut results = Results::new();
    match vm.run(handle, &event) {
        Ok(outcome) => of_outcome(&outcome, &mut results),
        // An accepted program faults at limits only, which have to do with instructions.
        Err(error) => return Err(error.to_string()),
    }
    of_maps(&vm, program, &mut results).map_err(|error| error.to_string())?;
    Ok(results)
}

fn add(results: &mut Results, what: impl Into<String>, value: &dyn fmt::Debug) {
    results.insert(what.into(), format!("{value:?}"));
}

fn of_outcome(outcome: &Outcome, results: &mut Results) {
    let returned: Vec<_> = outcome.runs.iter().map(crate::vm::Run::returned).collect();
    add(results, "return value", &returned);
    let hook = (outcome.passed, outcome.verdict, outcome.overridden);
    add(results, "result for the hook", &hook);
    add(results, "outputs", &outcome.outputs);
    add(results, "context", &(&outcome.context, &outcome.kern));
    add(results, "packet", &(&outcome.packet, &outcome.metadata));
}

/// The contents of maps and global variables.
fn of_maps(vm: &Vm, program: &Program, results: &mut Results) -> Result<(), Error> {
    let btf = program.btf.as_ref();
    for map in vm.maps().filter(|map| MapContents::are_kept_by(map.def())) {
        let def = map.def();
        let contents = MapContents::new(def, btf, map.entries_bytes()?);
        if def.origin == MapOrigin::Declared {
            add(results, format!("map {}", def.name), &contents.entries);
        } else if let Some((_, value)) = contents.entries.first() {
            variables(def, program, value, results);
        }
    }
    Ok(())
}

/// The variables of a section. Compilers order them, and leave some out.
fn variables(def: &MapDef, program: &Program, value: &[u8], results: &mut Results) {
    let btf = program.btf.as_ref();
    let section = btf.and_then(|btf| btf.get(def.value_type?));
    for variable in section.iter().flat_map(|section| section.variables()) {
        let start = variable.offset as usize;
        let name = btf.and_then(|btf| btf.get(variable.ty));
        let bytes = value.get(start..start + variable.size as usize);
        if let (Some(name), Some(bytes)) = (name, bytes) {
            add(results, format!("{VARIABLE}{}", name.name()), &bytes);
        }
    }
}

/// The beginning of the name of a variable's result.
const VARIABLE: &str = "variable ";

/// The first difference between results. A variable may be missing.
fn difference(one: &Results, other: &Results) -> Option<Problem> {
    let names = one.keys().chain(other.keys());
    for name in names {
        let both = [one.get(name), other.get(name)];
        let missing = both.contains(&None);
        if both[0] != both[1] && !(missing && name.starts_with(VARIABLE)) {
            let texts = both.map(|text| text.cloned().unwrap_or_else(|| "none".to_owned()));
            return Some(problem(name, &texts));
        }
    }
    None
}

fn problem(what: &str, [one, other]: &[String; 2]) -> Problem {
    let kind = format!("two builds of one source: {what}");
    Problem::new(
        Oracle::SAMENESS,
        &kind,
        format!("the first: {one}"),
        format!("the other: {other}"),
    )
}
