//! `bpflab kernel`, whose output depends on the machine: its shape and exit codes.

#![cfg(all(feature = "kernel", feature = "cli", target_os = "linux"))]

#[path = "cli/command.rs"]
mod command;
#[path = "kernel/here.rs"]
mod here;

use std::process::Output;

use command::run;
use serde_json::Value;

fn rows(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).expect("text");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[test]
fn check_tells_what_there_is_or_what_is_missing() {
    let output = run(["kernel", "check", "--json"], "");
    let rows = rows(&output);
    let [row] = rows.as_slice() else {
        panic!("{rows:?}");
    };
    let usable = row["usable"] == true;
    assert_eq!(output.status.code(), Some(if usable { 0 } else { 3 }));
    assert!(usable || row["missing"][0].is_string(), "{row}");
    assert_eq!(
        row["prog_types"]
            .as_array()
            .is_some_and(|types| !types.is_empty()),
        usable
    );
    assert!(
        row["release"]
            .as_str()
            .is_some_and(|release| release.contains('.'))
    );
}

#[test]
fn load_prints_a_verdict_for_each_case() {
    let arguments = [
        "kernel",
        "load",
        "--cases",
        "tests/cli/cases.jsonl",
        "--json",
    ];
    let output = run(arguments, "");
    let kernel = bpflab::kernel::Availability::probe();
    if !kernel.usable() {
        assert_eq!(output.status.code(), Some(3));
        eprintln!("skipped: {}", kernel.missing().join("; "));
        return;
    }
    assert_eq!(output.status.code(), Some(1));
    let rows = rows(&output);
    let verdicts: Vec<_> = rows
        .iter()
        .filter_map(|row| row["verdict"].as_str())
        .collect();
    assert_eq!(
        verdicts,
        ["accept", "accept", "accept", "reject", "error", "error"]
    );
    assert_eq!(rows[0]["id"], "pass");
    assert_eq!(
        (&rows[0]["errno"], &rows[0]["processed"]),
        (&0.into(), &2.into())
    );
    assert_eq!(rows[3]["errno"], 13);
    assert_eq!(
        rows[3]["message"],
        "invalid bpf_context access off=4096 size=8"
    );
    assert_eq!(rows[4]["why"], "input");
}

#[test]
fn load_shows_the_log_of_an_objects_program() {
    if here::kernel().is_none() {
        return;
    }
    let object = "examples/bpf/write_hist.bpf.o";
    let output = run(["kernel", "load", object, "count_write", "--log", "2"], "");
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(
        text.contains("\n0: ") && text.contains("\nprocessed "),
        "{text}"
    );
    assert!(text.ends_with("1 accepted, 0 rejected, 0 not judged\n"));

    let output = run(["kernel", "load", object, "count_reads"], "");
    assert_eq!(output.status.code(), Some(2));
}
