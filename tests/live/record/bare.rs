//! Bare events, and programs that run on them later.

use bpflab::Object;
use bpflab::compare::live::{LiveEvents, LiveOptions};
use bpflab::compare::replay::{Bare, Replay};
use bpflab::harness::EngineKind;

use super::recorded::{WRITES, dd, is_there, script};

/// The result of an object's programs on these events of a command, on each engine.
fn replayed(object: &Object, events: &[&str], mut command: std::process::Command) -> Vec<Bare> {
    let mut live = LiveEvents::start(events, &LiveOptions::default()).unwrap();
    let mut file = Vec::new();
    let summary = live.run(&mut command, &mut file).unwrap();
    assert!(summary.recorded() > 0 && summary.lost() == 0, "{summary:?}");
    let replay = Replay::new(object, file).unwrap();
    assert!(replay.is_bare());
    let engines = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit];
    let replayed = engines.map(|engine| {
        let bare = replay.run_bare(object, engine).unwrap();
        assert_eq!(bare.report.missing, [] as [String; 0]);
        bare
    });
    replayed.into()
}

#[test]
fn a_program_runs_on_what_was_sampled_without_it() {
    if !is_there() {
        return;
    }
    let object = Object::open(WRITES).unwrap();
    let lines = format!("{} & {}", dd(100, 5), dd(200, 300));
    let events = ["syscalls/sys_enter_write", "syscalls:sys_enter_close"];
    for bare in replayed(&object, &events, script(&lines)) {
        let hist = bare.vm.map("hist").unwrap();
        // 5 lies between 2^2 and 2^3, 300 between 2^8 and 2^9.
        let counts = [2u32, 8].map(|slot| hist.get::<u32, u64>(&slot).unwrap());
        assert_eq!(counts, [Some(100), Some(200)], "on {}", bare.report.engine);
        assert_eq!(bare.report.firings(), 300);
        let [(event, count)] = &bare.unwanted[..] else {
            panic!("{:?}", bare.unwanted);
        };
        assert_eq!(event, "syscalls/sys_enter_close");
        assert!(*count > 0);
    }
}
