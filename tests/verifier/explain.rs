//! Logs of other kernels on the programs of `tests/verifier_mistakes`, as libbpf prints them:
//! `tests/verifier/logs/RELEASE.txt`. A line `# NAME` names the program's object. The report made
//! from the log alone says the same problem as `verify`'s report, and blames the same line.

use std::fs;
use std::path::{Path, PathBuf};

use bpflab::explain::{Explained, logs};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

fn text(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The title of the report on a mistake, without the error number, and the line it blames.
fn expected(name: &str) -> (String, Option<u32>) {
    let text = text(folder("verifier_mistakes").join(format!("{name}.txt")));
    let title = text
        .lines()
        .find(|line| line.starts_with("error"))
        .expect("a title");
    let title = title.split_once(": ").expect("a title").1.to_owned();
    let place = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("--> "));
    let place = place.and_then(|place| place.rsplit(':').nth(1)?.parse().ok());
    (title, place)
}

/// Of how many logs the problem is the same, and of how many with line numbers the line is.
fn agreement(release: &str) -> (usize, usize, usize, usize, Vec<String>) {
    let text = text(folder("verifier/logs").join(format!("{release}.txt")));
    let names: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .collect();
    let plain: String = text
        .lines()
        .filter(|line| !line.starts_with("# "))
        .map(|line| format!("{line}\r\n"))
        .collect();
    let logs = logs(&plain);
    assert_eq!(logs.len(), names.len(), "{release}: logs found");
    let (mut same, mut placed, mut same_line) = (0, 0, 0);
    let mut others = Vec::new();
    for (name, log) in names.iter().zip(&logs) {
        let explained = Explained::new(log, None);
        let report = explained.report.as_ref().expect("an error line");
        let (title, line) = expected(name);
        let own = format!("{}: {}", report.category, report.problem);
        if own == title {
            same += 1;
        } else {
            others.push(format!(
                "{name}: {own} ({}), not {title}",
                explained.message
            ));
        }
        let source = report
            .labels
            .first()
            .and_then(|label| label.place.source.as_ref());
        if let Some(source) = source {
            placed += 1;
            if Some(source.line) == line {
                same_line += 1;
            } else {
                others.push(format!("{name}: line {}, not {line:?}", source.line));
            }
        }
    }
    (logs.len(), same, placed, same_line, others)
}

#[test]
fn logs_of_other_kernels_give_the_reports_of_verify() {
    let mut short = Vec::new();
    for (release, problems, lines) in [
        ("5.10", 21, 0),
        ("6.1", 40, 0),
        ("6.12", 48, 43),
        ("7.2", 45, 41),
        ("7.3", 47, 43),
    ] {
        let (all, same, placed, same_line, others) = agreement(release);
        println!("{release}: {same} of {all} problems, {same_line} of {placed} lines");
        for other in &others {
            println!("  {other}");
        }
        if same < problems || same_line < lines {
            short.push(release);
        }
    }
    assert!(short.is_empty(), "{short:?}");
}

#[test]
fn what_tools_put_around_a_log_is_taken_away() {
    let lines = [
        "0: R1=ctx(off=0,imm=0) R10=fp0",
        "; return *value;",
        "0: (b7) r1 = 5                        ; R1_w=5",
        "1: (79) r0 = *(u64 *)(r1 +0)",
        "R1 invalid mem access 'scalar'",
        "processed 2 insns (limit 1000000) max_states_per_insn 0 total_states 0",
    ];
    let with = |prefix: &str| lines.map(|line| format!("{prefix}{line}\n")).concat();
    for text in [
        with(""),
        with("\t"),
        with("[  12.345678] "),
        with("| "),
        with("\x1b[31m"),
        with("2026-01-02T03:04:05Z DEBUG loader: "),
        format!(
            "Error: the BPF_PROG_LOAD syscall failed. Verifier output: {}",
            with("")
        ),
        format!(
            "program p: load program: permission denied:\n{}",
            with("\t")
        ),
        // The beginning is missing, then the end.
        lines[2..].join("\n"),
        lines[..5].join("\n"),
    ] {
        let logs = logs(&text);
        assert_eq!(logs.len(), 1, "{text}");
        let explained = Explained::new(&logs[0], None);
        assert_eq!(
            explained.message, "R1 invalid mem access 'scalar'",
            "{text}"
        );
        let report = explained.report.as_ref().expect("a report");
        assert_eq!(report.problem, "number used as a pointer", "{text}");
        assert_eq!(explained.refused.insn, Some(1));
        assert_eq!(report.held, ["R1 held the number 5"], "{text}");
        assert_eq!(report.labels[1].text, "R1 gets its value here");
    }
}

#[test]
fn a_line_that_nobody_knows_gets_no_advice() {
    let text = "0: (b7) r1 = 5\n1: (79) r0 = *(u64 *)(r1 +0)\nR1 is of no use on Tuesdays\n\
                processed 2 insns (limit 1000000)\n";
    let explained = Explained::new(&logs(text)[0], None);
    assert!(!explained.has_advice());
    let report = explained.report.expect("a report");
    assert_eq!((report.help, report.expected), (None, None));
    assert!(report.rendered.contains("R1 is of no use on Tuesdays"));
    assert!(report.rendered.contains("(79) r0 = *(u64 *)(r1 +0)"));
    assert!(
        report
            .rendered
            .contains("bpflab has no advice for this error line")
    );
    assert!(logs("nothing of a verifier\n").is_empty());
}

#[test]
fn a_listing_of_a_function_is_no_path() {
    let text = "subprog#0: analyzing (depth 0)...\nsubprog#0 on_write:\n  0: (b7) r6 = 1\n  \
                1: (95) exit\nstack use/def subprog#0 on_write (d0,cs0):\n  0: (b7) r6 = 1\n\
                0: R1=ctx() R10=fp0\n; return x; @ a.c:7\n0: (95) exit\nR0 !read_ok\n\
                processed 1 insns (limit 1000000)\n";
    let explained = Explained::new(&logs(text)[0], None);
    let source = explained.refused.source.expect("a line");
    assert_eq!((source.line, explained.refused.insn), (7, Some(0)));
}

#[test]
fn the_path_returns_to_the_branch_that_was_put_aside_last() {
    let text = "0: (b7) r6 = 1\n1: (15) if r1 == 0x0 goto pc+2\n2: (b7) r6 = 2\n3: (95) exit\n\
                from 1 to 4: R6=1 R10=fp0\n4: (79) r0 = *(u64 *)(r6 +0)\n\
                R6 invalid mem access 'inv'\nprocessed 5 insns (limit 1000000)\n";
    let report = Explained::new(&logs(text)[0], None)
        .report
        .expect("a report");
    let made: Vec<_> = report.labels.iter().map(|label| label.place.insn).collect();
    assert_eq!(made, [Some(4), Some(0)], "{}", report.rendered);
}
