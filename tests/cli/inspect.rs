//! `bpflab inspect` of a recording: its output and exit code for one that is whole, cut off,
//! damaged, or of a later version.

use crate::shared::command;

use std::fs;
use std::path::{Path, PathBuf};

use bpflab::compare::recording::{Cause, Header, Loss, RecordedProgram, Summary, Writer, checksum};
use bpflab::instrument::{Firing, FiringFlags};
use serde_json::Value;

/// A recording of three firings.
fn recording(losses: u64) -> Vec<u8> {
    let mut program = RecordedProgram::default();
    program.name = "count_write".to_owned();
    let mut header = Header::default();
    header.bpflab = "0.1.0".to_owned();
    header.programs.push(program);
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    for sequence in 0..3 {
        let firing = Firing {
            program: 0,
            cpu: 0,
            depth: 0,
            flags: FiringFlags::empty(),
            sequence,
            time: sequence,
            produced: 0,
            pid_tgid: 0,
            returned: 0,
            context: &[],
            log: &[],
        };
        let mut record = Vec::new();
        firing.write(&mut record);
        writer.firing(&record).unwrap();
    }
    let loss = Loss {
        cause: Cause::RingFull,
        cpu: Some(0),
        of: Some(0),
        count: losses,
    };
    writer.loss(&loss).unwrap();
    writer.finish(Summary::default()).unwrap()
}

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// Exit code, standard output and standard error of `bpflab inspect FILE …`.
fn inspect(file: &Path, more: &[&str]) -> (Option<i32>, String, String) {
    let words = ["inspect", file.to_str().unwrap()];
    let output = command::run(words.iter().chain(more), "");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn one_that_is_whole_is_fine() {
    let path = file("whole.rec", &recording(0));
    let (code, out, err) = inspect(&path, &[]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(
        out.starts_with(&format!("recording {}\n", path.display())),
        "{out}"
    );
    assert!(out.ends_with("\n3 firings, nothing lost; whole\n"), "{out}");
    let (code, out, _) = inspect(&path, &["--json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, Some(0));
    assert_eq!(json["state"], "whole");
    assert_eq!(json["programs"][0]["firings"], 3);
}

#[test]
fn one_that_lacks_something_is_not() {
    let (code, out, err) = inspect(&file("lossy.rec", &recording(7)), &[]);
    assert_eq!((code, err.as_str()), (Some(1), ""));
    assert!(
        out.contains("ring buffer full  count_write  CPU 0  7"),
        "{out}"
    );
    assert!(out.ends_with("3 firings, 7 lost; whole\n"), "{out}");

    let whole = recording(0);
    let path = file("cut.rec", &whole[..whole.len() - 1]);
    let (code, out, err) = inspect(&path, &[]);
    assert_eq!((code, err.as_str()), (Some(1), ""));
    assert!(
        out.contains("3 firings, nothing lost; cut off in block 2 at byte"),
        "{out}"
    );
}

#[test]
fn damage_is_an_error_that_says_where_behind_what_can_be_read() {
    let mut bytes = recording(0);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let path = file("damaged.rec", &bytes);
    let (code, out, err) = inspect(&path, &[]);
    assert_eq!(code, Some(2));
    assert!(
        out.contains("count_write") && out.contains("3 firings"),
        "{out}"
    );
    let wanted = format!("error: {}: damaged: block 2 at byte ", path.display());
    assert!(err.starts_with(&wanted), "{err}");
    let (code, out, _) = inspect(&path, &["--json"]);
    assert_eq!(code, Some(2));
    let rows: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&rows[0]["state"], &rows[1]["exit_code"]),
        (&"damaged".into(), &2.into())
    );
}

#[test]
fn what_it_can_not_do_is_said() {
    let path = file("options.rec", &recording(0));
    let (code, _, err) = inspect(&path, &["--support"]);
    assert_eq!(code, Some(2));
    assert!(
        err.contains("a recording has no relocations or types"),
        "{err}"
    );

    let mut bytes = recording(0);
    bytes[8] = 2;
    let sum = checksum(&bytes[..12]);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    let (code, out, err) = inspect(&file("newer.rec", &bytes), &[]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("recording format 2.1 is newer"), "{err}");
}

/// The exported events give the maps that the recorded ones gave.
#[test]
fn a_recording_becomes_an_events_file() {
    let exported = Path::new(env!("CARGO_TARGET_TMPDIR")).join("writes.jsonl");
    let to = format!("--events={}", exported.display());
    let recording = Path::new("examples/recordings/writes.rec");
    let (code, out, _) = inspect(recording, &[&to, "--json"]);
    assert_eq!(code, Some(0));
    let row: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(row["events"], 203);
    let run = |more: [&str; 2]| {
        let object = "examples/bpf/write_hist.bpf.o";
        let words = ["run", object, "--btf", "own", "--json", "--cpus", "2"];
        let output = command::run(words.iter().chain(&more), "");
        String::from_utf8(output.stdout).unwrap()
    };
    let rows = run(["--events", exported.to_str().unwrap()]);
    let rows: Vec<Value> = rows
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    let map = rows.iter().find(|row| row["map"] == "hist").unwrap();
    let entries = map["entries"].as_array().unwrap();
    let total: u64 = entries
        .iter()
        .map(|entry| entry["value"].as_u64().unwrap())
        .sum();
    assert_eq!(total, 203);
}

#[test]
fn the_events_of_something_else_are_an_error() {
    let object = Path::new("examples/bpf/write_hist.bpf.o");
    let (code, _, error) = inspect(object, &["--events"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("not a recording"), "{error}");
}
