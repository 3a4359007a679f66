//! Unjudged programs run on the checked engine, and the report has the reason.

use bpflab::Object;
use bpflab::compare::recording::{Header, RecordedEvent, Summary, Writer};
use bpflab::compare::replay::{Replay, Word};
use bpflab::harness::EngineKind;
use bpflab::object::Target;

#[test]
fn the_verifiers_reason_is_told() {
    let mut event = RecordedEvent::default();
    event.group = "sched".to_owned();
    event.name = "sched_process_exit".to_owned();
    event.id = 1;
    let mut header = Header::default();
    header.possible_cpus = 1;
    header.events.push(event);
    let writer = Writer::new(Vec::new(), &header).unwrap();
    let file = writer.finish(Summary::default()).unwrap();
    // A BTF tracepoint without kernel types.
    let mut object = Object::open("examples/bpf/exits.bpf.o").unwrap();
    object.set_target(Target::Own);
    let replay = Replay::new(&object, file).unwrap();
    for engine in super::ENGINES {
        let report = replay.run_bare(&object, engine).unwrap().report;
        assert_eq!(report.word(), Word::NothingCompared);
        let [program] = &report.programs[..] else {
            panic!("{report:?}");
        };
        assert_eq!(program.engine, Some(EngineKind::Checked));
        let why = program.engine_why.as_deref();
        match engine {
            EngineKind::Checked => assert_eq!(why, None),
            _ => assert!(why.is_some_and(|why| why.contains("BTF")), "{why:?}"),
        }
    }
}
