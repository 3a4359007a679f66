//! All engines give the same answer: every run of the shared corpus on the checked and
//! on the fast interpreter, and in machine code (`../shared/corpus`; skipped where it is not there).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bpflab::Vm;
use bpflab::harness::EngineKind;
use bpflab::object::cases::{Case, Cases};
use bpflab::program::Program;
use bpflab::vm::World;
use bpflab::vm::events::Event;

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

/// Everything that came of running a program on these inputs, one after the other, in
/// words; and whether it ran on the engine.
fn all_of(program: &Arc<Program>, engine: EngineKind, inputs: &[Event]) -> (String, bool) {
    let mut vm = Vm::with_world(World::default());
    vm.set_engine(engine);
    let handles = vm
        .load_programs(&program.maps, vec![program.clone()])
        .unwrap();
    let mut text = String::new();
    for event in inputs {
        match vm.run_handle(handles[0], event) {
            Ok(outcome) => text += &format!("{outcome:?}\n"),
            Err(error) => text += &format!("{error}\n"),
        }
    }
    for (_, map) in vm.machine().maps() {
        let size = map.def().key_size as usize;
        for key in map.keys().unwrap_or_default().chunks(size.max(1)) {
            text += &format!("{key:?}: {:?}\n", map.read(key));
        }
    }
    (text, vm.engine_of_handle(handles[0]) == engine)
}

#[test]
fn the_corpus_on_all_engines() {
    let Some(path) = corpus() else { return };
    let mut cases = Cases::open(&path).unwrap();
    let all: Vec<Case> = cases.by_ref().collect::<Result<_, _>>().unwrap();
    let (mut counts, mut different) = (BTreeMap::<(&str, bool), usize>::new(), Vec::new());
    for case in all.iter().filter(|case| !case.runs.is_empty()) {
        let program = Arc::new(cases.program(case).unwrap());
        let inputs: Vec<_> = case
            .runs
            .iter()
            .map(|run| Event::input(program.prog_type, run.data.0.clone()))
            .collect();
        let (checked, _) = all_of(&program, EngineKind::Checked, &inputs);
        for engine in [EngineKind::Interp, EngineKind::default()] {
            let (fast, is_fast) = all_of(&program, engine, &inputs);
            *counts.entry((engine.name(), is_fast)).or_default() += inputs.len();
            if checked != fast {
                different.push(format!("{} on {engine}:\n{checked}---\n{fast}", case.id));
            }
        }
    }
    eprintln!("runs on the fast engines: {counts:?}");
    assert!(different.is_empty(), "{}", different.join("\n"));
    for engine in [EngineKind::Interp, EngineKind::default()] {
        assert!(counts[&(engine.name(), true)] >= 400, "{counts:?}");
    }
}
