//! All our programs (`examples/bpf`, `tests/objects`, `tests/cases`) on every engine:
//! identical results. Programs that are not run are printed with the reason.

use crate::shared::case;
use crate::shared::sample;
use crate::shared::tally;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bpflab::compare::{Ours, Subject};
use bpflab::harness::EngineKind;
use bpflab::program::Program;
use bpflab::spec::ProgType;
use bpflab::vm::World;
use bpflab::vm::events::{Event, EventKind};
use bpflab::{Object, Vm};

use tally::Tally;

/// The engines that are compared with the checked one.
fn fast() -> Vec<Ours> {
    let interp = Ours::new(EngineKind::Interp);
    vec![
        interp.clone().with_loop(),
        interp,
        Ours::new(EngineKind::Jit),
        Ours::new(EngineKind::Jit).without_counts(),
    ]
}

/// Bytes of a context whose layout is unknown here.
const CONTEXT: usize = 128;

/// The events for a program: the one of its section, all zero, and packets of several
/// lengths and contents; for an unknown layout, zeros.
fn events(program: &Arc<Program>) -> Vec<Event> {
    let vm = Vm::with_world(World::default());
    let event = match program.prog_type {
        // Its context is what the caller passes.
        ProgType::Syscall => Ok(Event::bytes(vec![0; CONTEXT])),
        _ => vm.event_for(program, None),
    };
    let event = event.unwrap_or_else(|_| Event::bytes(vec![0; CONTEXT]));
    let mut events = vec![event];
    if events[0].kind() == EventKind::Packet {
        events.extend([60, 100].map(|len| Event::packet((0..len).collect::<Vec<u8>>())));
    }
    events
}

/// Runs a program on all engines: on the chosen ones, unless it is not verified.
fn run(tally: &mut Tally, program: &Arc<Program>, others: &[Arc<Program>]) -> Result<(), String> {
    tally.made += 1;
    tally.allow_unverified(program, others);
    let mut events = events(program).into_iter();
    let first = events.next().ok_or("no event")?;
    let mut subject = Subject::new(program.clone(), first).with_others(others.to_vec());
    tally.agree(&subject, &mut fast())?;
    for event in events {
        subject.event = event;
        tally.agree(&subject, &mut fast())?;
    }
    Ok(())
}

fn objects(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "o"))
        .collect();
    paths.sort();
    paths
}

#[test]
fn our_programs_run_alike() {
    let mut tally = Tally::new("objects");
    let (mut ran, mut wrong) = (0, Vec::new());
    for path in ["examples/bpf", "tests/objects"]
        .into_iter()
        .flat_map(objects)
        .step_by(sample::step())
    {
        // Some are meant to be refused.
        let Ok(object) = Object::open(&path) else {
            continue;
        };
        let programs: Vec<_> = object.programs().filter_map(Result::ok).collect();
        let programs: Vec<_> = programs.into_iter().map(Arc::new).collect();
        for program in &programs {
            let name = format!("{}: {}", path.display(), program.name);
            let others: Vec<_> = programs
                .iter()
                .filter(|other| !Arc::ptr_eq(other, program))
                .cloned()
                .collect();
            match run(&mut tally, program, &others) {
                Ok(()) => ran += 1,
                Err(why) if why.starts_with("on ") => wrong.push(format!("{name}: {why}")),
                Err(why) => eprintln!("{name}: not run: {why}"),
            }
        }
    }
    eprintln!("{ran} programs of {}", tally.made);
    tally.tell();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ran >= 50 / sample::step(), "{ran}");
}

#[test]
fn our_cases_run_alike() {
    let mut tally = Tally::new("cases");
    for path in case::all() {
        let program = case::read(&path);
        if let Err(why) = run(&mut tally, &program, &[]) {
            panic!("{}: {why}", path.display());
        }
    }
    tally.tell();
    assert!(tally.made >= 12, "{tally:?}");
}
