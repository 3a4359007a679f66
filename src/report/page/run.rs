//! The page of `bpflab run --html`: what programs returned, put out and left in their maps.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write};

use serde_json::Value;

use super::chart::pictures;
use super::markup::escaped;
use super::skeleton::{capped, document};
use crate::report::map_contents::MapContents;
use crate::report::outputs::OutputRow;
use crate::report::packet::PacketRow;
use crate::report::tally::{EventTally, ProgramTally};

/// The most rows of a kind that are shown, the most changed packets, pictures, and entries of a map.
const ROWS: usize = 2000;
const PACKETS: usize = 200;
const PICTURES: usize = 200;
const ENTRIES: usize = 1000;

/// What a run shows, in the order of the text output within each kind.
#[derive(Debug, Default)]
pub struct RunPage {
    programs: String,
    events: String,
    records: BTreeMap<String, Records>,
    lines: Rows,
    faults: String,
    packets: Rows,
    maps: String,
}

/// Rows of which the first are shown.
#[derive(Debug, Default)]
struct Rows {
    text: String,
    all: usize,
}

/// The records of a buffer.
#[derive(Debug, Default)]
struct Records {
    rows: Vec<(Option<u32>, Value, String)>,
    all: usize,
}

impl Rows {
    fn add(&mut self, most: usize, row: impl FnOnce() -> String) {
        if self.all < most {
            self.text.push_str(&row());
        }
        self.all += 1;
    }
}

impl RunPage {
    /// Adds an output.
    pub fn add_output(&mut self, row: &OutputRow) {
        let OutputRow::Record {
            map,
            cpu,
            size,
            bytes,
            value,
            ..
        } = row
        else {
            return self.add_line(row);
        };
        let records = self.records.entry(map.clone()).or_default();
        records.all += 1;
        if records.rows.len() < ROWS {
            let json = value
                .as_ref()
                .and_then(|value| serde_json::to_value(value).ok());
            let text = match value {
                Some(value) => value.to_string(),
                None => format!("{size} bytes {bytes}"),
            };
            records.rows.push((*cpu, json.unwrap_or(Value::Null), text));
        }
    }

    /// Adds a line of the output.
    pub fn add_line(&mut self, line: impl Display) {
        self.lines.add(ROWS, || {
            format!("{}\n", escaped(line.to_string().trim_end()))
        });
    }

    /// Adds a fault.
    pub fn add_fault(&mut self, fault: impl Display) {
        self.faults.push_str(&escaped(&fault.to_string()));
        self.faults.push('\n');
    }

    /// Adds a packet that programs changed.
    pub fn add_packet(&mut self, row: &PacketRow) {
        self.packets.add(PACKETS, || {
            let mut text = "<pre class=\"packet\">".to_owned();
            for line in row.to_string().lines() {
                let class = match line.as_bytes().first() {
                    Some(b'-') => "bad",
                    Some(b'+') => "good",
                    _ => "same",
                };
                text.push_str(&format!(
                    "<span class=\"word {class}\">{}</span>\n",
                    escaped(line)
                ));
            }
            text.push_str("</pre>\n");
            text
        });
    }

    /// Adds the runs of a program.
    pub fn add_program(&mut self, tally: &ProgramTally) {
        let said = tally.to_string();
        let said = said.trim_end();
        let prefix = format!("{}: ", tally.program);
        let said = said.strip_prefix(&prefix).unwrap_or(said);
        self.programs.push_str(&format!(
            "<tr><td>{} <small>{}</small></td><td>{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
            escaped(&tally.program),
            escaped(&tally.section),
            escaped(&tally.event),
            tally.runs,
            escaped(said),
        ));
    }

    /// Adds an event.
    pub fn add_event(&mut self, tally: &EventTally) {
        self.events.push_str(&format!(
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
            escaped(&tally.event),
            tally.fired,
            tally.passed,
            tally.dropped
        ));
    }

    /// Adds a map.
    pub fn add_map(&mut self, contents: &MapContents) {
        // Writing to a string can't fail.
        let _ = map_section(&mut self.maps, contents);
    }

    /// The page's text.
    #[must_use]
    pub fn finish(self, object: &str) -> String {
        let mut text = String::new();
        let _ = self.write(&mut text, object);
        document("Run", None, &text)
    }

