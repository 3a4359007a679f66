//! Nested programs: one interrupts the other on its CPU.

use bpflab::Object;
use bpflab::compare::live::{Live, LiveOptions};
use bpflab::compare::recording::When;
use bpflab::compare::replay::{Replay, Word};
use bpflab::harness::EngineKind;

use super::recorded::{Recorded, is_there, writes};

const NESTED: &str = "tests/objects/nested.bpf.o";

#[test]
fn a_firing_in_the_middle_of_another_is_replayed() {
    if !is_there() {
        return;
    }
    let object = Object::open(NESTED).unwrap();
    let mut live = Live::start(&object, &LiveOptions::default()).unwrap();
    // The missed runs of a session are its own, not those of an earlier session.
    for round in 1..=2 {
        let mut file = Vec::new();
        let summary = live.run(&mut writes(20, 300), &mut file).unwrap();
        assert_eq!((summary.recorded(), summary.lost()), (40, 0), "{summary:?}");
        let [outer, inner] = &summary.programs[..] else {
            panic!("{summary:?}");
        };
        assert_eq!((outer.firings, outer.missed), (20, 0));
        assert_eq!((inner.firings, inner.missed), (20, 20));

        let recorded = Recorded::read(&file);
        assert_eq!(recorded.gaps(), []);
        for fired in &recorded.firings {
            assert_eq!(u32::from(fired.depth), fired.program, "{fired:?}");
        }
        // An interrupted firing begins before the other and ends after it.
        let one_cpu = recorded
            .firings
            .iter()
            .filter(|one| one.cpu == recorded.firings[0].cpu);
        let numbers: Vec<_> = one_cpu.map(|one| (one.program, one.sequence)).collect();
        let [(1, second), (0, first)] = numbers[..2] else {
            panic!("{numbers:?}");
        };
        assert_eq!(first + 1, second);
        // The first variable: how often the outer one ran, in all sessions.
        assert_eq!(recorded.value(When::After, "nested.bss", 0), 20 * round);

        let replay = Replay::new(&object, file).unwrap();
        for engine in [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit] {
            let report = replay.run(engine).unwrap();
            assert!(report.is_fine(), "round {round} on {engine}: {report:#?}");
            assert!(report.word() <= Word::OrderUnknown);
            let missed: Vec<_> = report.programs.iter().map(|one| one.missed).collect();
            assert_eq!((report.firings(), missed), (40, vec![0, 20]));
        }
    }
}
