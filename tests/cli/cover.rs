//! Coverage: measured by runs and replays, reported by `bpflab cover`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shared::command::{bpflab, run};

/// A folder for a test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("bpflab-cover-{}-{name}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).expect("a folder");
        folder
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// The only file with counts.
    fn counts(&self, name: &str) -> PathBuf {
        let mut files = fs::read_dir(self.0.join(name)).expect("a folder");
        let file = files.next().expect("a file").expect("an entry").path();
        assert!(files.next().is_none(), "one process writes one file");
        file
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a command while coverage is measured; gives its exit code and output.
fn measured(dir: &str, words: &[&str]) -> (Option<i32>, String) {
    let output = bpflab()
        .args(words)
        .env("BPFLAB_COVERAGE", dir)
        .output()
        .expect("bpflab runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text + &errors)
}

/// Runs `bpflab cover`; gives its exit code and output.
fn cover(words: &[&str]) -> (Option<i32>, String) {
    let output = run([&["cover"], words].concat(), "");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text + &errors)
}

const OBJECT: &str = "tests/objects/coverage.bpf.o";

/// Fires three events: two large sizes, and 7.
fn three_events(folder: &Folder) -> String {
    let events = folder.path("events.jsonl");
    let lines = "{\"args[1]\":5000}\n{\"args[1]\":8192}\n{\"args[1]\":7}\n";
    fs::write(&events, lines).expect("a file");
    let dir = folder.path("cov");
    let words = ["run", OBJECT, "--event", "sys_enter", "--events", &events];
    let (code, text) = measured(&dir, &words);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("on engine checked: coverage is measured"),
        "{text}"
    );
    dir
}

#[test]
fn lcov_has_the_counts_of_lines_branches_and_functions() {
    let folder = Folder::new("lcov");
    let dir = three_events(&folder);
    let file = folder.path("lcov.info");
    assert_eq!(cover(&[&dir, "--lcov", &file]).0, Some(0));
    // Line 25 and the way to it are dead: `debug` is 0. `on_exit` did not run.
    let expected = "TN:
SF:tests/objects/coverage.bpf.c
FN:9,sort
FN:22,on_enter
FN:32,on_exit
FNDA:3,sort
FNDA:3,on_enter
FNDA:0,on_exit
FNF:3
FNH:2
BRDA:9,0,0,2
BRDA:9,0,1,1
BRDA:11,0,0,2
BRDA:11,0,1,1
BRDA:24,0,0,3
BRDA:26,0,0,2
BRDA:26,0,1,1
BRDA:34,0,0,-
BRDA:34,0,1,-
BRF:9
BRH:7
DA:9,3
DA:11,3
DA:17,3
DA:22,3
DA:24,3
DA:26,3
DA:27,1
DA:28,3
DA:32,0
DA:34,0
LF:10
LH:8
end_of_record
";
    assert_eq!(fs::read_to_string(&file).expect("the file"), expected);
}

#[test]
fn processes_add_up() {
    let folder = Folder::new("sum");
    let dir = three_events(&folder);
    let (_, before) = cover(&[&dir, "--show-missing-lines"]);
    assert!(
        before.ends_with("missed lines:\ntests/objects/coverage.bpf.c: 32, 34\n"),
        "{before}"
    );
    let (code, text) = measured(&dir, &["run", OBJECT, "on_exit"]);
    assert_eq!(code, Some(0), "{text}");
    let (_, after) = cover(&[&dir, "--show-missing-lines"]);
    assert!(
        after.contains("10/10 100.00%") && !after.contains("missed lines"),
        "{after}"
    );
}

#[test]
fn programs_that_nothing_loaded_are_missed_or_not_measured() {
    let folder = Folder::new("objects");
    let dir = folder.path("cov");
    // Only this program is loaded, and it does not call what line 27 is in.
    assert_eq!(measured(&dir, &["run", OBJECT, "on_exit"]).0, Some(0));
    let rows = |words: &[&str]| {
        let (code, text) = cover(&[&[&dir, "--json"], words].concat());
        assert_eq!(code, Some(0), "{text}");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect::<Vec<serde_json::Value>>()
    };
    let other = "examples/bpf/write_hist.bpf.o";
    let all = rows(&[OBJECT, other]);
    let (hist, own) = (&all[0], &all[1]);
    assert_eq!(hist["lines"]["not_measured"], 6, "{hist}");
    assert_eq!(hist["lines"]["count"], 0, "{hist}");
    assert_eq!(own["lines"]["not_measured"], 0, "{own}");
    assert_eq!(own["dead_lines"], serde_json::json!([25]), "{own}");
    let missed = own["missed_lines"].as_array().expect("numbers");
    assert!(missed.contains(&27.into()), "{own}");
    assert_eq!(all[2]["lines"]["not_measured"], 6, "{}", all[2]);
}

