//! Pages and pictures: `--html`, `--svg`. Each is parsed strictly.

use std::fs;
use std::path::PathBuf;

use roxmltree::{Document, Node, ParsingOptions};

use crate::shared::command::run;
use crate::shared::sample;

/// A folder for a test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("bpflab-pages-{}-{name}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).expect("a folder");
        folder
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a verb that writes a file; gives its exit code, output and the file.
fn written(words: &[&str], option: &str, file: &str) -> (Option<i32>, String, String) {
    let output = run([words, &[option, file]].concat(), "");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let page = fs::read_to_string(file).unwrap_or_else(|error| panic!("{error}: {errors}"));
    (output.status.code(), text, page)
}

/// Parses a page, which must need no other file.
fn parsed(page: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(page, options).expect("well-formed");
    for node in document.descendants() {
        for name in ["src", "data", "srcset"] {
            assert!(!node.has_attribute(name), "{name}: {page}");
        }
        let link = node.attribute("href").unwrap_or("#");
        assert!(
            link.starts_with('#') && node.tag_name().name() != "link",
            "{link}"
        );
    }
    assert!(
        !page.contains("@import") && !page.contains("url("),
        "{page}"
    );
    document
}

/// All text of a node.
fn text_of(node: Node<'_, '_>) -> String {
    let texts = node.descendants().filter(Node::is_text);
    texts.filter_map(|node| node.text()).collect()
}

/// The elements of a class.
fn of_class<'a, 'i>(document: &'a Document<'i>, class: &str) -> Vec<Node<'a, 'i>> {
    let has = |node: &Node<'_, '_>| {
        let classes = node.attribute("class").unwrap_or_default();
        classes.split_whitespace().any(|one| one == class)
    };
    document.descendants().filter(has).collect()
}

/// Every link leads to an element of the page.
fn links_lead_somewhere(document: &Document<'_>) {
    let ids: Vec<_> = document
        .descendants()
        .filter_map(|node| node.attribute("id"))
        .collect();
    let links = document
        .descendants()
        .filter_map(|node| node.attribute("href"));
    let mut count = 0;
    for link in links {
        count += 1;
        let id = link.trim_start_matches('#');
        assert!(ids.contains(&id), "{link} leads nowhere");
    }
    assert!(count > 0);
}

const UNBOUNDED: &str = "tests/verifier_mistakes/index_unbounded.bpf.o";

#[test]
fn a_reject_has_its_path_with_the_origin_of_each_value() {
    let folder = Folder::new("reject");
    let (code, text, page) = written(&["verify", UNBOUNDED], "--html", &folder.path("page.html"));
    assert_eq!(code, Some(1), "{text}");
    let document = parsed(&page);
    links_lead_somewhere(&document);
    let report = text_of(of_class(&document, "report")[0]);
    // The page's report is that of the output.
    assert!(text.contains(report.trim()), "{report}\n{text}");
    let path = of_class(&document, "path")[0];
    let last = path
        .descendants()
        .rfind(|node| node.attribute("id").is_some())
        .expect("an instruction");
    assert_eq!(last.attribute("class"), Some("missed mark"));
    assert!(
        text_of(last).starts_with("11r0 += r1 R0 ← 7 R1 ← 9"),
        "{}",
        text_of(last)
    );
    let state = of_class(&document, "state").into_iter().map(text_of);
    assert!(
        state
            .clone()
            .any(|text| text.contains("R0=map_value(map=counts,ks=4,vs=128)"))
    );
    // The line at fault is open.
    let open = of_class(&document, "line").into_iter();
    let open: Vec<_> = open.filter(|line| line.has_attribute("open")).collect();
    assert_eq!(open.len(), 1);
    assert!(text_of(open[0]).contains("value->slots[ctx->count] += 1;"));
}

