//! Code in the documentation is code of this repository: each block marked `rust` is,
//! paragraph by paragraph, in the tests of the examples, and each marked `c` in an example or
//! an object of the tests; so are the lines of tests in tables. So all of it is compiled and
//! run. Spaces and line breaks may differ. (`tests/cli/transcripts.rs` tests consoles.)

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join(folder)).expect("a folder");
    let paths = folder.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    paths.sort();
    paths
}

/// The pages whose code is held.
fn pages() -> Vec<PathBuf> {
    let mut pages = files("docs", "md");
    pages.extend(files("examples", "md"));
    pages.push(root().join("README.md"));
    pages
}

/// A text without what formatting changes.
fn bare(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The blocks of a page in a language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let open = format!("```{language}\n");
    let starts = page.match_indices(&open).map(|(at, _)| at + open.len());
    starts
        .map(|start| page[start..].split("```").next().expect("a first part"))
        .collect()
}

/// The paragraphs of a block that don't stand in a source, one behind the other.
fn missing<'a>(block: &'a str, source: &str) -> Vec<&'a str> {
    let mut rest = source;
    let mut missing = Vec::new();
    for paragraph in block.split("\n\n").filter(|text| !text.trim().is_empty()) {
        let wanted = bare(paragraph);
        match rest.find(&wanted) {
            Some(at) => rest = &rest[at + wanted.len()..],
            None => missing.push(paragraph),
        }
    }
    missing
}

#[test]
fn code_in_the_documentation_is_code_that_runs() {
    let read = |path: &PathBuf| fs::read_to_string(path).expect("a text");
    let sources = |paths: Vec<PathBuf>| -> Vec<String> {
        paths.iter().map(|path| bare(&read(path))).collect()
    };
    let mut c = files("examples/bpf", "c");
    c.extend(files("tests/objects", "c"));
    let languages = [
        ("rust", sources(files("tests/examples", "rs"))),
        ("c", sources(c)),
    ];
    let (mut wrong, mut held) = (Vec::new(), 0);
    for page in pages() {
        let text = read(&page);
        for (language, sources) in &languages {
            for block in blocks(&text, language) {
                held += 1;
                let nearest = sources.iter().map(|source| missing(block, source));
                let nearest = nearest.min_by_key(Vec::len).expect("some sources");
                for paragraph in nearest {
                    wrong.push(format!("{} ({language}):\n{paragraph}", page.display()));
                }
            }
        }
    }
    assert!(held > 10, "only {held} blocks were found");
    assert!(
        wrong.is_empty(),
        "{} paragraphs stand in no source:\n\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
}

/// What a line of a test begins with.
const STARTS: [&str; 5] = ["vm.", "object.", "outcome.", "Event::", "."];

/// The lines of tests in a page's tables, without the dots for whatever stands there.
fn lines_in_tables(page: &str) -> Vec<&str> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let tests = rows.filter_map(|row| row.trim_end_matches(" |").rsplit(" | ").next());
    let spans = tests.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    spans
        .filter(|span| STARTS.iter().any(|start| span.starts_with(start)))
        .collect()
}

#[test]
fn lines_of_tests_in_tables_are_lines_that_run() {
    let sources: Vec<_> = files("tests/examples", "rs")
        .iter()
        .map(|path| bare(&fs::read_to_string(path).expect("a text")))
        .collect();
    let page = root().join("docs/from-bcc-and-bpftrace.md");
    let page = fs::read_to_string(page).expect("a text");
    let lines = lines_in_tables(&page);
    let stands = |line: &&str| {
        let parts: Vec<_> = line.split('…').map(bare).collect();
        sources
            .iter()
            .any(|source| parts.iter().all(|part| source.contains(part.as_str())))
    };
    let missing: Vec<_> = lines.iter().filter(|line| !stands(line)).collect();
    assert!(lines.len() > 40, "only {} lines were found", lines.len());
    assert!(missing.is_empty(), "no test has {missing:#?}");
}

#[test]
fn paragraphs_are_found_in_order() {
    let source = bare("fn a() {\n    one();\n\n    two();\n}\n");
    let found = |block| missing(block, &source).len();
    assert_eq!(found("one();\n\ntwo();"), 0);
    assert_eq!(found("two();\n\none();"), 1);
    assert_eq!(found("fn a() { one();"), 0);
    assert_eq!(found("three();"), 1);
    let page = "x\n```c\nint a;\n```\n```rust\nfn\n```\n";
    assert_eq!(
        (blocks(page, "c"), blocks(page, "rust")),
        (vec!["int a;\n"], vec!["fn\n"])
    );
}
