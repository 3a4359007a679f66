//! The lines of a file with counts: JSON, one value a line.

use serde::{Deserialize, Serialize};

use super::unit::Unit;

/// The environment variable that names the folder for the files, and switches the measurement on.
pub const VARIABLE: &str = "BPFLAB_COVERAGE";

/// The ending of the files.
pub(super) const EXTENSION: &str = "bpfcov";

/// The version of the format, in the first line.
pub(super) const VERSION: u32 = 1;

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record {
    /// The first line: the version of the format.
    BpflabCoverage(u32),
    /// A program; the first one of a file has number 0, and so on.
    Program(Unit),
    /// Counts of a program, in addition to those before.
    Counts {
        /// The program's number.
        program: u32,
        /// Consecutive slots with the same count: first slot, number of slots, count.
        executed: Vec<(u32, u32, u64)>,
        /// How often conditional jumps were taken.
        taken: Vec<(u32, u32, u64)>,
    },
}

/// Counts by slot as runs of equal counts, without zeros.
pub(super) fn runs(counts: &[u64]) -> Vec<(u32, u32, u64)> {
    let mut runs = Vec::new();
    let mut at = 0u32;
    for run in counts.chunk_by(|one, next| one == next) {
        let len = u32::try_from(run.len()).unwrap_or(u32::MAX);
        if let Some(count) = run.first().filter(|count| **count > 0) {
            runs.push((at, len, *count));
        }
        at = at.saturating_add(len);
    }
    runs
}

/// Adds runs of equal counts to counts by slot; whether all are within the program.
pub(super) fn add_runs(counts: &mut [u64], runs: &[(u32, u32, u64)]) -> bool {
    for (at, len, count) in runs {
        let (at, len) = (*at as usize, *len as usize);
        let Some(slots) = at.checked_add(len).and_then(|end| counts.get_mut(at..end)) else {
            return false;
        };
        for slot in slots {
            *slot = slot.saturating_add(*count);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_give_the_counts_again() {
        let counts = [3, 3, 0, 7, 3, 3, 3, 0];
        let found = runs(&counts);
        assert_eq!(found, [(0, 2, 3), (3, 1, 7), (4, 3, 3)]);
        let mut again = [1; 8];
        assert!(add_runs(&mut again, &found));
        assert_eq!(again, counts.map(|count| count + 1));
        assert!(!add_runs(&mut [0; 6], &found), "beyond the program's end");
    }
}
