//! `bpflab bench --save`, `--against` and `--lines`.

use std::path::PathBuf;

use serde_json::Value;

use crate::shared::command::run;

/// A file in the folder for temporary ones, removed on drop.
struct Times(PathBuf);

impl Times {
    fn new(name: &str) -> Self {
        let name = format!("bpflab-{}-{name}.json", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path of characters")
    }

    fn read(&self) -> String {
        std::fs::read_to_string(&self.0).expect("it was written")
    }
}

impl Drop for Times {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Runs a short benchmark with more arguments: exit code, output and errors.
fn bench(more: &[&str]) -> (Option<i32>, String, String) {
    let object = "examples/bpf/write_hist.bpf.o";
    let mut arguments = vec!["bench", object, "--engine", "interp"];
    arguments.extend(["--samples", "1", "--time", "1"]);
    arguments.extend(more);
    let output = run(arguments, "");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// The times change by a factor that no disturbance has.
#[test]
fn a_run_that_takes_longer_than_before_fails() {
    let saved = Times::new("before");
    let (code, _, errors) = bench(&["--save", saved.path()]);
    assert_eq!(code, Some(0), "{errors}");
    let text = saved.read();
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a row"))
        .collect();
    assert_eq!(rows.len(), 2, "a time, and that of preparing: {text}");
    let ns = rows[0]["ns_per_run"].as_f64().expect("a time");
    assert!(rows[0].get("before_ns").is_none() && ns > 0.0);

    let faster = Times::new("faster");
    let other = |ns: f64| {
        let mut row = rows[0].clone();
        row["ns_per_run"] = ns.into();
        std::fs::write(&faster.0, row.to_string()).expect("written");
    };
    other(ns / 1000.0);
    let against = ["--against", faster.path()];
    let (code, output, errors) = bench(&against);
    assert_eq!(code, Some(1), "{errors}");
    assert!(
        output.contains("slower by more than 10 %: count_write on interp by "),
        "{output}"
    );
    let limit = [&against[..], &["--fail-above", "10000000"]].concat();
    assert_eq!(bench(&limit).0, Some(0));
    other(ns * 1000.0);
    let (code, output, _) = bench(&against);
    assert!(code == Some(0) && output.contains("-99."), "{output}");
    let json = [&against[..], &["--json"]].concat();
    let (_, output, _) = bench(&json);
    assert!(output.contains("\"before_ns\":"), "{output}");
}

#[test]
fn what_is_not_measured_again_is_named() {
    let before = Times::new("other");
    let row = "{\"kind\":\"bench\",\"object\":\"x.bpf.o\",\"program\":\"gone\",\
               \"event\":\"e\",\"engine\":\"jit\",\"ns_per_run\":5.0}";
    std::fs::write(&before.0, row).expect("written");
    let (code, output, errors) = bench(&["--against", before.path()]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(!output.contains("before"), "nothing to compare: {output}");
    let warning = "warning: not measured this time: x.bpf.o/gone on e, jit";
    assert!(errors.contains(warning), "{errors}");
}

/// The lines' instructions are those of the run, and the loop of the C source is the costliest.
#[test]
fn lines_have_the_instructions_of_a_run() {
    let (code, output, errors) = bench(&["--lines", "99", "--json"]);
    assert_eq!(code, Some(0), "{errors}");
    let rows: Vec<Value> = output
        .lines()
        .map(|line| serde_json::from_str(line).expect("a row"))
        .collect();
    let lines: Vec<_> = rows.iter().filter(|row| row["kind"] == "line").collect();
    let insns = |row: &Value| row["insns"].as_u64().expect("a number");
    let sum: u64 = lines.iter().map(|row| insns(row)).sum();
    assert_eq!(sum, insns(&rows[0]), "{output}");
    assert!(lines.is_sorted_by_key(|row| u64::MAX - insns(row)));
    assert_eq!(lines[0]["text"], "if (size >> width) {");

    let (_, output, _) = bench(&["--lines", "2"]);
    let (_, table) = output.split_once("costliest lines").expect("a table");
    assert_eq!(table.lines().count(), 1 + 2 + 1, "{table}");
    let rest = format!(
        "more lines with {} instructions\n",
        sum - insns(lines[0]) - insns(lines[1])
    );
    assert!(table.ends_with(&rest), "{table}");
}

#[test]
fn bad_arguments_are_refused() {
    let (code, _, errors) = bench(&["--against", "Cargo.toml"]);
    assert_eq!(code, Some(2));
    assert!(
        errors.contains("Cargo.toml: line 1: ") && errors.contains("written by --save"),
        "{errors}"
    );
    assert_eq!(bench(&["--lines", "0"]).0, Some(2));
    assert_eq!(
        bench(&["--fail-above", "5"]).0,
        Some(2),
        "without --against"
    );
    let file = ["--against", "Cargo.toml", "--fail-above"];
    for percent in ["-1", "x", "inf"] {
        assert_eq!(
            bench(&[&file[..], &[percent]].concat()).0,
            Some(2),
            "{percent}"
        );
    }
}
