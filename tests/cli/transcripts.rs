//! Everything that the documentation shows on a console is run and compared, and so
//! are the transcripts in `tests/cli/*.md`: each block marked `console` holds commands,
//! `$ bpflab …` or `$ cargo run -- …`, with what they print, the standard error last, and
//! `[exit code N]` where that is not 0. A line `...` stands for any lines. Lines behind a command that
//! begin with `> ` are its standard input. Measured times are written as `…`.
//!
//! `BLESS=1` rewrites what is expected.

use crate::shared::command;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// How a command of a console begins: installed, and from a clone.
const COMMANDS: [&str; 2] = ["$ bpflab ", "$ cargo run -- "];

/// The files with transcripts in these folders.
fn files(folders: &[&str]) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in folders {
        let entries = fs::read_dir(root.join(folder)).expect("a folder");
        files.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    files
}

/// A command with its input and what it is to print.
#[derive(Default)]
struct Step {
    line: String,
    input: String,
    expected: String,
}

impl Step {
    /// What the command prints.
    fn actual(&self) -> String {
        let words = words(
            COMMANDS
                .iter()
                .find_map(|it| self.line.strip_prefix(it))
                .expect("one"),
        );
        let output = command::run(words, &self.input);
        let mut text = String::from_utf8(output.stdout).expect("text");
        if self.line.contains(" --json") {
            for line in text.lines() {
                let json = serde_json::from_str::<serde_json::Value>(line);
                assert!(
                    json.is_ok_and(|json| json.is_object()),
                    "no JSON object: {line}"
                );
            }
        }
        text.push_str(std::str::from_utf8(&output.stderr).expect("text"));
        match output.status.code() {
            Some(0) => {}
            Some(code) => writeln!(text, "[exit code {code}]").expect("a string"),
            None => text.push_str("[killed]\n"),
        }
        without_times(&text)
    }

    /// The step as it stands in a transcript.
    fn text(&self, output: &str) -> String {
        let input = self
            .input
            .lines()
            .map(|line| format!("> {line}").trim_end().to_owned() + "\n");
        format!("{}\n{}{output}", self.line, input.collect::<String>())
    }
}

/// Splits a command line as a shell does, quotes and backslashes included.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if c == open => quote = None,
            (None, '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Keys of JSON whose values are times, or follow from them.
const TIMES: [&str; 6] = [
    "ns_per_run",
    "ratio",
    "time_us",
    "verify_us",
    "lower_us",
    "code_us",
];

/// Replaces times, which differ from run to run.
fn without_times(text: &str) -> String {
    let number = |c: char| c.is_ascii_digit() || c == '.';
    let mut result = String::new();
    for line in text.split_inclusive('\n') {
        let mut line = line.to_owned();
        for key in TIMES {
            let key = format!("\"{key}\":");
            if let Some(at) = line.find(&key) {
                let start = at + key.len();
                let digits = line[start..].find(|c| !number(c)).unwrap_or(0);
                if digits > 0 {
                    line.replace_range(start..start + digits, "…");
                }
            }
        }
        if let Some(end) = line.find(" ns a run") {
            let start = line[..end].rfind(' ').map_or(0, |at| at + 1);
            line.replace_range(start..end, "…");
        }
        result.push_str(&line);
    }
    without_time_columns(&result)
}

/// Replaces the numbers in a table's column `us`, and makes it as narrow as its name,
/// whatever the numbers' width.
fn without_time_columns(text: &str) -> String {
    let mut result = String::new();
    // Where the column ends, and how wide it is, in the table at hand.
    let mut column: Option<(usize, usize)> = None;
    for line in text.split_inclusive('\n') {
        if line.starts_with("verdict ") {
            column = line.find("  us  ").map(|at| {
                let before = line[..at].trim_end().len();
                (at + "  us".len(), at - before)
            });
        }
        let cells = column.and_then(|(end, spare)| {
            let start = end.checked_sub("us".len() + spare)?;
            Some((line.get(..start)?, line.get(start..end)?, line.get(end..)?))
        });
        match cells {
            Some((before, cell, after)) if cell.trim().parse::<u64>().is_ok() => {
                result.push_str(&format!("{before} …{after}"));
            }
            Some((before, cell, after)) if ["us", ""].contains(&cell.trim()) => {
                result.push_str(&format!("{before}{:>2}{after}", cell.trim()));
            }
            _ => {
                column = None;
                result.push_str(line);
            }
        }
    }
    result
}

/// Whether lines are as expected, where `...` stands for any number of them.
fn matches(expected: &[&str], actual: &[&str]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((&"...", rest)) => (0..=actual.len()).any(|skip| matches(rest, &actual[skip..])),
        Some((line, rest)) => actual.first() == Some(line) && matches(rest, &actual[1..]),
    }
}

