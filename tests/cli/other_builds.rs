//! `bpflab fuzz` with another bpflab, and with another build of an object.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::shared::{Need, is_emulated, skip};

/// The code and the outputs of `bpflab fuzz`.
fn fuzz(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_bpflab"))
        .arg("fuzz")
        .args(arguments)
        .output()
        .expect("it runs");
    let [out, err] = [output.stdout, output.stderr];
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(out), text(err))
}

/// The summary of a campaign with another bpflab, which has no finding.
fn summary(other: &str, programs: &str) -> Value {
    let campaign = ["--programs", programs, "--threads", "2", "--no-kernel"];
    let others = ["--oracle", "value", "--json", "--other-bpflab", other];
    let (code, out, err) = fuzz(&[campaign.as_slice(), &others].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    let last = out.lines().last().expect("a line");
    serde_json::from_str(last).expect("JSON")
}

/// It has a case and the input of each program, which say all that its results depend on.
#[test]
fn another_process_has_the_same_results() {
    if is_emulated() {
        return;
    }
    let summary = summary(env!("CARGO_BIN_EXE_bpflab"), "400");
    let count = |key: &str| summary[key].as_u64().expect("a number");
    assert!(count("accepted") > 250, "{summary}");
    // The checked engine runs there, too.
    let runs = count("engine_runs") + count("accepted");
    assert_eq!(count("other_runs"), runs, "{summary}");
}

#[test]
fn arm64_has_the_same_results() {
    let Ok(binary) = std::env::var("BPFLAB_ARM64") else {
        skip(
            Need::GuestArm64,
            "BPFLAB_ARM64 does not name a bpflab for arm64",
        );
        return;
    };
    let summary = summary(&binary, "400");
    assert!(summary["other_runs"].as_u64() > Some(1000), "{summary}");
    let other = summary["other_build"].as_str().expect("text");
    assert!(other.starts_with("qemu-aarch64 /"), "{other}");
}

#[test]
fn what_is_no_other_bpflab_is_said() {
    if is_emulated() {
        return;
    }
    let said = |other: &str| {
        let (code, out, err) = fuzz(&["--programs", "1", "--other-bpflab", other]);
        assert_eq!((code, out.as_str()), (Some(3), ""), "{err}");
        err
    };
    assert!(said("no/such/file").contains("no/such/file: No such file"));
    let text = said("Cargo.toml");
    assert!(
        text.contains("not an ELF program for x86-64 or arm64"),
        "{text}"
    );
    let text = said("examples/bpf/write_hist.bpf.o");
    assert!(text.contains("not an ELF program"), "{text}");
    if Path::new("/bin/true").exists() {
        let text = said("/bin/true");
        assert!(text.contains("/bin/true: not bpflab"), "{text}");
    }
}

/// The same C for three versions of the instruction set.
#[test]
fn builds_of_one_source_are_compared() {
    if is_emulated() {
        return;
    }
    let builds = ["v1", "v2", "v3"].map(|it| format!("tests/objects/cpu_versions.{it}.bpf.o"));
    for other in &builds[1..] {
        let (code, out, err) = fuzz(&["--replay", &builds[0], "--rebuilt", other]);
        assert_eq!(code, Some(0), "{out}{err}");
        let same = |line: &str| line.ends_with(": both accepted; the same results of 16 runs");
        assert!(out.lines().count() > 0 && out.lines().all(same), "{out}");
    }
    let (code, out, _) = fuzz(&[
        "--replay",
        &builds[0],
        "--rebuilt",
        "examples/bpf/exits.bpf.o",
    ]);
    assert_eq!(code, Some(1));
    assert!(
        out.contains(": only in tests/objects/cpu_versions.v1.bpf.o"),
        "{out}"
    );
    assert!(out.contains(": only in examples/bpf/exits.bpf.o"), "{out}");
}

#[test]
fn options_that_do_not_fit_are_said() {
    if is_emulated() {
        return;
    }
    let object = "examples/bpf/exits.bpf.o";
    let (code, _, err) = fuzz(&["--replay", object, "--rebuilt", "cases.jsonl"]);
    assert_eq!(code, Some(2));
    assert!(
        err.contains("--rebuilt compares objects, not cases"),
        "{err}"
    );
    let (code, _, err) = fuzz(&["--replay", object, "--rebuilt", object, "--oracle", "state"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("belongs to the oracle `sameness`"), "{err}");
    let (code, ..) = fuzz(&["--rebuilt", object]);
    assert_eq!(code, Some(2));
    let other = ["--other-bpflab", env!("CARGO_BIN_EXE_bpflab")];
    let both = ["--replay", object, "--rebuilt", object];
    assert_eq!(fuzz(&[&both[..], &other].concat()).0, Some(2));
    let (code, _, err) = fuzz(&[&other[..], &["--oracle", "state"]].concat());
    assert_eq!(code, Some(2));
    assert!(err.contains("belongs to the oracle `value`"), "{err}");
}
