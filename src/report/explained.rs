//! A pasted log, explained.

use std::fmt;

use serde::Serialize;

use crate::explain::{Explained, Pasted};

/// A log and what there is to say about it. Its fields are the keys of `bpflab explain --json`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ExplainedRow {
    /// The file with the log.
    pub file: String,
    /// The line of the file at which the log begins.
    pub log_line: usize,
    /// The object whose program is that of the log; null without one.
    pub object: Option<String>,
    /// The program, if the log or the object names it.
    pub program: Option<String>,
    /// The error number, if the log comes with one.
    pub errno: Option<u16>,
    /// The report and what it is made of.
    #[serde(flatten)]
    pub explained: Explained,
}

impl ExplainedRow {
    /// The row of a log in a file.
    #[must_use]
    pub fn new(file: &str, log: &Pasted, explained: Explained) -> Self {
        Self {
            file: file.to_owned(),
            log_line: log.line,
            object: None,
            program: log.program.clone(),
            errno: log.errno.map(|errno| errno.0),
            explained,
        }
    }

    /// Whether there is advice, and bpflab's own verdict agrees as far as there is one.
    #[must_use]
    pub fn is_explained(&self) -> bool {
        let own = self.explained.own.as_ref();
        self.explained.has_advice() && own.is_none_or(|own| own.same == Some(true))
    }

    /// The row as text, with the escapes of colours.
    #[must_use]
    pub fn styled(&self) -> impl fmt::Display + '_ {
        struct Styled<'r>(&'r ExplainedRow);
        impl fmt::Display for Styled<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.write(f, true)
            }
        }
        Styled(self)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, styled: bool) -> fmt::Result {
        let program = self.program.as_deref().unwrap_or("a program");
        writeln!(f, "{}:{}: log of {program}", self.file, self.log_line)?;
        let Some(report) = &self.explained.report else {
            return writeln!(
                f,
                "no error line: the kernel accepted the program, or the end of the log is missing"
            );
        };
        for line in &self.explained.error {
            writeln!(f, "{line}")?;
        }
        let text = if styled {
            report.styled()
        } else {
            &report.rendered
        };
        writeln!(f, "\n{text}")?;
        let Some(own) = &self.explained.own else {
            return Ok(());
        };
        let model = "bpflab's own verdict, for Linux 6.18";
        match own.same {
            Some(true) => writeln!(f, "{model}: the same error line at the same instruction"),
            None => writeln!(f, "{model}: not judged: {}", own.message),
            Some(false) => {
                write!(f, "{model}, differs: {}", own.verdict)?;
                if let Some(insn) = own.insn {
                    write!(f, " at instruction {insn}")?;
                }
                match own.message.as_str() {
                    "" => writeln!(f),
                    message => writeln!(f, ": {message}"),
                }
            }
        }
    }
}

/// As text without colours.
impl fmt::Display for ExplainedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::logs;

    #[test]
    fn a_log_without_an_end_is_told() {
        let log = &logs("0: (b7) r0 = 0\n1: (95) exit\n")[0];
        let row = ExplainedRow::new("x.log", log, Explained::new(log, None));
        assert!(!row.is_explained());
        assert!(
            row.to_string()
                .contains("x.log:1: log of a program\nno error line")
        );
        assert_eq!(row.errno, None);
    }
}
