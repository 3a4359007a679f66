//! A recording on another machine: it carries the kernel types that its programs need.

use std::process::Command;

use bpflab::Object;
use bpflab::compare::live::{Live, LiveOptions};
use bpflab::compare::recording::{Part, Recording, Resource, Writer};
use bpflab::compare::replay::{Replay, ReplayError, Word};
use bpflab::harness::EngineKind;
use bpflab::object::Target;

use super::recorded::{WRITES, is_there, script, writes};

/// A BTF tracepoint that reads fields of tasks.
const EXITS: &str = "examples/bpf/exits.bpf.o";

fn recorded(object: &str, command: Command) -> Vec<u8> {
    recorded_with(object, &LiveOptions::default(), command)
}

fn recorded_with(object: &str, options: &LiveOptions, mut command: Command) -> Vec<u8> {
    let mut live = Live::start(&Object::open(object).unwrap(), options).unwrap();
    let mut file = Vec::new();
    let summary = live.run(&mut command, &mut file).unwrap();
    assert!(summary.recorded() > 0 && summary.lost() == 0, "{summary:?}");
    file
}

/// The object on a machine without kernel BTF: only its own types are available.
fn elsewhere(object: &str) -> Object {
    let mut object = Object::open(object).unwrap();
    object.set_target(Target::Own);
    object
}

/// The recording without the kernel's types, and the size of these in bytes.
fn without_types(file: &[u8]) -> (Vec<u8>, usize) {
    let mut recording = Recording::new(file).unwrap();
    let mut writer = Writer::new(Vec::new(), recording.header()).unwrap();
    let mut bytes = 0;
    while let Some(part) = recording.next_part().unwrap() {
        let Part::Resources(files) = part else {
            continue;
        };
        for file in files {
            match file.name {
                Resource::KERNEL_BTF => bytes += file.bytes.len(),
                _ => writer.resource(&file).unwrap(),
            }
        }
    }
    (writer.finish(Default::default()).unwrap(), bytes)
}

#[test]
fn it_is_replayed_where_no_kernel_shows_its_types() {
    if !is_there() {
        return;
    }
    for (object, command, most) in [
        (EXITS, script("true; true & true"), 1 << 20),
        (WRITES, writes(20, 100), 10_000),
    ] {
        let file = recorded(object, command);
        let replay = Replay::new(&elsewhere(object), file.clone()).unwrap();
        for engine in [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit] {
            let report = replay.run(engine).unwrap();
            assert_eq!(
                report.word(),
                Word::Equal,
                "{object} on {engine}: {report:?}"
            );
            for program in &report.programs {
                assert_eq!(program.engine, Some(engine), "{}", program.name);
            }
        }
        let (stripped, bytes) = without_types(&file);
        assert!(
            (1..most).contains(&bytes),
            "{object}: {bytes} bytes of types"
        );
        if object == EXITS {
            let error = Replay::new(&elsewhere(object), stripped).unwrap_err();
            assert!(matches!(error, ReplayError::WrongObject(_)), "{error}");
        }
    }
}

#[test]
fn what_asks_for_no_types_carries_none() {
    if !is_there() {
        return;
    }
    let file = recorded("tests/objects/globals.bpf.o", writes(3, 10));
    assert_eq!(without_types(&file).1, 0);
}

#[test]
fn a_program_that_was_asked_for_by_name_is_found() {
    if !is_there() {
        return;
    }
    let object = "tests/objects/optional_programs.bpf.o";
    let options = LiveOptions::default().with_programs(["nor_this"]);
    let file = recorded_with(object, &options, writes(3, 10));
    let replay = Replay::new(&elsewhere(object), file).unwrap();
    let report = replay.run(EngineKind::default()).unwrap();
    assert_eq!(report.word(), Word::Equal, "{report:?}");
    assert_eq!(report.programs.len(), 1);
}
