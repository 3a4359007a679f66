//! Histograms as bpftrace prints them:
//!
//! ```text
//! [2K, 4K)              40 |@                                                   |
//! [4K, 8K)            1234 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
//! ```
//!
//! Empty buckets before the first and after the last non-empty one are left out. The longest bar
//! belongs to the largest count.

use std::fmt;

use serde::Serialize;

/// Width of a full bar, in characters.
const BAR: usize = 52;
/// Width of the label's column, unless a label is longer.
pub(super) const LABEL: usize = 16;
/// Width of the count's column, unless a count is longer.
pub(super) const COUNT: usize = 8;

/// Which values the buckets of a histogram count, by their index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buckets {
    /// Bucket n counts the values from 2ⁿ to 2ⁿ⁺¹-1; bucket 0 also counts zero. The usual layout of
    /// BPF programs in C.
    Log2,
    /// The layout of bpftrace's `hist()`: negative values, zero, one, 2 to 3, 4 to 7…
    Hist,
    /// The layout of bpftrace's `lhist()`: values below `min`, buckets of `step` values each, and a
    /// last one for all larger values.
    Linear {
        /// The lower bound of the bucket at index 1.
        min: i64,
        /// How many values a bucket counts.
        step: u64,
    },
}

/// A bucket that is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The smallest value that it counts; `None`: it has no lower bound.
    pub low: Option<i128>,
    /// The first value above it; `None`: it has no upper bound.
    pub high: Option<i128>,
    /// How many values it has counted.
    pub count: u64,
}

/// Counts and their buckets. Its [`Display`](fmt::Display) is the chart, a line for each [`Row`]
/// with a newline; empty if all counts are zero.
///
/// ```
/// use bpflab::report::{Buckets, Histogram};
///
/// let chart = Histogram::new(Buckets::Log2, &[0, 0, 3, 0, 6]).to_string();
/// assert!(chart.starts_with("[4, 8)                 3 |@@@@@@@@@@@@@@@@@@@@@@@@@@          "));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Histogram<'a> {
    buckets: Buckets,
    counts: &'a [u64],
}

impl<'a> Histogram<'a> {
    /// The histogram of these counts, one for each bucket from index 0.
    #[must_use]
    pub const fn new(buckets: Buckets, counts: &'a [u64]) -> Self {
        Self { buckets, counts }
    }

    /// The buckets from the first to the last non-empty one.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        let used = |count: &u64| *count != 0;
        let first = self.counts.iter().position(used).unwrap_or(0);
        let end = self
            .counts
            .iter()
            .rposition(used)
            .map_or(0, |last| last + 1);
        let shown = self.counts.iter().enumerate().take(end).skip(first);
        let len = self.counts.len();
        shown.map(move |(index, &count)| self.buckets.row(index, len, count))
    }
}

impl Buckets {
    /// The bucket at an index among `len`, with its count.
    pub(super) fn row(self, index: usize, len: usize, count: u64) -> Row {
        let at = i128::try_from(index).unwrap_or(i128::MAX);
        let (low, high) = match (self, index) {
            (Self::Log2, 0) => (Some(0), Some(2)),
            (Self::Log2, _) => (power_of_two(index), power_of_two(index + 1)),
            (Self::Hist, 0) => (None, Some(0)),
            (Self::Hist, 1) => (Some(0), Some(1)),
            (Self::Hist, _) => (power_of_two(index - 2), power_of_two(index - 1)),
            (Self::Linear { min, step }, _) => {
                let edge =
                    |n: i128| i128::from(min).saturating_add(i128::from(step).saturating_mul(n));
                let low = (index > 0).then(|| edge(at - 1));
                let high = (index == 0 || index + 1 < len).then(|| edge(at));
                (low, high)
            }
        };
        Row { low, high, count }
    }
}

/// 2 to the power of `exponent`; `None` above 2⁶⁴.
fn power_of_two(exponent: usize) -> Option<i128> {
    u32::try_from(exponent)
        .ok()
        .filter(|&exponent| exponent <= u64::BITS)
        .and_then(|exponent| 1i128.checked_shl(exponent))
}

impl Row {
    /// The bucket's bounds as bpftrace writes them: `[0]`, `[1]`, `[4K, 8K)`,
    /// `(..., 0)`, `[100, ...)`.
    #[must_use]
    pub fn label(&self) -> String {
        match (self.low, self.high) {
            (Some(low), Some(high)) if (low, high) == (0, 1) || (low, high) == (1, 2) => {
                format!("[{low}]")
            }
            (Some(low), Some(high)) => format!("[{}, {})", scaled(low), scaled(high)),
            (None, Some(high)) => format!("(..., {})", scaled(high)),
            (Some(low), None) => format!("[{}, ...)", scaled(low)),
            (None, None) => "(..., ...)".to_owned(),
        }
    }
}

