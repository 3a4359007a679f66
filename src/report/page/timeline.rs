//! The page of `bpflab inspect REC --html`: a timeline of the firings by program and CPU.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use super::markup::escaped;
use super::skeleton::{capped, document};
use crate::compare::replay::RecordedFiring;

/// Columns of the timeline, pixels of a column and of a lane.
const COLUMNS: usize = 256;
const WIDTH: usize = 4;
const HEIGHT: usize = 20;
/// The most lanes, and the most firings in the list.
const LANES: usize = 256;
const LISTED: usize = 2000;

/// The firings of a recording, by program or event and CPU. All are counted; the first are listed.
#[derive(Debug, Default)]
pub struct Timeline {
    /// Counts by column.
    lanes: BTreeMap<(String, u32), Vec<u64>>,
    first: Option<u64>,
    last: u64,
    /// Nanoseconds of a column, as a power of two.
    shift: u32,
    rows: String,
    all: usize,
}

impl Timeline {
    /// Adds a firing, with its fields as text.
    pub fn add(&mut self, firing: &RecordedFiring, fields: &str) {
        let first = *self.first.get_or_insert(firing.time);
        let since = firing.time.saturating_sub(first);
        self.last = self.last.max(since);
        while since >> self.shift >= COLUMNS as u64 {
            self.widen();
        }
        let lane = firing.program.as_ref().unwrap_or(&firing.event).clone();
        let counts = self.lanes.entry((lane, firing.cpu));
        let counts = counts.or_insert_with(|| vec![0; COLUMNS]);
        let column = usize::try_from(since >> self.shift).unwrap_or(usize::MAX);
        if let Some(count) = counts.get_mut(column) {
            *count += 1;
        }
        if self.all < LISTED {
            // Writing to a string can't fail.
            let _ = self.row(firing, since, fields);
        }
        self.all += 1;
    }

    /// Makes a column of each two.
    fn widen(&mut self) {
        self.shift += 1;
        for counts in self.lanes.values_mut() {
            let mut pairs: Vec<u64> = counts.chunks(2).map(|pair| pair.iter().sum()).collect();
            pairs.resize(COLUMNS, 0);
            *counts = pairs;
        }
    }

    fn row(&mut self, firing: &RecordedFiring, since: u64, fields: &str) -> fmt::Result {
        let returned = firing.returned.map(|value| value.to_string());
        writeln!(
            self.rows,
            "<tr><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}/{}</td><td>{}</td>\
             <td>{}</td><td class=\"n\">{}</td><td><code>{}</code></td></tr>",
            seconds(since),
            firing.cpu,
            firing.pid,
            firing.tid,
            escaped(&firing.event),
            escaped(firing.program.as_deref().unwrap_or("")),
            returned.unwrap_or_default(),
            escaped(fields)
        )
    }

    /// The page's text; `about` is what `bpflab inspect` prints of the recording.
    #[must_use]
    pub fn finish(self, about: &str) -> String {
        let mut text = String::new();
        let _ = self.write(&mut text, about);
        document("Recording", None, &text)
    }

    fn write(&self, text: &mut String, about: &str) -> fmt::Result {
        writeln!(text, "<pre>{}</pre>", escaped(about.trim_end()))?;
        writeln!(
            text,
            "<h2>Timeline</h2>\n<p>{} firings in {} s; a column is {} s. The stronger the shade, the more \
             firings of the lane; point at a column for its count.</p>",
            self.all,
            seconds(self.last),
            seconds(1u64.checked_shl(self.shift).unwrap_or(u64::MAX))
        )?;
        self.picture(text)?;
        text.push_str(&capped(
            LANES.min(self.lanes.len()),
            self.lanes.len(),
            "lanes",
        ));
        text.push_str(
            "<h2>Firings</h2>\n<div class=\"wide\"><table class=\"rows\">\n<thead><tr>\
             <th class=\"n\">s</th><th class=\"n\">cpu</th><th>process/thread</th><th>event</th>\
             <th>program</th><th class=\"n\">returned</th><th>fields</th></tr></thead>\n<tbody>\n",
        );
        text.push_str(&self.rows);
        text.push_str("</tbody></table></div>\n");
        text.push_str(&capped(
            self.all.min(LISTED),
            self.all,
            "firings; --events lists all",
        ));
        Ok(())
    }

    /// The lanes as SVG: a row for each program and CPU.
    fn picture(&self, text: &mut String) -> fmt::Result {
        let lanes: Vec<_> = self.lanes.iter().take(LANES).collect();
        let names = lanes
            .iter()
            .map(|((name, cpu), _)| format!("{name}  cpu {cpu}"));
        let names: Vec<_> = names.collect();
        let longest = names.iter().map(|name| name.chars().count()).max();
        let left = longest.unwrap_or(0) * 8 + 16;
        let (width, height) = (left + COLUMNS * WIDTH + 90, lanes.len() * HEIGHT + 10);
        writeln!(
            text,
            "<div class=\"wide\"><svg xmlns=\"http://www.w3.org/2000/svg\" class=\"timeline\" \
             role=\"img\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
             <title>firings by program, CPU and time</title>"
        )?;
        for ((at, (_, counts)), name) in lanes.iter().enumerate().zip(&names) {
            let y = at * HEIGHT + 4;
            let largest = counts.iter().copied().max().unwrap_or(0).max(1);
            writeln!(
                text,
                "<text x=\"4\" y=\"{}\">{}</text><rect class=\"frame\" x=\"{left}\" y=\"{y}\" \
                 width=\"{}\" height=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text>",
                y + 13,
                escaped(name),
                COLUMNS * WIDTH,
                HEIGHT - 4,
                left + COLUMNS * WIDTH + 8,
                y + 13,
                counts.iter().sum::<u64>()
            )?;
            for (column, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                let percent = (u128::from(*count) * 100 / u128::from(largest)).max(25);
                let since = (column as u64) << self.shift;
                writeln!(
                    text,
                    "<rect class=\"bar\" x=\"{}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{}\" \
                     fill-opacity=\"{percent}%\"><title>{} s: {count}</title></rect>",
                    left + column * WIDTH,
                    HEIGHT - 4,
                    seconds(since)
                )?;
            }
        }
        text.push_str("</svg></div>\n");
        Ok(())
    }
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_grow_and_lose_no_firing() {
        let mut timeline = Timeline::default();
        for at in 0..5000_u64 {
            let firing = RecordedFiring {
                program: Some("a<b".to_owned()),
                event: "tp/a/b".to_owned(),
                time: 100 + at * at,
                cpu: u32::from(at % 2 == 1),
                pid: 1,
                tid: 2,
                returned: Some(0),
                fields: Vec::new(),
                decoded: true,
            };
            timeline.add(&firing, "n=1");
        }
        let sums: Vec<u64> = timeline
            .lanes
            .values()
            .map(|lane| lane.iter().sum())
            .collect();
        assert_eq!(sums, [2500, 2500]);
        assert!(timeline.last >> timeline.shift < COLUMNS as u64);
        let page = timeline.finish("about");
        assert!(page.contains("The first 2000 of 5000 firings"));
        assert!(page.contains("a&lt;b  cpu 1"));
    }
}
