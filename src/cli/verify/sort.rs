//! `--sort`: the order of the rows.

use std::cmp::Reverse;

use clap::ValueEnum;

use crate::report::VerdictRow;

/// A column to sort by, as the table names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum SortKey {
    /// The verdict.
    Verdict,
    /// The object's file.
    Object,
    /// The program's name, or the case's id.
    Program,
    /// The program type.
    Type,
    /// Instructions that the verifier processed.
    Insns,
    /// States that it created.
    States,
    /// Microseconds that it took.
    Us,
    /// The error line.
    Message,
}

impl SortKey {
    /// Sorts rows; equal rows keep their order, and rows without a count are last.
    pub(super) fn sort(self, rows: &mut [VerdictRow]) {
        match self {
            Self::Verdict => rows.sort_by_key(|row| row.verdict),
            Self::Object => rows.sort_by(|a, b| a.subject.object.cmp(&b.subject.object)),
            Self::Program => rows.sort_by(|a, b| a.subject.name().cmp(b.subject.name())),
            Self::Type => rows.sort_by_key(|row| row.subject.prog_type),
            Self::Insns => rows.sort_by_key(|row| Reverse(row.processed)),
            Self::States => rows.sort_by_key(|row| Reverse(row.total_states)),
            Self::Us => rows.sort_by_key(|row| Reverse(row.time_us)),
            Self::Message => rows.sort_by(|a, b| a.message.cmp(&b.message)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_downwards_and_names_upwards() {
        let mut rows = [
            ("reject", Some(1)),
            ("accept", None),
            ("accept", Some(7)),
            ("accept", Some(30)),
        ]
        .map(|(verdict, processed)| VerdictRow {
            verdict,
            processed,
            ..VerdictRow::default()
        });
        let mut order = |key: SortKey| {
            key.sort(&mut rows);
            rows.each_ref().map(|row| row.processed)
        };
        assert_eq!(order(SortKey::Insns), [Some(30), Some(7), Some(1), None]);
        assert_eq!(order(SortKey::Verdict), [Some(30), Some(7), None, Some(1)]);
    }
}