#[test]
fn what_each_instruction_costs_adds_up_to_the_verdicts_count() {
    let folder = Folder::new("sums");
    for object in [
        "examples/bpf/runqlat.bpf.o",
        "tests/objects/callback_in_loop.bpf.o",
        "tests/verifier_mistakes/loop_infinite.bpf.o",
        "tests/verifier_mistakes/exit_missing.bpf.o",
        "tests/verifier_mistakes/too_complex.bpf.o",
    ] {
        // A million instructions.
        if object.contains("too_complex") && !sample::all() {
            continue;
        }
        let words = ["verify", object, "--report", "never", "--json"];
        let (_, text, page) = written(&words, "--html", &folder.path("page.html"));
        let document = parsed(&page);
        links_lead_somewhere(&document);
        let rows = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a row"));
        let rows: Vec<serde_json::Value> = rows.collect();
        assert!(!rows.is_empty());
        for (number, row) in rows.iter().enumerate() {
            let section = document
                .descendants()
                .find(|node| node.attribute("id") == Some(&format!("p{number}")))
                .expect("a section");
            let insns = section.descendants().filter(|node| {
                let class = node.attribute("class").unwrap_or_default();
                class == "insn" || class.starts_with("insn ")
            });
            let count = |insn: Node<'_, '_>| {
                let numbers = insn
                    .descendants()
                    .filter(|n| n.attribute("class") == Some("num"));
                let number = numbers.map(text_of).nth(1).expect("a count");
                number.parse::<u64>().expect("a number")
            };
            let sum: u64 = insns.map(count).sum();
            assert_eq!(Some(sum), row["processed"].as_u64(), "{object}: {row}");
        }
    }
}

#[test]
fn text_from_objects_is_escaped() {
    let folder = Folder::new("escaped");
    let mut object = fs::read(UNBOUNDED).expect("an object");
    let (old, new) = (
        b"value->slots[ctx->count] += 1;",
        b"<script>alert('1&2')</script>;",
    );
    let at = object
        .windows(old.len())
        .position(|window| window == old)
        .expect("the line");
    object[at..at + old.len()].copy_from_slice(new);
    let file = folder.path("a<b>&.bpf.o");
    fs::write(&file, object).expect("a file");
    let (_, _, page) = written(&["verify", &file], "--html", &folder.path("page.html"));
    let document = parsed(&page);
    let scripts = document
        .descendants()
        .filter(|node| node.tag_name().name() == "script");
    assert_eq!(scripts.count(), 1);
    assert!(
        page.contains("&lt;script&gt;alert('1&amp;2')&lt;/script&gt;"),
        "{page}"
    );
    assert!(page.contains("a&lt;b&gt;&amp;.bpf.o"), "{page}");
}

#[test]
fn a_page_that_cannot_be_written_is_an_error() {
    let words = ["verify", UNBOUNDED, "--html", "/nowhere/page.html"];
    let output = run(words, "");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(
        errors.contains("/nowhere/page.html: can't be written"),
        "{errors}"
    );
}

#[test]
fn a_run_has_its_records_and_pictures() {
    let folder = Folder::new("run");
    let words = [
        "run",
        "examples/bpf/write_hist.bpf.o",
        "--events",
        "examples/write_events.jsonl",
        "--json",
    ];
    let (code, text, page) = written(&words, "--html", &folder.path("page.html"));
    assert_eq!(code, Some(0), "{text}");
    let document = parsed(&page);
    // The picture has a bar for each row of the output.
    let rows = text.lines().filter_map(|line| {
        let row: serde_json::Value = serde_json::from_str(line).expect("a row");
        Some(row.get("histogram")?.as_array()?.len())
    });
    let rows: usize = rows.sum();
    assert!(rows > 10, "{text}");
    assert_eq!(of_class(&document, "bar").len(), rows);
    assert!(page.contains(">724</text>"), "{page}");
    assert!(text_of(document.root()).contains("3000 runs returned 0; 56 instructions"));
}

