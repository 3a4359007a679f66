//! Reads the rows of an earlier run from its output.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::csv::records;
use super::row::{Subject, VerdictRow};

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
    /// The row that filters are applied to.
    pub(super) fn row(&self) -> VerdictRow {
        let words = ["accept", "reject", "unjudged", "error"];
        let verdict = words.into_iter().find(|word| *word == self.verdict);
        VerdictRow {
            verdict: verdict.unwrap_or_default(),
            errno: self.errno,
            message: self.message.clone(),
            processed: self.processed,
            total_states: self.total_states,
            time_us: self.time_us,
            ..VerdictRow::of(Subject {
                id: self.named.id.clone(),
                object: self.named.object.clone(),
                program: self.named.program.clone(),
                ..Subject::default()
            })
        }
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
        let file = path.rsplit('/').next().unwrap_or_default();
        Self::Program(file.to_owned(), text(program))
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

/// The rows of an earlier run, from JSON lines or CSV.
#[derive(Debug, Clone, Default)]
pub struct Baseline(pub(super) Vec<Before>);

/// An error in a file of rows.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {text}; --compare takes a file written by --json or --csv")]
pub struct BaselineError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub text: String,
}

impl Baseline {
    /// Reads the output of `--json` or `--csv`.
    ///
    /// # Errors
    /// A line is neither.
    pub fn read(text: &str) -> Result<Self, BaselineError> {
        if text.trim_start().starts_with('{') {
            Self::read_json(text)
        } else {
            Self::read_csv(text)
        }
    }

    fn read_json(text: &str) -> Result<Self, BaselineError> {
        let mut rows = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let error = |error: serde_json::Error| BaselineError {
                line: at + 1,
                text: error.to_string(),
            };
            if line.trim().is_empty() {
                continue;
            }
            let before: Before = serde_json::from_str(line).map_err(error)?;
            // Lines without a verdict are errors about files.
            if !before.verdict.is_empty() {
                rows.push(before);
            }
        }
        Ok(Self(rows))
    }

    fn read_csv(text: &str) -> Result<Self, BaselineError> {
        let mut records = records(text).into_iter();
        let names = records.next().unwrap_or_default();
        if !names.iter().any(|name| name == "verdict") {
            let text = "neither JSON nor a line of column names with 'verdict'".to_owned();
            return Err(BaselineError { line: 1, text });
        }
        let mut rows = Vec::new();
        for (at, record) in records.enumerate() {
            let field = |name: &str| {
                let fields = names.iter().zip(&record);
                let mut named = fields.filter(|(column, _)| *column == name);
                let field = named.next().map(|(_, field)| field.clone());
                field.filter(|field| !field.is_empty())
            };
            let number = |name: &str| match field(name) {
                None => Ok(None),
                Some(text) => text.parse().map(Some).map_err(|_| BaselineError {
                    line: at + 2,
                    text: format!("column '{name}': invalid number '{text}'"),
                }),
            };
            rows.push(Before {
                named: Named {
                    id: field("id"),
                    object: field("object"),
                    program: field("program"),
                },
                verdict: field("verdict").unwrap_or_default(),
                errno: number("errno")?.and_then(|errno: u64| u16::try_from(errno).ok()),
                message: field("message").unwrap_or_default(),
                processed: number("processed")?,
                total_states: number("total_states")?,
                time_us: number("time_us")?,
            });
        }
        Ok(Self(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_former_run_says_why() {
        assert!(Baseline::read("{\"verdict\":1}").is_err());
        let error = Baseline::read("a,b\n1,2\n").unwrap_err().to_string();
        assert!(error.starts_with("line 1: neither JSON nor"), "{error}");
        let error = Baseline::read("verdict,errno\nreject,x\n").unwrap_err();
        assert_eq!(error.line, 2);
    }
}
