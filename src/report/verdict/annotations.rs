//! Findings as GitHub's workflow commands, and as GitLab's code quality report.

use std::collections::HashMap;
use std::fmt;

use serde_json::{Value, json};

use super::finding::{Finding, Gravity};

/// Workflow commands of GitHub Actions, one a line: `::error file=…,line=…::message`.
#[derive(Debug, Clone, Copy)]
pub struct GithubAnnotations<'f>(pub &'f [Finding]);

impl fmt::Display for GithubAnnotations<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in self.0 {
            let command = match finding.gravity {
                Gravity::Error => "error",
                Gravity::Warning => "warning",
            };
            write!(f, "::{command} file={}", property(&finding.file))?;
            if let Some(line) = finding.line {
                write!(f, ",line={line}")?;
            }
            if let Some(column) = finding.column {
                write!(f, ",col={column}")?;
            }
            let title = property(&finding.about);
            writeln!(f, ",title={title}::{}", data(&finding.message))?;
        }
        Ok(())
    }
}

/// A message: a command ends with its line.
fn data(text: &str) -> String {
    let text = text.replace('%', "%25");
    text.replace('\r', "%0D").replace('\n', "%0A")
}

/// A property's value: colons and commas separate properties.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// GitLab's code quality report.
#[must_use]
pub fn code_quality(findings: &[Finding]) -> Value {
    let mut seen = HashMap::<(&str, &str, &str), usize>::new();
    let issues = findings.iter().map(|finding| {
        let key = (&*finding.file, &*finding.program, &*finding.rule);
        let times = seen.entry(key).or_default();
        *times += 1;
        // GitLab compares branches by it, so it holds no line and no count.
        let mut fingerprint = format!("{}:{}:{}", key.0, key.1, key.2);
        if *times > 1 {
            fingerprint += &format!(":{times}");
        }
        json!({
            "description": finding.message,
            "check_name": finding.rule,
            "fingerprint": fingerprint,
            "severity": match finding.gravity {
                Gravity::Error => "critical",
                Gravity::Warning => "minor",
            },
            // A place needs a line.
            "location": {
                "path": finding.file,
                "lines": { "begin": finding.line.unwrap_or(1) },
            },
        })
    });
    Value::Array(issues.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding() -> Finding {
        Finding {
            rule: "memory-safety".to_owned(),
            about: "Memory Safety".to_owned(),
            gravity: Gravity::Error,
            message: "p: 100%\nhelp: test it: a, b".to_owned(),
            program: "p".to_owned(),
            file: "a,b:c.c".to_owned(),
            line: Some(21),
            column: Some(9),
            text: None,
        }
    }

    #[test]
    fn a_command_is_one_line() {
        let mut other = finding();
        (other.line, other.column) = (None, None);
        other.gravity = Gravity::Warning;
        assert_eq!(
            GithubAnnotations(&[finding(), other]).to_string(),
            "::error file=a%2Cb%3Ac.c,line=21,col=9,title=Memory Safety::p: 100%25%0Ahelp: test it: a, b
::warning file=a%2Cb%3Ac.c,title=Memory Safety::p: 100%25%0Ahelp: test it: a, b
"
        );
    }

    #[test]
    fn fingerprints_differ_and_do_not_depend_on_the_line() {
        let mut moved = finding();
        moved.line = Some(22);
        let print = |findings: &[Finding], at: usize| {
            let report = code_quality(findings);
            report[at]["fingerprint"].as_str().unwrap().to_owned()
        };
        assert_eq!(print(&[finding()], 0), print(&[moved], 0));
        let twice = [finding(), finding()];
        assert_ne!(print(&twice, 0), print(&twice, 1));
        assert_eq!(code_quality(&twice)[0]["location"]["lines"]["begin"], 21);
    }
}
