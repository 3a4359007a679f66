//! Programs that our verifier can't judge run on the checked engine, and it says why.

use std::sync::Arc;

use bpflab::compare::replay::Word;
use bpflab::harness::EngineKind;
use bpflab::isa::assemble;
use bpflab::program::Program;
use bpflab::spec::{AttachType, ProgType};
use bpflab::vm::events::Event;

use super::taped::Recorder;
use super::{ENGINES, replayed_on};

#[test]
fn the_verifiers_reason_is_told() {
    let text = "call 5\nr0 = 0\nexit";
    let insns = assemble(text).unwrap();
    let mut program = Program::new("nowhere", ProgType::Tracing, insns);
    // A BTF tracepoint, of which no kernel's types say what it is.
    program.expected_attach_type = Some(AttachType::TraceRawTp);
    program.license = "GPL".to_owned();
    let mut recorder = Recorder::new(vec![Arc::new(program)], 16);
    recorder.fire(0, &Event::bytes(vec![0; 16]));
    let taped = recorder.finish();
    for engine in ENGINES {
        let report = replayed_on(&taped, engine);
        assert_eq!(report.word(), Word::Equal, "{report:?}");
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
