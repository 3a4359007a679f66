//! `bpflab verify --sarif`, `--code-quality` and `--annotations`.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::shared::command::run;

const REJECTED: &str = "tests/objects/past_the_end.bpf.o";
const ACCEPTED: &str = "examples/bpf/write_hist.bpf.o";

/// A file that the command writes, removed on drop.
struct Written(PathBuf);

impl Written {
    fn new(name: &str) -> Self {
        let name = format!("bpflab-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path")
    }

    fn json(&self) -> Value {
        let text = std::fs::read_to_string(&self.0).expect("the file");
        serde_json::from_str(&text).expect("JSON")
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The first result has what code hosts need: a rule, a level, a relative file, a line.
#[test]
fn sarif_has_the_line_of_c() {
    let file = Written::new("line.sarif");
    let arguments = ["verify", REJECTED, ACCEPTED, "--sarif", file.path()];
    assert_eq!(run(arguments, "").status.code(), Some(1));
    let log = file.json();
    assert_eq!(log["version"], "2.1.0");
    let results = log["runs"][0]["results"].as_array().expect("results");
    assert_eq!(results.len(), 1, "{results:?}");
    let result = &results[0];
    assert_eq!(result["ruleId"], "memory-safety");
    assert_eq!(result["level"], "error");
    let text = result["message"]["text"].as_str().expect("a text");
    assert!(
        text.contains("R1 min value is outside of the allowed memory range"),
        "{text}"
    );
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(
        place["artifactLocation"]["uri"],
        "tests/objects/past_the_end.bpf.c"
    );
    assert_eq!(place["region"]["startLine"], 21);
    assert_eq!(place["region"]["startColumn"], 9);
}

/// A program that was rejected before is a warning under `--fail-on`; what fails is an error.
#[test]
fn what_passes_the_gate_is_a_warning() {
    let (sarif, quality) = (Written::new("gate.sarif"), Written::new("gate.json"));
    let gate = |words: &str| {
        let mut arguments = vec!["verify", REJECTED, ACCEPTED];
        arguments.extend(["--against", "tests/cli/former_run.json", "--fail-on", words]);
        arguments.extend(["--sarif", sarif.path(), "--code-quality", quality.path()]);
        let code = run(arguments, "").status.code();
        let log = sarif.json();
        let results = log["runs"][0]["results"].as_array().expect("results");
        let found = results
            .iter()
            .map(|result| json!([result["ruleId"], result["level"]]))
            .collect::<Vec<_>>();
        let issues = quality.json();
        assert_eq!(issues.as_array().expect("issues").len(), found.len());
        (code, Value::from(found))
    };
    let known = json!(["memory-safety", "warning"]);
    assert_eq!(gate("verdict,insns>50%"), (Some(0), json!([known])));
    assert_eq!(
        gate("verdict,insns>1%,missing"),
        (
            Some(1),
            json!([known, ["growth", "error"], ["missing", "error"]])
        )
    );
}

/// A file that can't be written is told with its name.
#[test]
fn a_file_that_can_not_be_written_is_an_error() {
    let output = run(
        ["verify", ACCEPTED, "--sarif", "no/such/folder/a.sarif"],
        "",
    );
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("no/such/folder/a.sarif: can't be written"),
        "{text}"
    );
}
