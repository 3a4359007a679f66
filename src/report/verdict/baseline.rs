//! Reads the rows of an earlier run from its output.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::row::VerdictRow;
use crate::harness::converts;
use crate::util::base_name;

/// An earlier run's verdict on a program. Its fields are the keys of `"before"` in `--json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Before {
    /// `accept`, `reject`, `unjudged` or `error`.
    pub verdict: String,
    /// The error number; 0 for none, null for an unjudged program.
    pub errno: Option<u16>,
    /// The error line.
    pub message: String,
    /// Instructions that the verifier processed.
    pub processed: Option<u64>,
    /// States that it created.
    pub total_states: Option<u64>,
    /// Microseconds that it took.
    pub time_us: Option<u64>,
    #[serde(skip_serializing, flatten)]
    named: Named,
}

impl Before {
    /// The object's file, as the earlier run named it.
    pub(super) fn object(&self) -> Option<&str> {
        self.named.object.as_deref()
    }
}

/// The program, as the earlier run named it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
struct Named {
    id: Option<String>,
    object: Option<String>,
    program: Option<String>,
}

/// Identifies a program in both runs: the case's id, or the object's file name (without its
/// folder) and the program's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Case(String),
    Program(String, String),
}

impl Key {
    fn new(id: Option<&String>, object: Option<&String>, program: Option<&String>) -> Self {
        if let Some(id) = id {
            return Self::Case(id.clone());
        }
        let text = |text: Option<&String>| text.cloned().unwrap_or_else(|| "?".to_owned());
        let path = text(object);
        Self::Program(base_name(&path).to_owned(), text(program))
    }

    /// The key of a row.
    pub fn of(row: &VerdictRow) -> Self {
        let subject = &row.subject;
        Self::new(
            subject.id.as_ref(),
            subject.object.as_ref(),
            subject.program.as_ref(),
        )
    }

    /// The key of an earlier row.
    pub fn of_earlier(before: &Before) -> Self {
        let named = &before.named;
        Self::new(
            named.id.as_ref(),
            named.object.as_ref(),
            named.program.as_ref(),
        )
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Case(id) => f.write_str(id),
            Self::Program(object, program) => write!(f, "{object}/{program}"),
        }
    }
}

/// The rows of an earlier run, from JSON lines.
#[derive(Debug, Clone, Default)]
pub struct Baseline(pub(super) Vec<Before>);

/// An error in a file of rows.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {text}; --against takes a file written by --json")]
#[non_exhaustive]
pub struct BaselineError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub text: String,
}

converts! {
    BaselineError;
}

impl Baseline {
    /// Reads the output of `--json`.
    ///
    /// # Errors
    /// A line is not a row, or there is none.
    pub fn read(text: &str) -> Result<Self, BaselineError> {
        let error = |line, text| BaselineError { line, text };
        if text.trim().is_empty() {
            return Err(error(1, "the file is empty".to_owned()));
        }
        let mut rows = Vec::new();
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let before: Before =
                serde_json::from_str(line).map_err(|why| error(at + 1, why.to_string()))?;
            // Lines without a verdict are errors about files.
            if !before.verdict.is_empty() {
                rows.push(before);
            }
        }
        Ok(Self(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_former_run_says_why() {
        for (text, line, why) in [
            ("", 1, "the file is empty"),
            ("{}\n{\"verdict\":1}", 2, "invalid type: integer `1`"),
            ("object,verdict\n", 1, "expected value"),
        ] {
            let error = Baseline::read(text).unwrap_err();
            assert_eq!(error.line, line, "{error}");
            assert!(error.text.starts_with(why), "{error}");
        }
        let errors_only = Baseline::read("{\"error\":\"no such file\"}\n").unwrap();
        assert!(errors_only.0.is_empty());
    }
}
