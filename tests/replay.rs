//! Recordings made in user space, replayed on every engine.

#[path = "replay/taped.rs"]
mod taped;

use std::sync::Arc;

use bpflab::compare::replay::{Different, Replay, Report, Verdict, Word};
use bpflab::harness::EngineKind;
use bpflab::program::Program;
use bpflab::vm::World;
use bpflab::{Object, Vm};

use taped::{CPUS, Recorder, Taped};

const ENGINES: [EngineKind; 3] = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit];

fn programs(file: &str) -> Vec<Arc<Program>> {
    let mut object = Object::open(format!("examples/bpf/{file}.bpf.o")).unwrap();
    object.set_target(bpflab::object::Target::Own);
    let programs = object.programs().map(|program| Arc::new(program.unwrap()));
    programs.collect()
}

/// What is said of a recording on each engine, which has to be the same.
fn replayed(taped: &Taped) -> Report {
    let file = taped.file();
    let replay = Replay::of_programs(&taped.programs, &taped.maps, file).unwrap();
    let mut reports = ENGINES.map(|engine| {
        let mut report = replay.run(engine).unwrap();
        assert_eq!(report, replay.run(engine).unwrap(), "the same each time");
        report.engine = EngineKind::Checked;
        for program in &mut report.programs {
            program.engine = None;
        }
        report
    });
    assert_eq!(reports[0], reports[1], "interp");
    assert_eq!(reports[0], reports[2], "jit");
    std::mem::replace(
        &mut reports[0],
        Report {
            engine: EngineKind::Checked,
            programs: Vec::new(),
            maps: Vec::new(),
            outputs: Vec::new(),
            missing: Vec::new(),
        },
    )
}

/// Writes of many sizes, on all CPUs.
fn writes(count: u64) -> Taped {
    let programs = programs("write_hist");
    let layout = Vm::new(Object::open("examples/bpf/write_hist.bpf.o").unwrap()).unwrap();
    let event = layout.tracepoint("syscalls/sys_enter_write").unwrap();
    let len = u32::try_from(event.record().len()).unwrap();
    let mut recorder = Recorder::new(programs, len);
    for number in 0..count {
        let cpu = u32::try_from(number % u64::from(CPUS)).unwrap();
        recorder
            .vm
            .world()
            .set_cpu(cpu)
            .clock()
            .set_ns(1000 + number);
        let event = event.clone().set("args[2]", number * number).unwrap();
        recorder.fire(0, &event);
    }
    recorder.finish()
}

#[test]
fn a_histogram_is_equal_on_every_engine() {
    let taped = writes(100);
    assert_eq!(taped.firings.len(), 100);
    let report = replayed(&taped);
    assert_eq!(report.word(), Word::Equal, "{report:#?}");
    assert_eq!(report.programs[0].firings, 100);
    assert!(report.missing.is_empty());
    let _ = World::default();
    let _ = (Different::Fault(String::new()), Verdict::Equal);
}
