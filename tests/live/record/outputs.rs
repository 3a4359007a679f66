//! Outputs of programs, and programs that can't be rewritten.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bpflab::Object;
use bpflab::compare::live::{Live, LiveOptions};
use bpflab::compare::recording::{Contents, How, OutputSource, When};
use bpflab::compare::replay::{MapVerdict, Replay, Report, Verdict, Word};
use bpflab::harness::EngineKind;

use super::recorded::{Recorded, dd, is_there, record, script, shell};

#[test]
fn records_of_a_ring_buffer_are_there() {
    if !is_there() {
        return;
    }
    let object = "examples/bpf/execsnoop.bpf.o";
    let (summary, recorded) = record(object, &LiveOptions::default(), shell("env true"));
    assert_eq!(summary.lost(), 0);
    // The shell, and two programs that it executed.
    assert_eq!((summary.recorded(), recorded.outputs.len()), (3, 3));
    let ring = recorded.map("events");
    assert!(
        recorded
            .outputs
            .iter()
            .all(|out| (out.0, out.1) == (OutputSource::Ring, Some(ring)))
    );
    let last = String::from_utf8_lossy(&recorded.outputs[2].2).into_owned();
    assert!(last.contains("/true"), "{last:?}");
    assert!(
        recorded
            .reads
            .contains(&(When::After, ring, Contents::Unread))
    );
}

#[test]
fn records_of_a_perf_buffer_are_there() {
    if !is_there() {
        return;
    }
    let object = "tests/objects/perf_output.bpf.o";
    let options = LiveOptions::default();
    let (summary, recorded) = record(object, &options, shell("cat /dev/null"));
    assert_eq!(summary.lost(), 0);
    let map = recorded.map("records");
    let from_map = recorded.outputs.iter().filter(|out| out.1 == Some(map));
    assert_eq!(from_map.count() as u64, summary.recorded());
    assert!(
        recorded
            .outputs
            .iter()
            .all(|out| out.0 == OutputSource::Perf)
    );
}

#[test]
fn printed_lines_are_there() {
    if !is_there() {
        return;
    }
    let object = "tests/objects/trace_printk.bpf.o";
    let (summary, recorded) = record(object, &LiveOptions::default(), shell("true"));
    assert_eq!(summary.lost(), 0);
    let printed = recorded
        .outputs
        .iter()
        .filter(|out| out.0 == OutputSource::Printk);
    assert!(
        printed.count() as u64 >= summary.recorded(),
        "each firing prints"
    );
    assert_ne!(summary.recorded(), 0);
}

#[test]
fn a_program_that_jumps_runs_for_the_command_only() {
    if !is_there() {
        return;
    }
    let options = LiveOptions::default().with_programs(["again", "last"]);
    // It runs 34 times for each system call, and no other process's calls are counted.
    let object = "tests/objects/tail_calls.bpf.o";
    let (summary, recorded) = record(object, &options, script(&dd(50, 1)));
    let again = &summary.programs[0];
    assert_eq!(again.how, How::Instrumented);
    let calls = summary.programs[1].firings;
    assert!((100..2000).contains(&calls), "{calls}");
    assert_eq!(again.firings, calls);
    let rounds = recorded.value(When::After, "tail_cal.bss", 0);
    assert_eq!(rounds, 34 * calls);
}

/// Keeps all CPUs busy while something is done.
fn on_a_busy_machine<T>(act: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let done = act();
        over.store(true, Ordering::Relaxed);
        done
    })
}

/// Number of rounds: three, or `BPFLAB_LIVE_ROUNDS`.
fn rounds() -> u32 {
    let given = std::env::var("BPFLAB_LIVE_ROUNDS").ok();
    given.map_or(3, |text| text.parse().expect("a number of rounds"))
}

/// Processes that print and exit long before the line is read.
#[test]
fn lines_of_processes_that_ended_are_there() {
    if !is_there() {
        return;
    }
    let object = Object::open("examples/bpf/one_liners.bpf.o").unwrap();
    let options = LiveOptions::default().with_programs(["print_open"]);
    for round in 0..rounds() {
        let mut live = Live::start(&object, &options).unwrap();
        let mut file = Vec::new();
        let mut command = script("for round in $(seq 60); do env true; done");
        // Cargo's search path makes the loader try some hundred files in each process.
        command.env_remove("LD_LIBRARY_PATH");
        let summary = on_a_busy_machine(|| live.run(&mut command, &mut file).unwrap());
        assert_eq!(summary.lost(), 0, "{summary:?}");
        // Each of them opens its shared libraries.
        assert!(summary.recorded() > 120, "{summary:?}");
        let recorded = Recorded::read(&file);
        let lines = recorded
            .outputs
            .iter()
            .filter(|out| out.0 == OutputSource::Printk);
        assert_eq!(lines.count() as u64, summary.recorded(), "round {round}");
        let report = Replay::new(&object, file)
            .unwrap()
            .run(EngineKind::default());
        let report = report.unwrap();
        assert_eq!(report.word(), Word::Equal, "round {round}: {report:#?}");
    }
}

/// The report of each engine on an object whose programs ran while writes were made.
fn compared(object: &str, sizes: &[u32]) -> (Recorded, Vec<Report>) {
    let object = Object::open(object).unwrap();
    let mut live = Live::start(&object, &LiveOptions::default()).unwrap();
    let mut file = Vec::new();
    let lines: Vec<_> = sizes.iter().map(|size| dd(5, *size)).collect();
    let summary = live.run(&mut script(&lines.join("; ")), &mut file).unwrap();
    assert_eq!(summary.lost(), 0, "{summary:?}");
    let replay = Replay::new(&object, file.clone()).unwrap();
    let engines = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit];
    let reports = engines.map(|engine| replay.run(engine).unwrap());
    (Recorded::read(&file), reports.into())
}

#[test]
fn queues_and_stacks_are_compared() {
    if !is_there() {
        return;
    }
    let (recorded, reports) = compared("tests/objects/queues.bpf.o", &[100, 200, 301, 400]);
    for name in ["oldest", "latest"] {
        let read = (When::After, recorded.map(name), Contents::Whole);
        assert!(recorded.reads.contains(&read), "{name}");
    }
    for report in &reports {
        assert_eq!(report.word(), Word::Equal, "{report:#?}");
        let of = |name: &str| {
            let mut maps = report.maps.iter();
            maps.find(|map| map.name == name).unwrap().verdict.clone()
        };
        assert_eq!(of("oldest"), MapVerdict::Equal(8));
        let latest = of("latest");
        assert!(matches!(latest, MapVerdict::Equal(7 | 8)), "{latest:?}");
    }
}

/// The kernel's results are used, whatever its seed is; the filter is named as not compared.
#[test]
fn a_bloom_filter_is_the_kernels() {
    if !is_there() {
        return;
    }
    let sizes: Vec<u32> = (1..40).collect();
    let (_, reports) = compared("tests/objects/bloom.bpf.o", &sizes);
    for report in &reports {
        assert_eq!(report.word(), Word::PartlyCompared, "{report:#?}");
        let program = &report.programs[0];
        assert!(matches!(program.verdict, Verdict::Equal(runs) if runs.get() == 5 * 39));
        let gaps = report.gaps();
        let names: Vec<_> = gaps.iter().map(|gap| &*gap.name).collect();
        assert_eq!(names, ["times"], "{report:#?}");
    }
}
