//! `bpflab test`: tests in YAML, in TOML, in C, and in Cilium's form.

use std::fs;
use std::path::PathBuf;

use crate::shared::command::run;

/// A folder for a test, removed at its end, with an object.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, object: &str) -> Self {
        let name = format!("bpflab-suites-{}-{name}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).expect("a folder");
        let file = PathBuf::from(object);
        let to = folder.0.join(file.file_name().expect("a name"));
        fs::copy(&file, to).expect("an object");
        folder
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a file");
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn test(words: &[&str]) -> (Option<i32>, String) {
    let output = run([&["test"], words].concat(), "");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text + &errors)
}

const EXECSNOOP: &str = "examples/bpf/execsnoop.bpf.o";

#[test]
fn the_examples_pass_on_each_engine() {
    let (code, text) = test(&["examples", "--uninit=off"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(", 0 failed ("), "{text}");
    assert!(
        text.contains(" on checked") && text.contains(" on interp"),
        "{text}"
    );
    assert_eq!(
        text.matches("ok      ").count() + 1,
        text.lines().count(),
        "{text}"
    );
}

/// A file name that is shorter than its field, in a record that is not zeroed.
#[test]
fn uninitialised_bytes_are_a_warning_or_a_failure() {
    let file = "examples/bpf/execsnoop.test.yaml";
    let field = "bytes 12 to 127 of field `filename` of struct event";
    let (code, text) = test(&[file]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("warning: program on_exec: ") && text.contains(field),
        "{text}"
    );
    let (code, text) = test(&[file, "--uninit=fail", "--engine", "checked"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("FAILED") && text.contains(field), "{text}");
    let (code, text) = test(&[file, "--uninit=fail", "--engine", "interp"]);
    assert_eq!(code, Some(0), "{text}");
}

/// Recordings are fixtures: of the programs of an object, and of events without any.
#[test]
fn recordings_are_replayed_with_the_object() {
    let folder = Folder::new("recordings", "examples/bpf/write_hist.bpf.o");
    for name in ["writes.rec", "sizes.rec"] {
        fs::copy(format!("examples/recordings/{name}"), folder.0.join(name)).unwrap();
    }
    folder.write(
        "write_hist.test.yaml",
        r"
tests:
  - {name: whole, recording: writes.rec}
  - name: bare
    recording: sizes.rec
    setup: {options: ['--btf=own']}
    expect: {maps: {hist: {3: 2, 6: 1, 9: 2, 10: 1, 13: 1}}}
  - {name: nothing expected, recording: sizes.rec}
  - name: too much expected
    recording: writes.rec
    expect: {returns: 0}
",
    );
    let (_, text) = test(&[&folder.0.display().to_string()]);
    for part in [
        "write_hist.test.yaml: whole\n",
        "hist[3]: expected 2, found 1",
        "expect: has to have maps or globals, and nothing else",
        "leave out expect:",
        "1 passed, 1 failed, 2 with errors",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // Another object.
    let other = Folder::new("other_recording", EXECSNOOP);
    fs::copy("examples/recordings/writes.rec", other.0.join("writes.rec")).unwrap();
    other.write(
        "execsnoop.test.yaml",
        "tests: [{name: other, recording: writes.rec}]",
    );
    let (code, text) = test(&[&other.0.display().to_string()]);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("the recording was made with another object"),
        "{text}"
    );
    assert!(text.contains("record them again"), "{text}");
}

#[test]
fn each_difference_is_told_with_its_place() {
    let folder = Folder::new("differences", EXECSNOOP);
    folder.write(
        "execsnoop.test.yaml",
        r#"
tests:
  - name: all is wrong
    events:
      - {filename: /usr/bin/ls, '@returns': 1, '@passed': true}
    expect:
      returns: {on_exec: [0, 0], nobody: 1}
      records:
        events:
          - {pid: 71, comm: "sh*", filename: /usr/bin/*, size: 1}
          - {pid: 1}
      globals:
        lost: ">= 1"
      printk: [hello]
      fault: out of bounds
"#,
    );
    let (code, text) = test(&[&folder.0.display().to_string()]);
    assert_eq!(code, Some(1), "{text}");
    for line in [
        "event 1: passed: expected true, found false",
        "event 1: on_exec returns: expected 1, found 0",
        "nobody did not run; expected to return 1",
        "on_exec returns: expected 2 runs, found 1: [0]",
        "lost: expected >= 1, found 0",
        "events[0].pid: expected 71, found 1000",
        r#"events[0].comm: expected "sh*", found "bpflab""#,
        "events[0].size: no such member; there are pid, ppid, uid, comm, filename",
        r#"events[1]: missing: {"pid":1}"#,
        r#"printk[0]: missing: "hello""#,
        "no program faulted; expected: out of bounds",
    ] {
        assert!(
            text.contains(&format!("         {line}\n")),
            "{line} in {text}"
        );
    }
    assert!(!text.contains("filename:"), "it matches: {text}");
    assert!(!text.contains("on interp:"), "all engines agree: {text}");
    assert!(
        text.contains("0 passed, 1 failed (1 on checked, 1 on interp"),
        "{text}"
    );
}

#[test]
fn what_can_not_run_is_an_error() {
    let folder = Folder::new("errors", EXECSNOOP);
    for (yaml, error) in [
        (
            "expect: {globals: {lst: 1}}",
            "no global variable 'lst'; there are: lost",
        ),
        (
            "expect: {maps: {evnts: {}}}",
            "no map 'evnts'; there are: events",
        ),
        (
            "expect: {records: {evnts: []}}",
            "no map 'evnts'; there are: events",
        ),
        (
            "setup: {options: [--cpuss=3]}\n    expect: {returns: 0}",
            "similar argument exists: '--cpus'",
        ),
        (
            "setup: {world: {pidd: 3}}\n    expect: {returns: 0}",
            "world: unknown key @pidd",
        ),
        (
            "events: [{filname: x}]\n    expect: {returns: 0}",
            "has no field `filname`; it has",
        ),
        ("program: on_exce\n    expect: {returns: 0}", "on_exce"),
        ("expct: {}", "unknown field `expct`"),
        ("events: []", "test 'x' expects nothing"),
    ] {
        let file = folder.write(
            "execsnoop.test.yaml",
            &format!("tests:\n  - name: x\n    {yaml}\n"),
        );
        let (code, text) = test(&[&file]);
        assert_eq!(code, Some(2), "{yaml}: {text}");
        assert!(
            text.contains(error) && text.contains("1 with errors"),
            "{yaml}: {text}"
        );
    }
    let file = folder.write("other.test.toml", "tests = []\n");
    let (code, text) = test(&[&file]);
    assert_eq!(code, Some(2));
    assert!(
        text.contains("neither other.bpf.o nor other.o is beside it"),
        "{text}"
    );
    let empty = folder.0.join("empty");
    fs::create_dir_all(&empty).expect("a folder");
    let (code, text) = test(&[&empty.display().to_string()]);
    assert_eq!(code, Some(2));
    assert!(
        text.contains("no tests: no file is called *.test.yaml"),
        "{text}"
    );
}

#[test]
fn a_rejected_program_fails_and_runs_unverified() {
    let folder = Folder::new("unverified", "tests/objects/past_the_end.bpf.o");
    let suite = |setup: &str, expect: &str| {
        let text = format!("tests:\n  - name: x\n    setup: {setup}\n    expect: {expect}\n");
        folder.write("past_the_end.test.yaml", &text)
    };
    let (code, text) = test(&[&suite("{}", "{returns: 0}")]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("is rejected"), "{text}");
    let (code, text) = test(&[&suite("{options: [--unverified]}", "{returns: '*'}")]);
    assert!(code.is_some_and(|code| code < 2), "{text}");
    assert!(text.contains("(1 on checked)"), "{text}");
    assert!(
        text.contains("not on interp: --unverified runs on the checked engine"),
        "{text}"
    );
}

#[test]
fn names_engines_and_setups_are_chosen() {
    let folder = Folder::new("chosen", EXECSNOOP);
    let file = folder.write(
        "execsnoop.test.toml",
        r#"
setup.world = { pid = 5, comm = "first" }

[[tests]]
name = "one"
setup.world.comm = "second"
events = [{ filename = "a" }, { filename = "b", "@pid" = 6 }]
expect.records.events = [{ pid = 5, comm = "second" }, { pid = 6, filename = "b" }]

[[tests]]
name = "two"
expect.returns = 1
"#,
    );
    let (code, text) = test(&[&file, "--name", "o?e", "--engine", "interp"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("1 passed, 0 failed, 1 left out (1 on interp)"),
        "{text}"
    );
}

#[test]
fn results_are_json_junit_and_tap() {
    let folder = Folder::new("forms", EXECSNOOP);
    let file = folder.write(
        "execsnoop.test.yaml",
        "tests:\n  - {name: good, expect: {returns: 0}}\n  - {name: <bad>, expect: {returns: 1}}\n",
    );
    let xml = folder.0.join("junit.xml").display().to_string();
    let quiet = "--uninit=off";
    let (code, text) = test(&[
        &file, "--json", "--junit", &xml, "--engine", "checked", quiet,
    ]);
    assert_eq!(code, Some(1), "{text}");
    let rows: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(rows[0]["status"], "passed");
    assert_eq!(
        rows[1]["failures"][0]["text"],
        "on_exec returns: expected 1, found 0"
    );
    assert_eq!(rows[1]["failures"][0]["engines"][0], "checked");
    assert_eq!(
        (&rows[2]["kind"], &rows[2]["failed"]),
        (&"summary".into(), &1.into())
    );
    let xml = fs::read_to_string(xml).expect("a file");
    assert!(
        xml.contains("tests=\"2\"") && xml.contains("failures=\"1\""),
        "{xml}"
    );
    assert!(xml.contains("name=\"&lt;bad&gt;\""), "{xml}");
    let (code, text) = test(&[&file, "--tap", quiet]);
    assert_eq!(code, Some(1), "{text}");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "TAP version 14");
    assert!(
        lines[1].starts_with("ok 1 - ") && lines[2].starts_with("not ok 2 - "),
        "{text}"
    );
    assert_eq!(lines.last(), Some(&"1..2"));
}

#[test]
fn tests_in_c_check_what_events_left() {
    let (code, text) = test(&["tests/objects/tests_in_c.bpf.o"]);
    assert_eq!(code, Some(1), "{text}");
    for part in [
        "ok      tests/objects/tests_in_c.bpf.o: bytes_are_added_by_process\n",
        "ok      tests/objects/tests_in_c.bpf.o: without_events_nothing_is_counted\n",
        "wrong_sum\n         tests_in_c.bpf.c:61: bytes_of(7) == 111: found 110 and 111\n",
        "wrong_condition\n         tests_in_c.bpf.c:66: writes % 2 == 0 is false\n",
        "2 passed, 2 failed (4 on checked, 4 on interp",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let (code, text) = test(&["tests/objects/tests_in_c_events.bpf.o"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("1 passed, 0 failed"), "{text}");
    let (code, text) = test(&["tests/objects/tests_in_c.without.bpf.o"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("no tests in it"), "{text}");
    let (code, header) = test(&["--header"]);
    assert_eq!(code, Some(0));
    let file = fs::read_to_string("include/bpflab/test.h").expect("the header");
    assert_eq!(header, file);
}

#[test]
fn tests_in_ciliums_form_run_in_order() {
    let (code, text) = test(&["tests/objects/cilium_form.bpf.o"]);
    assert_eq!(code, Some(1), "{text}");
    for part in [
        "ok      tests/objects/cilium_form.bpf.o: 1_dropped\n",
        "FAILED  tests/objects/cilium_form.bpf.o: 2_passes\n         action: is 0\n         setup \
         returned 0\n",
        "skipped tests/objects/cilium_form.bpf.o: 3_skipped\n",
        "ok      tests/objects/cilium_form.bpf.o: 4_xdp\n",
        "2 passed, 1 failed, 1 skipped (3 on checked, 3 on interp",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let (code, text) = test(&["tests/objects/cilium_form.bpf.o", "--name", "3*", "--tap"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("3_skipped # SKIP the test skips itself"),
        "{text}"
    );
}

#[test]
fn objects_without_tests_are_told_or_left_out() {
    let (code, text) = test(&[EXECSNOOP]);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("execsnoop.bpf.o: no tests in it: BPF_TEST"),
        "{text}"
    );
    let folder = Folder::new("without", EXECSNOOP);
    folder.write("broken.bpf.o", "no ELF");
    let (code, text) = test(&[&folder.0.display().to_string()]);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("broken.bpf.o") && text.contains("left out"),
        "{text}"
    );
}