    fn write(&self, text: &mut String, object: &str) -> fmt::Result {
        writeln!(text, "<p><code>{}</code></p>", escaped(object))?;
        if !self.faults.is_empty() {
            writeln!(
                text,
                "<h2>Faults</h2>\n<pre class=\"word bad\">{}</pre>",
                self.faults
            )?;
        }
        if !self.programs.is_empty() {
            writeln!(
                text,
                "<h2>Programs</h2>\n<table class=\"rows\">\n<thead><tr><th>program</th>\
                 <th>last event</th><th class=\"n\">runs</th><th>returned</th></tr></thead>\n\
                 <tbody>\n{}</tbody></table>",
                self.programs
            )?;
        }
        if !self.events.is_empty() {
            writeln!(
                text,
                "<table class=\"rows\">\n<thead><tr><th>tracepoint</th><th class=\"n\">fired</th>\
                 <th class=\"n\">perf gets a sample</th><th class=\"n\">none</th></tr></thead>\n\
                 <tbody>\n{}</tbody></table>",
                self.events
            )?;
        }
        if !self.maps.is_empty() {
            writeln!(text, "<h2>Maps</h2>\n{}", self.maps)?;
        }
        for (map, records) in &self.records {
            writeln!(
                text,
                "<h2><code>{}</code> <small>{} records</small></h2>",
                escaped(map),
                records.all
            )?;
            records.write(text)?;
        }
        if self.lines.all > 0 {
            writeln!(text, "<h2>Output</h2>\n<pre>{}</pre>", self.lines.text)?;
            text.push_str(&capped(self.lines.all.min(ROWS), self.lines.all, "lines"));
        }
        if self.packets.all > 0 {
            writeln!(text, "<h2>Changed packets</h2>\n{}", self.packets.text)?;
            text.push_str(&capped(
                self.packets.all.min(PACKETS),
                self.packets.all,
                "changed packets",
            ));
        }
        Ok(())
    }
}

impl Records {
    /// A table with a column for each member, if all records are structs with the same ones.
    fn write(&self, text: &mut String) -> fmt::Result {
        let names = |value: &Value| -> Vec<String> {
            let members = value.as_object();
            members.map_or(Vec::new(), |members| members.keys().cloned().collect())
        };
        let columns = self
            .rows
            .first()
            .map_or(Vec::new(), |(_, value, _)| names(value));
        let uniform = self
            .rows
            .iter()
            .all(|(_, value, _)| names(value) == columns);
        let has_cpu = self.rows.iter().any(|(cpu, ..)| cpu.is_some());
        text.push_str("<div class=\"wide\"><table class=\"rows\">\n<thead><tr><th>#</th>");
        if has_cpu {
            text.push_str("<th>cpu</th>");
        }
        if uniform && !columns.is_empty() {
            for column in &columns {
                write!(text, "<th>{}</th>", escaped(column))?;
            }
        } else {
            text.push_str("<th>record</th>");
        }
        text.push_str("</tr></thead>\n<tbody>\n");
        for (number, (cpu, value, line)) in (1..).zip(&self.rows) {
            let number: usize = number;
            write!(text, "<tr><td>{number}</td>")?;
            if has_cpu {
                let cpu = cpu.map(|cpu| cpu.to_string());
                write!(text, "<td>{}</td>", cpu.unwrap_or_default())?;
            }
            match value.as_object() {
                Some(members) if uniform && !columns.is_empty() => {
                    for member in members.values() {
                        let shown = match member {
                            Value::String(text) => text.clone(),
                            other => other.to_string(),
                        };
                        write!(text, "<td><code>{}</code></td>", escaped(&shown))?;
                    }
                }
                _ => write!(text, "<td><code>{}</code></td>", escaped(line))?,
            }
            text.push_str("</tr>\n");
        }
        text.push_str("</tbody></table></div>\n");
        text.push_str(&capped(self.rows.len(), self.all, "records"));
        Ok(())
    }
}

/// Writes the contents of a map: its pictures, or its entries.
pub(super) fn map_section(text: &mut String, contents: &MapContents) -> fmt::Result {
    let said = contents.to_string();
    let title = said.lines().next().unwrap_or_default();
    writeln!(text, "<section>\n<h3>{}</h3>", escaped(title))?;
    let charts = pictures(contents);
    for picture in charts.iter().take(PICTURES) {
        writeln!(text, "<figure>{}</figure>", picture.svg)?;
    }
    text.push_str(&capped(
        charts.len().min(PICTURES),
        charts.len(),
        "pictures",
    ));
    if charts.is_empty() {
        let variables = contents.variables.iter().flat_map(|variables| &variables.0);
        let variables = variables.map(|(name, value)| (name.clone(), value.to_string()));
        let entries = contents.entries.iter();
        let entries = entries.map(|entry| (entry.key.to_string(), entry.value.to_string()));
        let rows: Vec<_> = variables.chain(entries).collect();
        if rows.is_empty() {
            text.push_str("<p class=\"note\">Nothing to show.</p>\n");
        } else {
            text.push_str("<div class=\"wide\"><table class=\"rows\">\n<tbody>\n");
            for (key, value) in rows.iter().take(ENTRIES) {
                writeln!(
                    text,
                    "<tr><td><code>{}</code></td><td><code>{}</code></td></tr>",
                    escaped(key),
                    escaped(value)
                )?;
            }
            text.push_str("</tbody></table></div>\n");
            text.push_str(&capped(rows.len().min(ENTRIES), rows.len(), "entries"));
        }
    }
    text.push_str("</section>\n");
    Ok(())
}
