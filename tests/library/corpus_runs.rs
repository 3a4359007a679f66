//! The shared corpus's programs, run on the inputs of which a real kernel's return
//! value is known (`../shared/corpus`; skipped where it is not there), on each engine.
//! The engines have to agree in everything, and each has a column in the summary, which
//! counts the runs on another engine than the one that was asked for by their reason: a run
//! of the checked interpreter is no success of the machine code.
//!
//! Three kinds of case can't give the kernel's value, and are counted apart: those
//! that return (a part of) an address, those whose prog arrays the kernel's loader
//! had filled with programs that the case does not hold, and those that need what
//! has no implementation yet. Any other difference fails.

use crate::shared;
use crate::shared::sample;

use std::collections::BTreeMap;
use std::sync::Arc;

use bpflab::compare::{Answer, Engine, Ours, Subject, difference};
use bpflab::harness::{EngineKind, Fallback};
use bpflab::object::Target;
use bpflab::object::cases::{Case, Cases};
use bpflab::program::MapDef;
use bpflab::spec::MapType;
use bpflab::vm::events::Event;
use bpflab::vm::{Fault, FaultKind, HelperProblem};

/// How a run compares with the kernel's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Equal,
    ReturnsAddress,
    JumpsToUnknownPrograms,
    Missing(String),
    Different(String),
}

/// An engine's answer against the kernel's return value.
fn judge(subject: &Subject, answer: &Answer, retval: u32) -> Verdict {
    let details = answer.details.as_ref().expect("one of our engines");
    let has = |map_type| {
        let mut maps = subject.program.maps.iter();
        maps.any(|map: &MapDef| map.map_type == map_type)
    };
    if let Some(fault) = &details.fault {
        return missing(fault, has(MapType::Arena));
    }
    let r0 = details.outcome.runs[0].r0;
    if answer.retval == Some(retval) {
        Verdict::Equal
    } else if is_address(r0) {
        Verdict::ReturnsAddress
    } else if has(MapType::ProgArray) {
        Verdict::JumpsToUnknownPrograms
    } else if has(MapType::Arena) {
        // The recorded runs had it in no process: pages begin elsewhere then.
        Verdict::Missing("arenas that user space has not mapped".into())
    } else if !details.outcome.probed.is_empty() {
        Verdict::Missing("objects of the kernel that nobody made".into())
    } else {
        Verdict::Different(format!("{r0:#x}, the kernel {retval}"))
    }
}

/// Whether a register holds what no `int` makes: an address, whole or with bytes
/// overwritten. (The kernel's return value has its low half only.)
fn is_address(register: u64) -> bool {
    i32::try_from(register.cast_signed()).is_err() && u32::try_from(register).is_err()
}

/// A fault because of something that has no implementation, or any other.
fn missing(fault: &Fault, has_arena: bool) -> Verdict {
    match &fault.kind {
        FaultKind::Kfunc {
            problem: HelperProblem::MissingKfunc(_),
            ..
        } => Verdict::Missing(fault.kind.to_string()),
        FaultKind::Helper {
            problem: HelperProblem::Missing(_),
            ..
        } => Verdict::Missing(fault.kind.to_string()),
        // The kernel goes on; here a test wants to know.
        FaultKind::Access(_) if has_arena => {
            Verdict::Missing("pages of arenas that were not given out".into())
        }
        _ => Verdict::Different(fault.to_string()),
    }
}

/// An engine's column: runs by verdict, and those on another engine by the reason, which
/// are in no verdict.
#[derive(Debug, Default)]
struct Column {
    verdicts: BTreeMap<Verdict, usize>,
    elsewhere: BTreeMap<Fallback, usize>,
}

#[test]
fn the_kernels_return_values_on_every_engine() {
    let Some(path) = shared::corpus() else { return };
    let mut cases = Cases::open(&path).unwrap();
    // Calls of kernel functions are numbers of it.
    let kernel = path.with_file_name("vmlinux-6.18.44.btf.xz");
    if let Target::Kernel(btf) = Target::file(kernel).unwrap() {
        cases.set_kernel(btf);
    }
    let all: Vec<Case> = cases.by_ref().collect::<Result<_, _>>().unwrap();
    let checked = Ours::new(EngineKind::Checked);
    let mut engines = vec![
        checked,
        Ours::new(EngineKind::Interp),
        Ours::new(EngineKind::Jit),
        Ours::new(EngineKind::Jit).without_counts(),
    ];
    let (mut columns, mut wrong) = (BTreeMap::<String, Column>::new(), Vec::new());
    let run = all.iter().filter(|case| !case.runs.is_empty());
    for case in run.step_by(sample::step()) {
        let program = Arc::new(cases.program(case).unwrap());
        for input in &case.runs {
            let event = Event::input(program.prog_type, input.data.0.clone());
            let subject = Subject::new(program.clone(), event);
            let mut first: Option<Answer> = None;
            for engine in &mut engines {
                let answer = engine.run(&subject).unwrap();
                let verdict = judge(&subject, &answer, input.retval);
                let name = engine.name();
                if let Verdict::Different(how) = &verdict {
                    wrong.push(format!("{} on {name}: {how}", case.id));
                }
                let column = columns.entry(name.clone()).or_default();
                let ran_on = answer.details.as_ref().expect("one of ours").ran_on;
                assert_eq!(ran_on.fallback.is_none(), ran_on.engine == engine.kind);
                match ran_on.fallback {
                    Some(why) => *column.elsewhere.entry(why).or_default() += 1,
                    None => *column.verdicts.entry(verdict).or_default() += 1,
                }
                let first = first.get_or_insert_with(|| answer.clone());
                if let Some(difference) = difference(first, &answer) {
                    wrong.push(format!("{} on {name}: {difference}", case.id));
                }
            }
        }
    }
    eprintln!("{columns:#?}");
    assert_eq!(wrong, Vec::<String>::new());
    // Half of its share, where a part ran.
    let least = |of_all: usize| {
        if sample::all() {
            of_all
        } else {
            of_all / (2 * sample::step())
        }
    };
    for (engine, column) in &columns {
        let is_missing = engine == "jit" && EngineKind::default() != EngineKind::Jit;
        let equal = column.verdicts.get(&Verdict::Equal).copied();
        let (least, expected) = match engine.as_str() {
            "checked" => (least(507), BTreeMap::new()),
            _ if is_missing => (0, column.elsewhere.clone()),
            _ => (least(497), BTreeMap::new()),
        };
        assert!(equal.unwrap_or(0) >= least, "{engine}: {column:?}");
        assert_eq!(column.elsewhere, expected, "{engine}");
    }
}
