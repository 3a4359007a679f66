//! Heatmaps: histograms side by side, time from left to right, values from the bottom up; darker
//! cells have larger counts:
//!
//! ```text
//! [512, 1K)             41 |@%=  .@|
//! [256, 512)             7 |. ::   |
//!                    second 3600 … 3606, @ = 20
//! ```

use std::fmt;

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use super::histogram::{Buckets, COUNT, LABEL, Row};

/// The most columns that are shown; for more times each column is several.
const COLUMNS: u64 = 64;
/// Shades from zero to the largest count.
const SHADES: &[u8] = b" .:-=+*#%@";

/// Counts by time and value. Its [`Display`](fmt::Display) is the chart; empty if all counts are
/// zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heatmap {
    /// The name of the times.
    name: String,
    /// The first column's time.
    first: u64,
    /// The last time with a count.
    last: u64,
    /// How many times a column is.
    step: u64,
    rows: Vec<HeatRow>,
}

/// The counts of one bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct HeatRow {
    #[serde(flatten)]
    bucket: Row,
    counts: Vec<u64>,
}

impl Heatmap {
    /// The heatmap of these cells: a time, a bucket's index, and a count. `name` is the name of the
    /// times.
    #[must_use]
    pub fn new(buckets: Buckets, name: &str, cells: Vec<(u64, usize, u64)>) -> Self {
        let used: Vec<_> = cells
            .into_iter()
            .filter(|(_, _, count)| *count > 0)
            .collect();
        let times = || used.iter().map(|(time, _, _)| *time);
        let slots = || used.iter().map(|(_, slot, _)| *slot);
        let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        let step = (last - first) / COLUMNS + 1;
        let columns = usize::try_from((last - first) / step).unwrap_or(0) + 1;
        let (low, high) = (slots().min().unwrap_or(0), slots().max().unwrap_or(0));
        let mut rows: Vec<_> = (low..=high)
            .take(if used.is_empty() { 0 } else { usize::MAX })
            .map(|slot| HeatRow {
                // One more bucket: the last non-empty one still has an upper bound.
                bucket: buckets.row(slot, high + 2, 0),
                counts: vec![0; columns],
            })
            .collect();
        for (time, slot, count) in used {
            let column = usize::try_from((time - first) / step).unwrap_or(usize::MAX);
            let row = rows.get_mut(slot - low);
            if let Some(cell) = row.and_then(|row| row.counts.get_mut(column)) {
                *cell = cell.saturating_add(count);
            }
        }
        for row in &mut rows {
            row.bucket.count = row
                .counts
                .iter()
                .fold(0, |sum: u64, count| sum.saturating_add(*count));
        }
        Self {
            name: name.to_owned(),
            first,
            last,
            step,
            rows,
        }
    }

    /// The buckets from the lowest, each with its counts by column.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&Row, &[u64])> {
        self.rows.iter().map(|row| (&row.bucket, &row.counts[..]))
    }

    /// What the columns and the shades are; `darkest` names the shade of the largest count.
    pub(super) fn caption(&self, darkest: &str) -> String {
        let mut text = format!("{} {}", self.name, self.first);
        if self.last > self.first {
            text.push_str(&format!(" to {}", self.last));
        }
        if self.step > 1 {
            text.push_str(&format!(", {} a column", self.step));
        }
        text + &format!("; {darkest} is {}", self.largest())
    }

    /// The largest count of a cell.
    pub(super) fn largest(&self) -> u64 {
        let counts = self.rows.iter().flat_map(|row| &row.counts);
        counts.copied().max().unwrap_or(0)
    }
}

/// The shade of a count: blank only for zero, the darkest only for the largest.
fn shade(count: u64, largest: u64) -> char {
    let darkest = SHADES.len() as u128 - 1;
    let level = if count == 0 {
        0
    } else {
        (u128::from(count) * darkest / u128::from(largest.max(1))).max(1)
    };
    let index = usize::try_from(level).unwrap_or(0);
    SHADES.get(index).map_or(' ', |shade| char::from(*shade))
}

