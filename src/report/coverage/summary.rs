//! The table of files, and the totals.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::share::Share;
use crate::coverage::{Source, SourceFile, State};
use crate::report::Table;

/// A file, or all of them. Its fields are the keys of `bpflab cover --json`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CoverageRow<'s> {
    /// The file, as the compiler was given it; none for the sum of all.
    pub file: Option<&'s str>,
    /// The lines with instructions.
    pub lines: Share,
    /// The sides of conditional jumps.
    pub branches: Share,
    /// The functions that were compiled on their own.
    pub functions: Share,
    /// The numbers of the missed lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed_lines: Option<Vec<u32>>,
    /// The numbers of the dead lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_lines: Option<Vec<u32>>,
}

impl<'s> CoverageRow<'s> {
    fn of(name: &'s str, file: &SourceFile) -> Self {
        let lines = file.lines.values();
        let branches = lines.clone().flat_map(|line| line.branches.values());
        let numbers = |state| {
            let lines = file.lines.iter();
            let those = lines.filter(|(_, line)| line.tally.state() == state);
            Some(those.map(|(number, _)| *number).collect())
        };
        Self {
            file: Some(name),
            lines: Share::of(lines.map(|line| line.tally)),
            branches: Share::of(branches.flatten().copied()),
            functions: Share::of(file.functions.values().copied()),
            missed_lines: numbers(State::Missed),
            dead_lines: numbers(State::Dead),
        }
    }

    fn cells(&self) -> [String; 6] {
        let state = |of: fn(Share) -> u64| match of(self.lines) {
            0 => String::new(),
            count => count.to_string(),
        };
        [
            self.file.unwrap_or("total").to_owned(),
            self.lines.to_string(),
            self.branches.to_string(),
            self.functions.to_string(),
            state(|lines| lines.dead),
            state(|lines| lines.not_measured),
        ]
    }
}

/// The files with their sums.
#[derive(Debug, Clone)]
pub struct CoverageReport<'s> {
    files: Vec<CoverageRow<'s>>,
    total: CoverageRow<'s>,
    shows_missing: bool,
}

impl<'s> CoverageReport<'s> {
    /// The report; with the numbers of the missed lines if `shows_missing` is set.
    #[must_use]
    pub fn new(source: &'s Source, shows_missing: bool) -> Self {
        let files = source.files.iter();
        let files: Vec<_> = files
            .map(|(name, file)| CoverageRow::of(name, file))
            .collect();
        let mut total = CoverageRow::default();
        for file in &files {
            total.lines.add(file.lines);
            total.branches.add(file.branches);
            total.functions.add(file.functions);
        }
        Self {
            files,
            total,
            shows_missing,
        }
    }

    /// The files, and the sum of all.
    pub fn rows(&self) -> impl Iterator<Item = &CoverageRow<'s>> {
        self.files.iter().chain([&self.total])
    }

    /// The sum of all files.
    #[must_use]
    pub const fn total(&self) -> &CoverageRow<'s> {
        &self.total
    }

    /// Why the share of covered lines is too small, if it is.
    #[must_use]
    pub fn is_under(&self, limit: FailUnder) -> Option<String> {
        let lines = self.total.lines;
        let share = lines.hundredths().unwrap_or(10_000);
        (share < limit.0).then(|| {
            let limit = f64::from(limit.0) / 100.0;
            format!("line coverage is {lines}, less than {limit}% (--fail-under-lines)")
        })
    }
}

/// The share of lines that must be covered, in hundredths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailUnder(u32);

impl FromStr for FailUnder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let problem = || format!("`{text}` is not a percentage: give a number from 0 to 100");
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || fraction.len() > 2 || !digits(whole) || !digits(fraction) {
            return Err(problem());
        }
        let hundredths: u32 = format!("{whole}{fraction:0<2}")
            .parse()
            .map_err(|_| problem())?;
        match hundredths {
            0..=10_000 => Ok(Self(hundredths)),
            _ => Err(problem()),
        }
    }
}

impl fmt::Display for CoverageReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::default().flush().numbers(&[1, 2, 3, 4, 5]);
        let heading = [
            "file",
            "lines",
            "branches",
            "functions",
            "dead",
            "not measured",
        ];
        // Columns for states that no line has are left out.
        let columns = match self.total.lines {
            Share {
                not_measured: 1.., ..
            } => 6,
            Share { dead: 1.., .. } => 5,
            _ => 4,
        };
        table.row(heading.into_iter().take(columns));
        for row in self.rows() {
            table.row(row.cells().into_iter().take(columns));
        }
        table.fmt(f)?;
        if !self.shows_missing || self.total.lines.missed == 0 {
            return Ok(());
        }
        writeln!(f, "\nmissed lines:")?;
        for row in &self.files {
            if let Some((file, missed)) = row.file.zip(row.missed_lines.as_ref())
                && !missed.is_empty()
            {
                writeln!(f, "{file}: {}", ranges(missed))?;
            }
        }
        Ok(())
    }
}

/// Ascending numbers with those that follow each other joined: `3, 5-7`.
fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|one, next| one + 1 == *next);
    let texts = runs.map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        [one] => one.to_string(),
        [] => String::new(),
    });
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_exact() {
        assert_eq!("80".parse(), Ok(FailUnder(8000)));
        assert_eq!("66.7".parse(), Ok(FailUnder(6670)));
        assert_eq!("100.00".parse(), Ok(FailUnder(10_000)));
        for wrong in ["", "x", "-1", "100.01", "1.234", ".5", "+5", "1e2"] {
            assert!(wrong.parse::<FailUnder>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_that_follow_each_other_are_joined() {
        assert_eq!(ranges(&[3, 5, 6, 7, 9]), "3, 5-7, 9");
    }
}
