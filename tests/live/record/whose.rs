//! Which processes are recorded: the command and its children, and no others without `all`.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bpflab::compare::live::{Live, LiveEvents, LiveOptions, Summary};
use bpflab::compare::recording::{Ended, Filter, How, When};
use bpflab::kernel::process::Stop;

use super::recorded::{
    Recorded, WRITES, dd, is_there, record, record_events, script, shell, writes,
};

/// A size of writes that no other command uses.
const OTHER: u64 = 4321;

/// Writes to `/dev/null` until the recording ends.
fn while_others_write(record: impl FnOnce() -> (Summary, Recorded)) -> (Summary, Recorded) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut null = std::fs::File::create("/dev/null").unwrap();
            let bytes = vec![0; usize::try_from(OTHER).unwrap()];
            while !over.load(Ordering::Relaxed) {
                null.write_all(&bytes).unwrap();
                thread::sleep(Duration::from_micros(100));
            }
        });
        let recorded = record();
        over.store(true, Ordering::Relaxed);
        recorded
    })
}

#[test]
fn each_write_of_the_command_is_there_and_no_other() {
    if !is_there() {
        return;
    }
    let (summary, recorded) =
        while_others_write(|| record(WRITES, &LiveOptions::default(), writes(1000, 300)));
    assert_eq!((summary.recorded(), summary.lost()), (1000, 0));
    assert_eq!(summary.ended, Ended::Exited { code: 0 });
    assert_eq!(summary.programs[0].firings, 1000);
    assert_eq!(recorded.sizes(), [300; 1000]);
    let processes: BTreeSet<_> = recorded.firings.iter().map(|fired| fired.process).collect();
    let header = &recorded.header;
    match header.filter {
        // The shell executed the command in its place.
        Filter::PidTree { root } => assert_eq!(processes, BTreeSet::from([root])),
        other => panic!("{other:?}"),
    }
    assert!(recorded.firings.iter().all(|fired| fired.returned == 0));
    assert_eq!(recorded.gaps(), []);
    // 300 lies between 2^8 and 2^9.
    assert_eq!(recorded.value(When::Before, "hist", 8), 0);
    assert_eq!(recorded.value(When::After, "hist", 8), 1000);
    assert_eq!(header.programs[0].how, How::Instrumented);
    assert_eq!(header.programs[0].context_len, 40);
    assert_eq!(header.command[0], "sh");
}

#[test]
fn the_childrens_events_are_there() {
    if !is_there() {
        return;
    }
    let lines = format!(
        "{} & {} & sh -c '{}; {}' & ( ( {} ) & ) & sleep 0.2",
        dd(10, 1),
        dd(20, 2),
        dd(30, 4),
        dd(40, 8),
        dd(50, 16)
    );
    let (summary, recorded) =
        while_others_write(|| record(WRITES, &LiveOptions::default(), script(&lines)));
    assert_eq!(summary.lost(), 0);
    let sizes = recorded.sizes();
    for (size, count) in [(1, 10), (2, 20), (4, 30), (8, 40), (16, 50), (OTHER, 0)] {
        let found = sizes.iter().filter(|found| **found == size).count();
        assert_eq!(found, count, "writes of {size}");
    }
    let processes: BTreeSet<_> = recorded.firings.iter().map(|fired| fired.process).collect();
    assert_eq!(processes.len(), 5);
}

#[test]
fn everybodys_events_are_there_if_asked_for() {
    if !is_there() {
        return;
    }
    let options = LiveOptions::default().with_all(true);
    // A BTF tracepoint program: a perf tracepoint program that returns 0 for all processes would
    // drop the events of other tests.
    let object = "examples/bpf/exits.bpf.o";
    let over = AtomicBool::new(false);
    let (others, (summary, recorded)) = thread::scope(|scope| {
        let others = scope.spawn(|| {
            let mut ended = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let mut child = Command::new("true").spawn().unwrap();
                child.wait().unwrap();
                ended.push(child.id());
            }
            ended
        });
        let recorded = record(object, &options, shell("sleep 0.3"));
        over.store(true, Ordering::Relaxed);
        (others.join().unwrap(), recorded)
    });
    assert_eq!((summary.lost(), recorded.header.filter), (0, Filter::All));
    let processes: BTreeSet<_> = recorded.firings.iter().map(|fired| fired.process).collect();
    let seen = others.iter().filter(|other| processes.contains(other));
    assert!(seen.count() > 10, "{others:?}");
    assert_eq!(recorded.gaps(), []);
}