impl Serialize for Heatmap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_struct("Heatmap", 4)?;
        map.serialize_field("column", &self.name)?;
        map.serialize_field("first", &self.first)?;
        map.serialize_field("step", &self.step)?;
        map.serialize_field("rows", &self.rows)?;
        map.end()
    }
}

impl fmt::Display for Heatmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let largest = self.largest();
        if largest == 0 {
            return Ok(());
        }
        let labels: Vec<_> = self.rows.iter().map(|row| row.bucket.label()).collect();
        let widest = labels
            .iter()
            .map(|label| label.len() + 1)
            .max()
            .unwrap_or(0);
        let label_width = widest.max(LABEL);
        let sums = self
            .rows
            .iter()
            .map(|row| row.bucket.count.to_string().len());
        let count_width = sums.max().unwrap_or(0).max(COUNT);
        for (row, label) in self.rows.iter().zip(labels).rev() {
            let cells: String = row
                .counts
                .iter()
                .map(|count| shade(*count, largest))
                .collect();
            let sum = row.bucket.count;
            writeln!(f, "{label:<label_width$}{sum:>count_width$} |{cells}|")?;
        }
        let margin = label_width + count_width + 2;
        writeln!(f, "{:margin$}{}", "", self.caption("@"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chart(cells: &[(u64, usize, u64)]) -> String {
        Heatmap::new(Buckets::Log2, "second", cells.to_vec()).to_string()
    }

    #[test]
    fn time_goes_right_and_values_go_up() {
        assert_eq!(
            chart(&[
                (3600, 9, 20),
                (3601, 9, 10),
                (3605, 9, 1),
                (3600, 7, 1),
                (3602, 7, 19)
            ]),
            "\
[512, 1K)             31 |@=   .|
[256, 512)             0 |      |
[128, 256)            20 |. %   |
                          second 3600 to 3605; @ is 20
"
        );
    }

    #[test]
    fn one_cell_or_none() {
        assert_eq!(
            chart(&[(5, 0, 2)]),
            "[0, 2)                 2 |@|\n                          second 5; @ is 2\n"
        );
        assert_eq!(chart(&[]), "");
        assert_eq!(chart(&[(5, 0, 0)]), "");
    }

    #[test]
    fn a_long_time_is_folded() {
        let cells: Vec<_> = (0..1000).map(|time| (time, 3, 1)).collect();
        let chart = chart(&cells);
        assert!(
            chart.contains("second 0 to 999, 16 a column; @ is 16"),
            "{chart}"
        );
        assert!(
            chart.starts_with("[8, 16)             1000 |@@@"),
            "{chart}"
        );
    }

    #[test]
    fn the_whole_of_time() {
        let chart = chart(&[(0, 64, u64::MAX), (u64::MAX, 64, u64::MAX)]);
        assert!(chart.starts_with("[16E, ...)"), "{chart}");
        assert!(chart.contains("18446744073709551615 |@"), "{chart}");
    }

    #[test]
    fn as_json() {
        let heatmap = Heatmap::new(Buckets::Log2, "ts", vec![(7, 1, 2), (9, 1, 3)]);
        assert_eq!(
            serde_json::to_string(&heatmap).unwrap(),
            r#"{"column":"ts","first":7,"step":1,"rows":[{"low":2,"high":4,"count":5,"counts":[2,0,3]}]}"#
        );
    }

    proptest! {
        #[test]
        fn no_count_is_lost(cells in proptest::collection::vec(
            (any::<u64>(), 0usize..65, 0u64..1000), 0..50
        )) {
            let heatmap = Heatmap::new(Buckets::Log2, "t", cells.clone());
            let total: u64 = heatmap.rows.iter().flat_map(|row| &row.counts).sum();
            prop_assert_eq!(total, cells.iter().map(|cell| cell.2).sum::<u64>());
            let sums: u64 = heatmap.rows.iter().map(|row| row.bucket.count).sum();
            prop_assert_eq!(total, sums);
            for row in &heatmap.rows {
                prop_assert!(row.counts.len() as u64 <= COLUMNS);
            }
        }
    }
}
