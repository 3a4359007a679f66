//! Histograms and heatmaps as SVG.

use std::fmt::Write;

use super::markup::escaped;
use crate::report::heatmap::Heatmap;
use crate::report::histogram::Row;
use crate::report::map_contents::{Chart, MapContents};

/// Pixels of a row, of a character, of a full bar, and of a heatmap's cell.
const ROW: usize = 20;
const CHARACTER: usize = 8;
const BAR: usize = 420;
const CELL: usize = 10;
/// Pixels above the rows.
const TOP: usize = 34;

const STYLE: &str = "text{font:12px ui-monospace,monospace;fill:#1f2328}.name{font-weight:600}\
    .bar{fill:#0969da}.frame{fill:none;stroke:#8886}\
    @media(prefers-color-scheme:dark){text{fill:#e6edf3}.bar{fill:#58a6ff}}";

/// A histogram or heatmap as SVG.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Picture {
    /// The map, and the key if the map has several.
    pub name: String,
    /// The whole file.
    pub svg: String,
}

/// The pictures of a map: those charts that its text shows.
#[must_use]
pub fn pictures(contents: &MapContents) -> Vec<Picture> {
    let map = &contents.map;
    let one = |chart: &Chart| histogram(map, &chart.rows());
    if let Some(chart) = &contents.histogram {
        return one(chart).into_iter().collect();
    }
    if let Some(chart) = &contents.heatmap {
        return heatmap(map, chart).into_iter().collect();
    }
    let by_key = contents.histograms.iter();
    let by_key = by_key.map(|named| (named.of.clone(), &named.histogram));
    let of_entries = contents.entries.iter().filter_map(|entry| {
        let chart = entry.histogram.as_ref()?;
        Some((entry.key.to_string(), chart))
    });
    let named = |(of, chart): (String, &Chart)| histogram(&format!("{map}: {of}"), &chart.rows());
    by_key.chain(of_entries).filter_map(named).collect()
}

/// The picture of a histogram; none if nothing was counted.
fn histogram(name: &str, rows: &[Row]) -> Option<Picture> {
    let largest = rows
        .iter()
        .map(|row| row.count)
        .max()
        .filter(|max| *max > 0)?;
    let labels: Vec<_> = rows.iter().map(Row::label).collect();
    let label_width = CHARACTER * longest(labels.iter().map(String::len));
    let count_width = CHARACTER * largest.to_string().len();
    let (count_end, bars) = (
        label_width + 24 + count_width,
        label_width + count_width + 36,
    );
    let width = (bars + BAR + 12).max(name.chars().count() * CHARACTER + 24);
    let mut svg = head(name, width, TOP + rows.len() * ROW + 10);
    for ((at, row), label) in rows.iter().enumerate().zip(&labels) {
        let y = TOP + at * ROW;
        // A bucket with a count has a bar that can be seen.
        let filled = u128::from(row.count) * BAR as u128 / u128::from(largest);
        let filled = filled.max(u128::from(row.count > 0));
        labelled(&mut svg, y, label, count_end, row.count);
        // Writing to a string can't fail.
        let _ = writeln!(
            svg,
            "<rect class=\"bar\" x=\"{bars}\" y=\"{}\" width=\"{filled}\" height=\"{}\"/>",
            y + 3,
            ROW - 6,
        );
    }
    svg.push_str("</svg>\n");
    Some(Picture {
        name: name.to_owned(),
        svg,
    })
}

/// Writes a bucket's label and count, above which the row begins at `y`.
fn labelled(svg: &mut String, y: usize, label: &str, count_end: usize, count: u64) {
    let _ = writeln!(
        svg,
        "<text x=\"12\" y=\"{0}\">{1}</text><text x=\"{count_end}\" y=\"{0}\" \
         text-anchor=\"end\">{count}</text>",
        y + 14,
        escaped(label),
    );
}

