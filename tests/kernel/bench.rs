//! `bpflab bench tracepoint` on the running kernel: its output, and that it leaves nothing
//! behind, however it ends.

#![cfg(feature = "cli")]

use crate::shared;
use crate::shared::command;
use crate::shared::here;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bpflab::kernel::tracefs::Tracefs;
use command::{bpflab, run};
use serde_json::Value;

use shared::{Need, skip, skip_part};

/// Tracefs, or a skipped test with the reason.
fn tracefs() -> Option<Tracefs> {
    here::kernel()?;
    let opened = Tracefs::open();
    let opened = opened.inspect_err(|error| skip(Need::Kernel, error));
    opened.ok()
}

#[test]
fn each_way_to_watch_has_its_row() {
    if tracefs().is_none() {
        return;
    }
    let arguments = "bench tracepoint --calls 2000 --samples 1 --json";
    let output = run(arguments.split(' '), "");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(0), "{text}");
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let row = |what: &str| {
        let row = rows.iter().find(|row| row["what"] == what);
        row.unwrap_or_else(|| panic!("no {what} in {text}"))
    };
    assert!(
        row("nothing")["ns_per_write"]
            .as_f64()
            .is_some_and(|ns| ns > 0.0)
    );
    assert_eq!(row("empty")["ratio"], 1.0);
    // Recorders record everything, including the writer process's answers; with a filter
    // nothing. Under load perf's reader may be late.
    for (what, all) in [
        ("perf", true),
        ("recorded", true),
        ("ftrace", true),
        ("perf_program_passes", true),
        ("perf_program_drops", false),
        ("perf_filter", false),
        ("ftrace_filter", false),
    ] {
        let row = row(what);
        if row["unavailable"].is_string() {
            skip_part(Need::Feature, row);
            continue;
        }
        let share = |key: &str| row[key].as_f64().expect("a share");
        let seen = share("recorded") + share("lost");
        assert!(
            if all {
                (1.0..1.01).contains(&seen)
            } else {
                seen == 0.0
            },
            "{row}"
        );
    }
    for what in ["program", "checked", "interp"] {
        assert!(row(what)["ns_per_event"].is_number(), "{}", row(what));
    }
    assert!(row("program_without_jit")["unavailable"].is_string());
}

#[test]
fn other_programs_are_refused() {
    let output = run(
        "bench tracepoint examples/bpf/softirqs.bpf.o".split(' '),
        "",
    );
    let text = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("no program on syscalls/sys_enter_write"),
        "{text}"
    );
}

/// Waits for a condition, at most for a while.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        sleep(Duration::from_millis(1));
    }
}

/// The child processes of a process; none if the kernel does not list them
/// (CONFIG_PROC_CHILDREN).
fn children(pid: u32) -> Option<Vec<u32>> {
    let file = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(file).ok()?;
    let pids = text.split_whitespace().filter_map(|pid| pid.parse().ok());
    Some(pids.collect())
}

/// Whether an instance belongs to this process.
fn is_of(instance: &str, pid: u32) -> bool {
    let number = instance.strip_prefix("bpflab-").unwrap_or_default();
    number.split('-').next() == Some(&pid.to_string())
}

/// Starts a long benchmark, and waits for its instance of ftrace.
fn started(tracefs: &Tracefs) -> (Child, String, Vec<u32>) {
    let mut bench = bpflab();
    bench.args([
        "bench",
        "tracepoint",
        "--calls",
        "2000",
        "--samples",
        "1000",
    ]);
    bench.stdout(Stdio::null());
    let child = bench.spawn().expect("the command starts");
    let mut found = None;
    let mut processes = Vec::new();
    until("an instance", || {
        let instances = tracefs.instances().expect("instances");
        found = instances.into_iter().find(|name| is_of(name, child.id()));
        let all = children(child.id());
        let complete = all.as_ref().is_none_or(|all| all.len() > 1);
        processes = all.unwrap_or_default();
        found.is_some() && complete
    });
    (child, found.unwrap_or_default(), processes)
}

#[test]
fn nothing_is_left_whatever_ends_it() {
    let Some(tracefs) = tracefs() else { return };
    let runner = std::env::vars().any(|(name, _)| name.ends_with("_LINUX_GNU_RUNNER"));
    if runner {
        return skip(Need::Native, "in an emulator signals end the emulator");
    }
    // Side by side, since each waits for seconds.
    std::thread::scope(|scope| {
        for signal in ["KILL", "TERM", "INT"] {
            scope.spawn(|| nothing_is_left_after(&tracefs, signal));
        }
    });
}

/// Nothing is left of a command that a signal ends.
fn nothing_is_left_after(tracefs: &Tracefs, signal: &str) {
    let (mut child, instance, processes) = started(tracefs);
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-s", signal, &pid]).status();
    assert!(sent.is_ok_and(|sent| sent.success()));
    child.wait().expect("it ends");
    until(&format!("{signal}: {instance} is gone"), || {
        let left = tracefs.instances().expect("instances");
        left.iter().all(|name| !is_of(name, child.id()))
    });
    until(&format!("{signal}: {processes:?} are gone"), || {
        let there = |pid: &u32| Path::new(&format!("/proc/{pid}")).exists();
        !processes.iter().any(there)
    });
}
