//! Results in the Test Anything Protocol, version 14 (<https://testanything.org/>).

use std::fmt::Write as _;

use super::rows::{Status, TestRow};

/// The lines of a test; `number` counts from 1.
pub(super) fn lines(number: usize, row: &TestRow) -> String {
    let not = match row.status {
        Status::Passed | Status::Skipped => "",
        Status::Failed | Status::Error => "not ",
    };
    let skip = match row.status {
        Status::Skipped => format!(" # SKIP {}", escaped(&row.skip_text())),
        _ => String::new(),
    };
    let name = escaped(&format!("{}: {}", row.file, row.test));
    let mut text = format!("{not}ok {number} - {name}{skip}\n");
    if !not.is_empty() {
        text.push_str("  ---\n  message: |\n");
        for line in row.failure_text().lines() {
            let _ = writeln!(text, "    {line}");
        }
        text.push_str("  ...\n");
    }
    text
}

/// A description, in which `#` would begin a directive.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('#', "\\#")
        .replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_a_message() {
        let mut row = TestRow::new("a.test.yaml", "slot #1");
        assert_eq!(lines(1, &row), "ok 1 - a.test.yaml: slot \\#1\n");
        row.fail(
            Status::Failed,
            Some("interp"),
            "x: expected 1,\nfound 2".to_owned(),
        );
        row.engines.push("interp");
        assert_eq!(
            lines(2, &row),
            "not ok 2 - a.test.yaml: slot \\#1\n  ---\n  message: |\n    x: expected 1,\n    \
             found 2\n  ...\n"
        );
    }
}
