//! The costliest lines of a program: `bpflab bench --lines`.

use std::fmt;

use serde::Serialize;

use super::table::Table;

/// A line of C. Its fields are keys of `bpflab bench --json`.
#[derive(Debug, Clone, Serialize)]
pub struct LineRow {
    /// `line`.
    kind: &'static str,
    /// The object's file.
    object: String,
    /// The program that ran; after tail calls, its targets' lines count, too.
    program: String,
    /// The source file; none for instructions without line information.
    source: Option<String>,
    /// The line's number, from 1.
    line: Option<u32>,
    /// The line's text, without indentation; may be empty.
    text: String,
    /// Instructions of the line that a run executed.
    pub insns: u64,
    /// The same in percent of all instructions of the run.
    percent: f64,
}

impl LineRow {
    /// A line at a place, with its executed instructions and those of the whole run.
    #[must_use]
    pub fn new(
        object: &str,
        program: &str,
        (source, line): (Option<String>, Option<u32>),
        text: String,
        (insns, total): (u64, u64),
    ) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a share needs no 64 bits")]
        let percent = insns as f64 / total.max(1) as f64 * 100.0;
        Self {
            kind: "line",
            object: object.to_owned(),
            program: program.to_owned(),
            source,
            line,
            text,
            insns,
            percent: (percent * 10.0).round() / 10.0,
        }
    }

    /// The line's place in the source.
    #[must_use]
    pub fn place(&self) -> Option<(&str, u32)> {
        Some((self.source.as_deref()?, self.line?))
    }
}

/// The first of a program's lines, as a table.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct LinesTable<'a> {
    /// The rows, the costliest first.
    pub rows: &'a [LineRow],
    /// How many of them are printed.
    pub most: usize,
}

impl fmt::Display for LinesTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  costliest lines, by the instructions of one run:")?;
        let mut table = Table::default().numbers(&[0, 1]);
        for row in self.rows.iter().take(self.most) {
            let place = match row.place() {
                Some((source, line)) => format!("{source}:{line}"),
                None => "without line information".to_owned(),
            };
            let percent = format!("{:.1}%", row.percent);
            table.row(vec![
                percent,
                row.insns.to_string(),
                place,
                row.text.clone(),
            ]);
        }
        write!(f, "{table}")?;
        let rest = self.rows.get(self.most..).unwrap_or_default();
        if !rest.is_empty() {
            let insns: u64 = rest.iter().map(|row| row.insns).sum();
            let (lines, s) = (rest.len(), if rest.len() == 1 { "" } else { "s" });
            writeln!(f, "  {lines} more line{s} with {insns} instructions")?;
        }
        Ok(())
    }
}