/// Runs the commands of a block; the block as it should be.
fn block(text: &str, wrong: &mut Vec<String>, ran: &mut usize) -> String {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        match steps.last_mut() {
            _ if COMMANDS.iter().any(|it| line.starts_with(it)) => steps.push(Step {
                line: line.to_owned(),
                ..Step::default()
            }),
            Some(step) if step.expected.is_empty() && (line == ">" || line.starts_with("> ")) => {
                step.input.push_str(line[1..].trim_start());
                step.input.push('\n');
            }
            Some(step) => {
                step.expected.push_str(line);
                step.expected.push('\n');
            }
            // Commands of others are for the reader only.
            None => return text.to_owned(),
        }
    }
    let mut result = String::new();
    for step in &steps {
        *ran += 1;
        let actual = step.actual();
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let (want, have) = (lines(&step.expected), lines(&actual));
        let (want, have): (Vec<_>, Vec<_>) = (
            want.iter().map(String::as_str).collect(),
            have.iter().map(String::as_str).collect(),
        );
        if matches(&want, &have) {
            result.push_str(&step.text(&step.expected));
        } else {
            wrong.push(format!(
                "{}\n--- expected\n{}--- printed\n{actual}",
                step.line, step.expected
            ));
            result.push_str(&step.text(&actual));
        }
    }
    result
}

#[test]
fn the_console_shows_what_is_documented() {
    hold(&["", "docs", "examples"]);
}

#[test]
fn the_console_shows_what_the_transcripts_of_the_tests_say() {
    hold(&["tests/cli"]);
}

/// Runs the commands in the files of these folders.
fn hold(folders: &[&str]) {
    const OPEN: &str = "```console\n";
    let bless = std::env::var_os("BLESS").is_some();
    let (mut wrong, mut ran) = (Vec::new(), 0);
    for file in files(folders) {
        let text = fs::read_to_string(&file).expect("a text");
        let mut rest = text.as_str();
        let mut result = String::new();
        while let Some(start) = rest.find(OPEN) {
            let (before, inside) = rest.split_at(start + OPEN.len());
            let end = inside.find("```").expect("the end of the block");
            result.push_str(before);
            let before = wrong.len();
            result.push_str(&block(&inside[..end], &mut wrong, &mut ran));
            for report in &mut wrong[before..] {
                report.insert_str(0, &format!("{}: ", file.display()));
            }
            rest = &inside[end..];
        }
        result.push_str(rest);
        if bless && result != text {
            fs::write(&file, result).expect("the file is written");
        }
    }
    assert!(ran > 20, "only {ran} commands were found");
    assert!(
        bless || wrong.is_empty(),
        "{} of {ran} commands print something else; BLESS=1 accepts it:\n\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn lines_match_with_gaps() {
    let lines = |text: &'static str| text.split(' ').collect::<Vec<_>>();
    assert!(matches(&lines("a ... c"), &lines("a b b c")));
    assert!(matches(&lines("a ... c"), &lines("a c")));
    assert!(!matches(&lines("a ... c"), &lines("a b")));
    assert!(!matches(&lines("a"), &lines("a b")));
    assert_eq!(
        words("--set 'a b=1' \"c\" d\\ e"),
        ["--set", "a b=1", "c", "d e"]
    );
    assert_eq!(
        without_times("{\"ns_per_run\":12.5}\nx, 7 ns a run\n{\"ns_per_run\":null}\n"),
        "{\"ns_per_run\":…}\nx, … ns a run\n{\"ns_per_run\":null}\n"
    );
    let table =
        "verdict  states    us  message\naccept        0  1234\nreject        0     7  no\n";
    assert_eq!(
        without_times(table),
        "verdict  states  us  message\naccept        0   …\nreject        0   …  no\n"
    );
}