/// A number with the largest exact binary suffix: 4096 is `4K`, 4097 is `4097`.
fn scaled(number: i128) -> String {
    let mut number = number;
    let mut suffix = "";
    for next in ["K", "M", "G", "T", "P", "E"] {
        if number == 0 || number % 1024 != 0 {
            break;
        }
        number /= 1024;
        suffix = next;
    }
    format!("{number}{suffix}")
}

/// How many characters of the bar `count` fills, the largest count being `largest`.
fn bar(count: u64, largest: u64) -> usize {
    let filled = u128::from(count) * BAR as u128 / u128::from(largest.max(1));
    usize::try_from(filled).unwrap_or(BAR).min(BAR)
}

impl fmt::Display for Histogram<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<(String, u64)> = self.rows().map(|row| (row.label(), row.count)).collect();
        let largest = rows.iter().map(|row| row.1).max().unwrap_or(0);
        // Even a label that is wider than its column is followed by a space.
        let widest = rows.iter().map(|row| row.0.len() + 1).max().unwrap_or(0);
        let label_width = widest.max(LABEL);
        let count_width = largest.to_string().len().max(COUNT);
        for (label, count) in rows {
            let bar = "@".repeat(bar(count, largest));
            writeln!(
                f,
                "{label:<label_width$}{count:>count_width$} |{bar:<BAR$}|"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(buckets: Buckets, counts: &[u64]) -> Vec<String> {
        let histogram = Histogram::new(buckets, counts);
        histogram.rows().map(|row| row.label()).collect()
    }

    #[test]
    fn the_chart_is_bpftraces() {
        let mut counts = [0; 64];
        counts[9] = 1;
        counts[12] = 1234;
        counts[13] = 617;
        assert_eq!(
            Histogram::new(Buckets::Log2, &counts).to_string(),
            "\
[512, 1K)              1 |                                                    |
[1K, 2K)               0 |                                                    |
[2K, 4K)               0 |                                                    |
[4K, 8K)            1234 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
[8K, 16K)            617 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
"
        );
    }

    #[test]
    fn each_layout_has_its_labels() {
        assert_eq!(
            labels(Buckets::Log2, &[1; 4]),
            ["[0, 2)", "[2, 4)", "[4, 8)", "[8, 16)"]
        );
        assert_eq!(
            labels(Buckets::Hist, &[1; 6]),
            ["(..., 0)", "[0]", "[1]", "[2, 4)", "[4, 8)", "[8, 16)"]
        );
        assert_eq!(
            labels(
                Buckets::Linear {
                    min: -100,
                    step: 100
                },
                &[1; 4]
            ),
            ["(..., -100)", "[-100, 0)", "[0, 100)", "[100, ...)"]
        );
        assert_eq!(
            labels(Buckets::Linear { min: 0, step: 512 }, &[0, 1, 1, 0]),
            ["[0, 512)", "[512, 1K)"]
        );
    }

    #[test]
    fn suffixes_reach_the_last_of_64_slots() {
        let mut counts = [0; 64];
        for slot in [10, 20, 30, 40, 50, 60, 63] {
            counts[slot] = 1;
        }
        let all = labels(Buckets::Log2, &counts);
        let picked: Vec<_> = [0, 10, 20, 30, 40, 50, 53]
            .iter()
            .map(|&at| all[at].as_str())
            .collect();
        assert_eq!(
            picked,
            [
                "[1K, 2K)",
                "[1M, 2M)",
                "[1G, 2G)",
                "[1T, 2T)",
                "[1P, 2P)",
                "[1E, 2E)",
                "[8E, 16E)"
            ]
        );
    }

    #[test]
    fn nothing_counted_is_nothing_shown() {
        assert_eq!(Histogram::new(Buckets::Log2, &[0; 64]).to_string(), "");
        assert_eq!(Histogram::new(Buckets::Hist, &[]).to_string(), "");
    }

    #[test]
    fn columns_grow_with_what_they_hold() {
        let counts = [0, u64::MAX, 1];
        let chart = Histogram::new(
            Buckets::Linear {
                min: i64::MIN,
                step: u64::MAX,
            },
            &counts,
        )
        .to_string();
        let ends: Vec<_> = chart.lines().map(|line| line.find('|')).collect();
        assert_eq!(ends.len(), 2);
        assert_eq!(ends[0], ends[1]);
        assert!(chart.contains(" 18446744073709551615 |@"), "{chart}");
    }

    proptest! {
        #[test]
        fn bars_are_in_proportion(counts in proptest::collection::vec(any::<u64>(), 0..70)) {
            let largest = counts.iter().copied().max().unwrap_or(0);
            let chart = Histogram::new(Buckets::Hist, &counts).to_string();
            for (line, row) in chart.lines().zip(Histogram::new(Buckets::Hist, &counts).rows()) {
                let filled = line.matches('@').count();
                prop_assert_eq!(filled == BAR, row.count == largest);
                prop_assert!(filled as u128 * u128::from(largest) <= u128::from(row.count) * BAR as u128);
            }
        }
    }
}
