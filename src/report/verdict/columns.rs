//! The columns of a row: one list for sorting, filtering, CSV and comparison.

use std::cmp::Ordering;
use std::fmt;

use super::row::VerdictRow;

/// The value of a row in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell<'r> {
    /// Text, empty if there is none.
    Text(&'r str),
    /// A number, if there is one.
    Number(Option<u64>),
}

impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(Some(number)) => number.fmt(f),
            Self::Number(None) => Ok(()),
        }
    }
}

impl Cell<'_> {
    /// Texts alphabetically, numbers by size, no number first.
    pub fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            (Self::Number(one), Self::Number(other)) => one.cmp(other),
            (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Number(_)) => Ordering::Greater,
        }
    }
}

/// A column.
pub(super) struct Column {
    /// Its name, the key of `--json`.
    pub name: &'static str,
    /// Its names in `veristat`.
    pub aliases: &'static [&'static str],
    /// Whether it sorts in descending order by default, as counts do.
    pub descending: bool,
    /// Returns the value of a row.
    pub cell: for<'r> fn(&'r VerdictRow) -> Cell<'r>,
}

impl fmt::Debug for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

fn text(text: Option<&String>) -> Cell<'_> {
    Cell::Text(text.map_or("", String::as_str))
}

/// All columns, in the order of CSV.
#[rustfmt::skip]
pub(super) const COLUMNS: &[Column] = &[
    Column { name: "id", aliases: &[], descending: false,
        cell: |row| text(row.subject.id.as_ref()) },
    Column { name: "object", aliases: &["file", "file_name", "filename"], descending: false,
        cell: |row| text(row.subject.object.as_ref()) },
    Column { name: "program", aliases: &["prog", "prog_name", "progname"], descending: false,
        cell: |row| text(row.subject.program.as_ref()) },
    Column { name: "section", aliases: &[], descending: false,
        cell: |row| text(row.subject.section.as_ref()) },
    Column { name: "prog_type", aliases: &["type"], descending: false,
        cell: |row| Cell::Text(row.subject.prog_type.unwrap_or("")) },
    Column { name: "verdict", aliases: &[], descending: false,
        cell: |row| Cell::Text(row.verdict) },
    Column { name: "errno", aliases: &[], descending: false,
        cell: |row| Cell::Number(row.errno.map(u64::from)) },
    Column { name: "message", aliases: &[], descending: false,
        cell: |row| Cell::Text(&row.message) },
    Column { name: "insn", aliases: &[], descending: false,
        cell: |row| Cell::Number(row.refused.as_ref().and_then(|at| at.insn).map(u64::from)) },
    Column { name: "processed", aliases: &["total_insns", "insns"], descending: true,
        cell: |row| Cell::Number(row.processed) },
    Column { name: "total_states", aliases: &["states"], descending: true,
        cell: |row| Cell::Number(row.total_states) },
    Column { name: "peak_states", aliases: &[], descending: true,
        cell: |row| Cell::Number(row.peak_states) },
    Column { name: "time_us", aliases: &["duration", "dur", "time"], descending: true,
        cell: |row| Cell::Number(row.time_us) },
];

/// The column with this name, bpflab's or `veristat`'s.
pub(super) fn column(name: &str) -> Option<&'static Column> {
    COLUMNS
        .iter()
        .find(|column| column.name == name || column.aliases.contains(&name))
}

/// The names of all columns, for messages.
pub(super) fn names() -> String {
    let names: Vec<_> = COLUMNS.iter().map(|column| column.name).collect();
    names.join(", ")
}
