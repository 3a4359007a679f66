//! What programs put out by themselves, and programs that can't be rewritten.

use bpflab::compare::live::LiveOptions;
use bpflab::compare::recording::{Contents, How, Source, When};

use super::recorded::{dd, is_there, record, script, shell};

#[test]
fn records_of_a_ring_buffer_are_there() {
    if !is_there() {
        return;
    }
    let object = "examples/bpf/execsnoop.bpf.o";
    let (summary, recorded) = record(object, &LiveOptions::default(), shell("env true"));
    assert_eq!(summary.lost(), 0);
    // The shell, and what it became twice.
    assert_eq!((summary.recorded(), recorded.outputs.len()), (3, 3));
    let ring = recorded.map("events");
    assert!(
        recorded
            .outputs
            .iter()
            .all(|out| (out.0, out.1) == (Source::Ring, Some(ring)))
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
    assert!(recorded.outputs.iter().all(|out| out.0 == Source::Perf));
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
        .filter(|out| out.0 == Source::Printk);
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
    let options = LiveOptions {
        programs: ["again", "last"].map(str::to_owned).to_vec(),
        ..LiveOptions::default()
    };
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
