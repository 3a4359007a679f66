//! The shared corpus's programs, run on the inputs of which a real kernel's return
//! value is known (`../shared/corpus`; skipped where it is not there).
//!
//! Three kinds of case can't give the kernel's value, and are counted apart: those
//! that return (a part of) an address, those whose prog arrays the kernel's loader
//! had filled with programs that the case does not hold, and those that need what
//! has no implementation yet. Any other difference fails.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bpflab::object::cases::{Case, Cases, Run};
use bpflab::program::Program;
use bpflab::spec::MapType;
use bpflab::vm::events::Event;
use bpflab::vm::memory::Pointer;
use bpflab::vm::{FaultKind, HelperProblem, World};
use bpflab::{Error, Vm};

/// The collection, or why it is not there.
fn corpus() -> Option<PathBuf> {
    let shared = std::env::var_os("BPFLAB_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../shared").into());
    let path = shared.join("corpus/selftests.jsonl.xz");
    if !path.is_file() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}

/// How a run compares with the kernel's.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Equal,
    ReturnsAddress,
    JumpsToUnknownPrograms,
    Missing(String),
    Different(String),
}

fn compare(program: &Arc<Program>, run: &Run) -> Verdict {
    let mut vm = Vm::with_world(World::default());
    let loaded = vm.load_programs(&program.maps, vec![program.clone()]);
    let handle = match loaded {
        Ok(handles) => handles[0],
        Err(error) => return Verdict::Different(error.to_string()),
    };
    let event = Event::input(program.prog_type, run.data.0.clone());
    let outcome = match vm.run_handle(handle, &event) {
        Ok(outcome) => outcome,
        Err(error) => return missing(&error),
    };
    let ran = &outcome.runs[0];
    let jumps = |map: &bpflab::program::MapDef| map.map_type == MapType::ProgArray;
    if ran.returned() == run.retval {
        Verdict::Equal
    } else if is_address(ran.r0) {
        Verdict::ReturnsAddress
    } else if program.maps.iter().any(jumps) {
        Verdict::JumpsToUnknownPrograms
    } else {
        Verdict::Different(format!("{}, the kernel {}", ran.returned(), run.retval))
    }
}

/// Whether a register holds what no `int` makes: an address, whole or with bytes
/// overwritten. (The kernel's return value has its low half only.)
fn is_address(register: u64) -> bool {
    i32::try_from(register.cast_signed()).is_err() && u32::try_from(register).is_err()
}

/// A fault because of something that has no implementation, or any other error.
fn missing(error: &Error) -> Verdict {
    let Error::Fault(fault) = error else {
        return Verdict::Different(error.to_string());
    };
    match &fault.kind {
        FaultKind::Kfunc { .. } => Verdict::Missing("kernel functions".into()),
        FaultKind::Helper {
            problem: HelperProblem::Missing(_) | HelperProblem::MapMissing { .. },
            ..
        } => Verdict::Missing(fault.kind.to_string()),
        FaultKind::Access(access) => match access.pointer {
            Pointer::Region { len: 0, .. } => Verdict::Missing("arenas".into()),
            Pointer::Null(_) => Verdict::Missing("typed kernel pointers".into()),
            _ => Verdict::Different(error.to_string()),
        },
        _ => Verdict::Different(error.to_string()),
    }
}

#[test]
fn the_kernels_return_values() {
    let Some(path) = corpus() else { return };
    let mut cases = Cases::open(&path).unwrap();
    let all: Vec<Case> = cases.by_ref().collect::<Result<_, _>>().unwrap();
    let (mut counts, mut different) = (BTreeMap::<Verdict, usize>::new(), Vec::new());
    for case in &all {
        let program = Arc::new(cases.program(case).unwrap());
        for input in &case.runs {
            let verdict = compare(&program, input);
            if let Verdict::Different(how) = &verdict {
                different.push(format!("{}: {how}", case.id));
            } else {
                *counts.entry(verdict).or_default() += 1;
            }
        }
    }
    eprintln!("{counts:#?}");
    assert_eq!(different, Vec::<String>::new());
    assert!(counts[&Verdict::Equal] >= 476, "{counts:?}");
}
