//! The shared corpus's programs, run on the inputs of which a real kernel's return
//! value is known (`../shared/corpus`; skipped where it is not there).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bpflab::Vm;
use bpflab::object::cases::{Case, Cases, Run};
use bpflab::program::Program;
use bpflab::vm::World;
use bpflab::vm::events::Event;

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

/// What the program returns for this input, or why it does not get there.
fn run(program: &Arc<Program>, run: &Run) -> Result<u32, String> {
    let mut vm = Vm::with_world(World::default());
    vm.set_budget(50_000_000);
    let loaded = vm.load_programs(&program.maps, vec![program.clone()]);
    let handle = loaded.map_err(|error| error.to_string())?[0];
    let event = Event::input(program.prog_type, run.data.0.clone());
    let outcome = vm
        .run_handle(handle, &event)
        .map_err(|error| error.to_string())?;
    Ok(outcome.runs[0].returned())
}

#[test]
fn the_kernels_return_values() {
    let Some(path) = corpus() else { return };
    let mut cases = Cases::open(&path).unwrap();
    let (mut right, mut wrong) = (0, Vec::new());
    let all: Vec<Case> = cases.by_ref().collect::<Result<_, _>>().unwrap();
    let mut reasons = BTreeMap::<String, usize>::new();
    for case in all.iter().filter(|case| !case.runs.is_empty()) {
        let program = Arc::new(cases.program(case).unwrap());
        for input in &case.runs {
            match run(&program, input) {
                Ok(retval) if retval == input.retval => right += 1,
                Ok(retval) => {
                    wrong.push(format!(
                        "{}: {retval}, the kernel {}",
                        case.id, input.retval
                    ));
                    *reasons.entry("value".into()).or_default() += 1;
                }
                Err(error) => {
                    let first = error.lines().next().unwrap_or_default();
                    *reasons
                        .entry(
                            first
                                .split_once(": ")
                                .map_or(first, |(_, why)| why)
                                .to_owned(),
                        )
                        .or_default() += 1;
                    wrong.push(format!("{}: {first}", case.id));
                }
            }
        }
    }
    for line in &wrong {
        eprintln!("{line}");
    }
    eprintln!("{right} right, {} wrong: {reasons:#?}", wrong.len());
    assert!(right >= 530);
}