#[test]
fn too_few_lines_are_a_negative_result() {
    let folder = Folder::new("under");
    let dir = three_events(&folder);
    assert_eq!(cover(&[&dir, "--fail-under-lines", "80"]).0, Some(0));
    let (code, text) = cover(&[&dir, "--fail-under-lines", "80.01"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("line coverage is 8/10 80.00%, less than 80.01%"),
        "{text}"
    );
    assert_eq!(cover(&[&dir, "--fail-under-lines", "101"]).0, Some(2));
}

#[test]
fn cobertura_has_the_same_counts() {
    let folder = Folder::new("cobertura");
    let dir = three_events(&folder);
    let file = folder.path("coverage.xml");
    assert_eq!(cover(&[&dir, "--cobertura", &file]).0, Some(0));
    let text = fs::read_to_string(&file).expect("the file");
    for part in [
        "line-rate=\"0.8000\" branch-rate=\"0.7777\" lines-covered=\"8\" lines-valid=\"10\"",
        "<method name=\"on_exit\" signature=\"\" line-rate=\"0.0000\"",
        "<line number=\"26\" hits=\"3\" branch=\"true\" condition-coverage=\"100% (2/2)\"/>",
        "<line number=\"34\" hits=\"0\" branch=\"true\" condition-coverage=\"0% (0/2)\"/>",
        "<line number=\"27\" hits=\"1\"/>",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("number=\"25\""), "a dead line:\n{text}");
}

/// The replay form has other instructions; the counts are those of the original.
#[test]
fn a_replay_covers_the_original_program() {
    let folder = Folder::new("replay");
    let dir = folder.path("cov");
    let recording = "examples/recordings/writes.rec";
    let (code, text) = measured(&dir, &["replay", recording]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("on checked"), "{text}");
    let file = folder.path("lcov.info");
    assert_eq!(cover(&[&dir, "--lcov", &file]).0, Some(0));
    let text = fs::read_to_string(&file).expect("the file");
    let firings = "FNDA:203,count_write\n";
    // The look-up in an array never gives NULL.
    for part in [firings, "BRDA:51,0,0,0\nBRDA:51,0,1,203\n", "DA:52,203\n"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_line_that_was_cut_off_does_not_count_and_a_damaged_one_is_an_error() {
    let folder = Folder::new("damage");
    let dir = three_events(&folder);
    let file = folder.counts("cov");
    let whole = fs::read(&file).expect("the file");
    fs::write(&file, &whole[..whole.len() - 5]).expect("a file");
    let (code, text) = cover(&[&dir]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("0/10 0.00%"), "{text}");
    for (damage, expected) in [
        (
            "{\"counts\":{\"program\":9,\"executed\":[],\"taken\":[]}}\n",
            "program 9",
        ),
        (
            "{\"counts\":{\"program\":0,\"executed\":[[9999,1,1]],\"taken\":[]}}\n",
            "end",
        ),
        ("nonsense\n", "expected value"),
    ] {
        fs::write(&file, [&whole[..], damage.as_bytes()].concat()).expect("a file");
        let (code, text) = cover(&[&dir]);
        assert_eq!(code, Some(2), "{text}");
        let name = Path::new(&file).display().to_string();
        assert!(text.contains(&name) && text.contains(expected), "{text}");
    }
}

#[test]
fn a_folder_without_counts_is_an_error_with_the_variable() {
    let folder = Folder::new("empty");
    let (code, text) = cover(&[&folder.path("")]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("BPFLAB_COVERAGE="), "{text}");
    let (code, text) = cover(&[&folder.path("nowhere")]);
    assert_eq!(code, Some(2), "{text}");
}

#[test]
fn a_folder_that_cannot_be_written_fails_the_run() {
    let folder = Folder::new("unwritable");
    let file = folder.path("file");
    fs::write(&file, "").expect("a file");
    let (code, text) = measured(&file, &["run", OBJECT, "on_exit"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("BPFLAB_COVERAGE"), "{text}");
}

#[test]
fn the_page_has_the_source_with_counts_and_states() {
    let folder = Folder::new("page");
    let dir = three_events(&folder);
    let page = folder.path("coverage.html");
    let (code, text) = cover(&[&dir, "--html", &page]);
    assert_eq!(code, Some(0), "{text}");
    let page = fs::read_to_string(page).expect("a page");
    for part in [
        "<title>Coverage</title>",
        "tests/objects/coverage.bpf.c</code></h2>",
        // A line without instructions, from the file.
        "// Lines and branches in each state of coverage",
        "<tr class=\"covered\"><td>22</td><td>3</td><td>\t__u64 size = ctx-&gt;args[1];",
        "<tr class=\"dead\"><td>25</td><td>dead</td><td>",
        "<tr class=\"missed mark\"><td>34</td><td>0</td><td>",
        "<p>Functions that were not called: on_exit.</p>",
        "class=\"branch both\"",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(!page.contains("http"), "it needs the network: {page}");
    assert!(!page.contains("Only lines with instructions"), "{page}");
}

#[test]
fn a_page_without_the_source_file_has_the_lines_of_the_object() {
    let folder = Folder::new("page-alone");
    let dir = three_events(&folder);
    let output = bpflab()
        .current_dir(&folder.0)
        .args(["cover", &dir, "--html", "coverage.html"])
        .output()
        .expect("bpflab runs");
    assert_eq!(output.status.code(), Some(0));
    let page = fs::read_to_string(folder.path("coverage.html")).expect("a page");
    assert!(page.contains("Only lines with instructions"), "{page}");
    assert!(page.contains("__u64 size = ctx-&gt;args[1];"), "{page}");
    assert!(page.contains("<tr class=\"gap\">"), "{page}");
}
