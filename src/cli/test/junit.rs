//! Results as XML of JUnit, which CI services read.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::rows::{Status, TestRow};

/// The document: one test suite for each file, in the order of the rows.
pub(super) fn document(rows: &[TestRow]) -> Result<String, String> {
    let mut report = Report::new("bpflab test");
    for of_file in rows.chunk_by(|one, next| one.file == next.file) {
        let file = of_file.first().map(|row| row.file.as_str());
        let mut suite = TestSuite::new(file.unwrap_or_default());
        suite.add_test_cases(of_file.iter().map(case));
        suite.set_time(seconds(of_file));
        report.add_test_suite(suite);
    }
    report.set_time(seconds(rows));
    report.to_string().map_err(|error| error.to_string())
}

fn seconds(rows: &[TestRow]) -> Duration {
    Duration::from_secs_f64(rows.iter().map(|row| row.seconds).sum())
}

fn case(row: &TestRow) -> TestCase {
    let kind = match row.status {
        Status::Passed | Status::Skipped => None,
        Status::Failed => Some(NonSuccessKind::Failure),
        Status::Error => Some(NonSuccessKind::Error),
    };
    let passed = || match row.status {
        Status::Skipped => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(row.skip_text());
            status
        }
        _ => TestCaseStatus::success(),
    };
    let status = kind.map_or_else(passed, |kind| {
        let text = row.failure_text();
        let mut status = TestCaseStatus::non_success(kind);
        status.set_message(text.lines().next().unwrap_or_default());
        status.set_description(text);
        status
    });
    let mut case = TestCase::new(row.test.as_str(), status);
    case.set_classname(row.file.as_str());
    case.set_time(Duration::from_secs_f64(row.seconds));
    case
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_suite() {
        let mut failed = TestRow::new("a.test.yaml", "1 < 2 & 3");
        failed.fail(
            Status::Failed,
            Some("interp"),
            "x: expected 1\nmore".to_owned(),
        );
        failed.engines.push("interp");
        let mut broken = TestRow::new("b.test.yaml", "y");
        broken.fail(Status::Error, None, "no map 'z'".to_owned());
        let rows = [TestRow::new("a.test.yaml", "x"), failed, broken];
        let text = document(&rows).unwrap();
        for part in [
            "<testsuites name=\"bpflab test\" tests=\"3\" skipped=\"0\" failures=\"1\" errors=\"1\"",
            "<testsuite name=\"a.test.yaml\" tests=\"2\"",
            "<testcase name=\"1 &lt; 2 &amp; 3\" classname=\"a.test.yaml\"",
            "<failure message=\"x: expected 1\">x: expected 1\nmore</failure>",
            "<error message=\"no map &apos;z&apos;\">",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
