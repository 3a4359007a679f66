//! `bpflab needs`: the kernel features that programs use.

use serde_json::Value;

use crate::shared::command::bpflab;

/// Runs it with `--json`, and gives the exit code and what is printed.
fn needs(object: &str) -> (Option<i32>, Value) {
    let output = bpflab()
        .args(["needs", "--json", "--btf", "own", object])
        .output()
        .expect("bpflab runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let json = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    (output.status.code(), json)
}

/// The release of a feature, and where it is used first.
fn feature<'a>(needs: &'a Value, kind: &str, name: &str) -> (&'a str, &'a str) {
    let features = needs["features"].as_array().expect("features");
    let found = features
        .iter()
        .find(|it| it["kind"] == kind && it["name"] == name);
    let found = found.unwrap_or_else(|| panic!("{kind} {name}: {needs:#}"));
    let text = |key: &str| found[key].as_str().expect("a text");
    (text("since"), text("place"))
}

#[test]
fn the_newest_feature_decides() {
    let (code, needs) = needs("examples/bpf/write_hist.bpf.o");
    assert_eq!(code, Some(0), "{needs:#}");
    assert_eq!(needs["complete"], true);
    let (since, place) = feature(&needs, "program_type", "tracepoint");
    assert_eq!(
        (since, place),
        ("4.7", "SEC(\"tp/syscalls/sys_enter_write\")")
    );
    let (since, place) = feature(&needs, "helper", "bpf_map_lookup_elem");
    assert_eq!(since, "3.18");
    assert!(
        place.contains("write_hist.bpf.c:") && place.contains("bpf_map_lookup_elem"),
        "{place}"
    );
    let features = needs["features"].as_array().expect("features");
    assert_eq!(needs["oldest"], features[0]["since"], "{needs:#}");
}

#[test]
fn kfuncs_and_callbacks() {
    let (code, needs) = needs("tests/objects/kfuncs.bpf.o");
    assert_eq!(code, Some(0), "{needs:#}");
    let (since, place) = feature(&needs, "kfunc", "bpf_iter_bits_new");
    assert_eq!(since, "6.11");
    assert!(
        place.contains("bpf_iter_bits_new(&it, words, 2)"),
        "{place}"
    );
    assert_eq!(feature(&needs, "code", "function as a callback").0, "5.13");
    assert_eq!(feature(&needs, "code", "loop").0, "5.3");
    assert_eq!(needs["oldest"], "6.18");
}

#[test]
fn a_missing_file_is_an_error() {
    let output = bpflab()
        .args(["needs", "nothing.bpf.o"])
        .output()
        .expect("bpflab runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing.bpf.o"));
}
