//! How many lines, branches or functions are covered.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::coverage::{State, Tally};

/// How many of some things are in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Covered ones.
    pub covered: u64,
    /// Missed ones.
    pub missed: u64,
    /// Dead ones.
    pub dead: u64,
    /// Those of programs that were not measured.
    pub not_measured: u64,
}

/// Its fields are those of cargo-llvm-cov's JSON, and the other states.
#[derive(Serialize)]
struct ShareFields {
    count: u64,
    covered: u64,
    percent: Option<f64>,
    dead: u64,
    not_measured: u64,
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = ShareFields {
            count: self.count(),
            covered: self.covered,
            percent: self.percent(),
            dead: self.dead,
            not_measured: self.not_measured,
        };
        fields.serialize(serializer)
    }
}

impl Share {
    /// The states of these.
    pub(super) fn of(tallies: impl Iterator<Item = Tally>) -> Self {
        let mut share = Self::default();
        for tally in tallies {
            *match tally.state() {
                State::Covered => &mut share.covered,
                State::Missed => &mut share.missed,
                State::Dead => &mut share.dead,
                State::NotMeasured => &mut share.not_measured,
            } += 1;
        }
        share
    }

    /// Adds those of another file.
    pub(super) fn add(&mut self, other: Self) {
        self.covered += other.covered;
        self.missed += other.missed;
        self.dead += other.dead;
        self.not_measured += other.not_measured;
    }

    /// Those that runs can execute and that were measured.
    pub(super) const fn count(self) -> u64 {
        self.covered + self.missed
    }

    /// The covered ones of [`count`](Self::count), in hundredths of a percent, rounded down: only
    /// complete coverage is 100 %. `None` if there are none.
    pub(super) fn hundredths(self) -> Option<u32> {
        let share = (u128::from(self.covered) * 10_000).checked_div(self.count().into())?;
        u32::try_from(share).ok()
    }

    /// The same in percent.
    pub(super) fn percent(self) -> Option<f64> {
        Some(f64::from(self.hundredths()?) / 100.0)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.percent() {
            Some(percent) => write!(f, "{}/{} {percent:.2}%", self.covered, self.count()),
            None => f.write_str("-"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_coverage_is_a_hundred_percent() {
        let share = |covered, missed| Share {
            covered,
            missed,
            ..Share::default()
        };
        assert_eq!(share(99_999, 1).to_string(), "99999/100000 99.99%");
        assert_eq!(share(2, 0).to_string(), "2/2 100.00%");
        assert_eq!(share(0, 0).to_string(), "-");
    }
}