/// Calls the function while a process with a child forks more children: writes of 64 bytes, for
/// ten seconds at most.
fn while_a_family_writes(record: impl FnOnce(&LiveOptions)) {
    let rounds = "for round in $(seq 500)";
    let line = format!("sh -c '{rounds}; do {}; sleep 0.02; done' &", dd(3, 64));
    let mut running = script(&line).process_group(0).spawn().unwrap();
    // When it has begun to write, its child exists.
    thread::sleep(Duration::from_millis(100));
    let options = LiveOptions::default()
        .with_pid(running.id())
        .with_duration(Duration::from_millis(500))
        .with_stop(Stop::new().unwrap());
    record(&options);
    let group = format!("-{}", running.id());
    let killed = Command::new("kill").args(["-KILL", "--", &group]).status();
    assert!(killed.unwrap().success());
    running.wait().unwrap();
}

#[test]
fn a_process_that_runs_already_is_recorded_with_its_children() {
    if !is_there() {
        return;
    }
    while_a_family_writes(|options| {
        let object = bpflab::Object::open(WRITES).unwrap();
        let mut live = Live::start(&object, options).unwrap();
        let mut file = Vec::new();
        let summary = live.watch(&mut file).unwrap();
        assert_eq!(summary.ended, Ended::Duration);
        let sizes = Recorded::read(&file).sizes();
        assert!(
            sizes.len() > 3 && sizes.iter().all(|size| *size == 64),
            "{sizes:?}"
        );
    });
}

#[test]
fn samples_of_a_process_that_runs_already_are_its_childrens_too() {
    if !is_there() {
        return;
    }
    while_a_family_writes(|options| {
        let mut live = LiveEvents::start(&["syscalls/sys_enter_write"], options).unwrap();
        let mut file = Vec::new();
        let summary = live.watch(&mut file).unwrap();
        assert_eq!((summary.ended, summary.lost()), (Ended::Duration, 0));
        let sizes = Recorded::read(&file).sizes();
        assert!(
            sizes.len() > 3 && sizes.iter().all(|size| *size == 64),
            "{sizes:?}"
        );
    });
}

#[test]
fn samples_of_a_tracepoint_are_the_commands() {
    if !is_there() {
        return;
    }
    let lines = format!("{} & {}", dd(100, 5), dd(200, 6));
    let names = ["syscalls/sys_enter_write", "sched:sched_process_exe?"];
    let (summary, recorded) =
        while_others_write(|| record_events(&names, &LiveOptions::default(), script(&lines)));
    assert_eq!(summary.lost(), 0);
    let of = |event: &str| {
        let mut events = recorded.header.events.iter();
        let event = events.find(|known| known.name == event).unwrap();
        assert!(event.format.contains("print fmt"));
        let samples = recorded.samples.iter();
        samples
            .filter(|sample| sample.0 == event.number)
            .collect::<Vec<_>>()
    };
    let sizes: Vec<_> = of("sys_enter_write")
        .iter()
        .map(|sample| u64::from_le_bytes(sample.2[32..40].try_into().unwrap()))
        .collect();
    let count = |wanted| sizes.iter().filter(|size| **size == wanted).count();
    assert_eq!((count(5), count(6), count(OTHER)), (100, 200, 0));
    // The shell itself and two commands.
    assert_eq!(of("sched_process_exec").len(), 3);
    assert_eq!(summary.events.len(), 2);
}

#[test]
fn a_session_runs_again_and_counts_anew() {
    if !is_there() {
        return;
    }
    let object = bpflab::Object::open(WRITES).unwrap();
    let mut live = Live::start(&object, &LiveOptions::default()).unwrap();
    for round in 1..=2 {
        let mut file = Vec::new();
        let summary = live.run(&mut writes(20, 300), &mut file).unwrap();
        let recorded = Recorded::read(&file);
        assert_eq!((summary.recorded(), summary.lost()), (20, 0));
        assert_eq!(recorded.gaps(), []);
        assert_eq!(recorded.value(When::After, "hist", 8), 20 * round);
    }
}