/// The picture of a heatmap; none if nothing was counted.
fn heatmap(name: &str, map: &Heatmap) -> Option<Picture> {
    let largest = map.largest();
    if largest == 0 {
        return None;
    }
    let rows: Vec<_> = map.rows().collect();
    let labels: Vec<_> = rows.iter().map(|(row, _)| row.label()).collect();
    let label_width = CHARACTER * longest(labels.iter().map(String::len));
    let sums = rows.iter().map(|(row, _)| row.count.to_string().len());
    let count_width = CHARACTER * longest(sums);
    let (count_end, cells) = (
        label_width + 24 + count_width,
        label_width + count_width + 36,
    );
    let columns = rows.first().map_or(0, |(_, counts)| counts.len());
    let caption = map.caption("the strongest shade");
    let width = (cells + columns * CELL + 12)
        .max(cells + caption.chars().count() * CHARACTER + 12)
        .max(name.chars().count() * CHARACTER + 24);
    let height = TOP + rows.len() * ROW;
    let mut svg = head(name, width, height + 30);
    for ((at, (row, counts)), label) in rows.iter().rev().enumerate().zip(labels.iter().rev()) {
        let y = TOP + at * ROW;
        labelled(&mut svg, y, label, count_end, row.count);
        for (column, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let percent = (u128::from(*count) * 100 / u128::from(largest)).max(12);
            let _ = writeln!(
                svg,
                "<rect class=\"bar\" x=\"{}\" y=\"{y}\" width=\"{CELL}\" height=\"{ROW}\" \
                 fill-opacity=\"{percent}%\"><title>{}: {count}</title></rect>",
                cells + column * CELL,
                escaped(label)
            );
        }
    }
    let _ = writeln!(
        svg,
        "<rect class=\"frame\" x=\"{cells}\" y=\"{TOP}\" width=\"{}\" height=\"{}\"/>\
         <text x=\"{cells}\" y=\"{}\">{}</text>\n</svg>",
        columns * CELL,
        rows.len() * ROW,
        height + 18,
        escaped(&caption)
    );
    Some(Picture {
        name: name.to_owned(),
        svg,
    })
}

fn longest(lengths: impl Iterator<Item = usize>) -> usize {
    lengths.max().unwrap_or(0)
}

fn head(name: &str, width: usize, height: usize) -> String {
    let name = escaped(name);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" width=\"{width}\" \
         height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n<title>{name}</title>\n\
         <style>{STYLE}</style>\n<text class=\"name\" x=\"12\" y=\"20\">{name}</text>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Buckets;

    #[test]
    fn bars_are_in_proportion_and_names_escaped() {
        let rows = [3, 0, 6].iter().enumerate();
        let rows: Vec<_> = rows
            .map(|(at, count)| Buckets::Log2.row(at, 3, *count))
            .collect();
        let picture = histogram("a<b", &rows).unwrap();
        assert!(picture.svg.contains("<title>a&lt;b</title>"));
        let widths = picture.svg.lines().filter_map(|line| {
            let (_, rest) = line.split_once("class=\"bar\"")?;
            rest.split("width=\"").nth(1)?.split('"').next()
        });
        assert_eq!(widths.collect::<Vec<_>>(), ["210", "0", "420"]);
        assert_eq!(histogram("none", &[]), None);
    }

    #[test]
    fn a_heatmap_has_a_cell_for_each_count() {
        let map = Heatmap::new(Buckets::Log2, "second", vec![(0, 2, 1), (3, 4, 200)]);
        let picture = heatmap("m", &map).unwrap();
        assert_eq!(picture.svg.matches("<rect class=\"bar\"").count(), 2);
        assert!(
            picture
                .svg
                .contains("fill-opacity=\"100%\"><title>[16, 32): 200<")
        );
        assert!(
            picture
                .svg
                .contains("fill-opacity=\"12%\"><title>[4, 8): 1<")
        );
        assert!(
            picture
                .svg
                .contains(">second 0 to 3; the strongest shade is 200</text>")
        );
        let empty = Heatmap::new(Buckets::Log2, "second", Vec::new());
        assert_eq!(heatmap("m", &empty), None);
    }
}