#[test]
fn records_and_packets_of_a_run_are_shown_and_escaped() {
    let folder = Folder::new("records");
    let words = [
        "run",
        "examples/bpf/execsnoop.bpf.o",
        "--event",
        "sched/sched_process_exec",
        "--set",
        "filename=/bin/<ls>&",
        "--comm",
        "a<b>",
    ];
    let (code, text, page) = written(&words, "--html", &folder.path("page.html"));
    assert_eq!(code, Some(0), "{text}");
    parsed(&page);
    assert!(page.contains("&lt;"), "{text}\n{page}");
    assert!(!page.contains("<ls>") && !page.contains("a<b>"), "{page}");
}

/// The README's picture is what its command makes.
#[test]
fn the_picture_of_the_readme_is_made_by_its_command() {
    const PICTURE: &str = "docs/block_latency.svg";
    let readme = fs::read_to_string("README.md").expect("the README");
    let flat = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    let (before, _) = flat
        .split_once(&format!(" --svg {PICTURE}`"))
        .expect("the command");
    let (_, command) = before.rsplit_once("`bpflab ").expect("its begin");
    let folder = Folder::new("readme");
    let words: Vec<_> = command.split(' ').collect();
    let (code, text, picture) = written(&words, "--svg", &folder.path("picture.svg"));
    assert_eq!(code, Some(0), "{text}");
    Document::parse(&picture).expect("well-formed");
    if std::env::var_os("BLESS").is_some() {
        fs::write(PICTURE, &picture).expect("written");
    }
    assert_eq!(fs::read_to_string(PICTURE).expect("the picture"), picture);
}

#[test]
fn pictures_are_written_into_a_folder() {
    let folder = Folder::new("folder");
    let words = [
        "run",
        "examples/bpf/block_latency.bpf.o",
        "--events",
        "examples/block_events.jsonl",
    ];
    let dir = folder.path("");
    let output = run([&words[..], &["--svg", &dir]].concat(), "");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let mut count = 0;
    for entry in fs::read_dir(&dir).expect("a folder") {
        let text = fs::read_to_string(entry.expect("an entry").path()).expect("a picture");
        Document::parse(&text).expect("well-formed");
        count += 1;
    }
    assert_eq!(count, 1);
    let output = run(["run", "examples/bpf/xdp_count.bpf.o", "--svg", &dir], "");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("no map has counts"), "{errors}");
}

#[test]
fn a_recording_has_a_timeline_of_all_firings() {
    let folder = Folder::new("timeline");
    let words = ["inspect", "examples/recordings/writes.rec"];
    let (code, text, page) = written(&words, "--html", &folder.path("page.html"));
    assert_eq!(code, Some(0), "{text}");
    let document = parsed(&page);
    let counts = of_class(&document, "bar").into_iter().map(|bar| {
        let text = text_of(bar);
        let (_, count) = text.rsplit_once(": ").expect("a count");
        count.parse::<u64>().expect("a number")
    });
    assert_eq!(counts.sum::<u64>(), 203);
    assert!(text.contains("203 firings"), "{text}");
    assert!(text_of(document.root()).contains(text.trim()), "{page}");

    let output = run(["inspect", UNBOUNDED, "--html", "x.html"], "");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("not a recording; --html"), "{errors}");
}

#[test]
fn a_replay_has_its_verdicts() {
    let folder = Folder::new("replay");
    let words = [
        "replay",
        "examples/recordings/writes.rec",
        "--engine",
        "checked",
    ];
    let (code, text, page) = written(&words, "--html", &folder.path("page.html"));
    assert_eq!(code, Some(0), "{text}");
    let document = parsed(&page);
    let all = text_of(document.root());
    assert!(all.contains("203 firings on checked"), "{all}");
    let verdict = text.lines().last().expect("a verdict");
    assert!(
        verdict.starts_with("verdict: ") && all.contains(verdict),
        "{all}"
    );
}
