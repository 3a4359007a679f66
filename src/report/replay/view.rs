//! The whole report of a replay.

use std::fmt;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::json::{finding_json, gap_json, map_json, output_json, program_json};
use super::text::{Explained, said_of_all, said_of_map, said_of_output, said_of_program};
use crate::compare::replay::{MapVerdict, Report, Verdict};
use crate::report::table::Table;

/// A replay of a recording on one engine, as `bpflab replay` prints it; its JSON is one value.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReplayView<'a> {
    /// The recording's file.
    pub recording: &'a str,
    /// The object's.
    pub object: &'a str,
    /// The report.
    pub report: &'a Report,
    /// How long it took with reading, if that was asked for.
    pub elapsed: Option<Duration>,
}

impl ReplayView<'_> {
    /// Nanoseconds per firing, if the time was taken.
    pub(in crate::report) fn ns_per_firing(&self) -> Option<f64> {
        let firings = u32::try_from(self.report.firings())
            .ok()
            .filter(|count| *count > 0)?;
        Some(self.elapsed?.as_secs_f64() * 1e9 / f64::from(firings))
    }

    /// A row for each program, map and stream of outputs.
    pub(in crate::report) fn table(&self) -> Table {
        let mut table = Table::default().numbers(&[1]);
        let report = self.report;
        for program in &report.programs {
            // A program that only tail calls run.
            let (count, unit) = match (program.firings, program.led_to) {
                (0, led_to @ 1..) => (led_to, "tail calls"),
                (firings, _) => (firings, "firings"),
            };
            table.row([
                program.name.clone(),
                count.to_string(),
                unit.to_owned(),
                said_of_program(program, report.engine),
            ]);
        }
        for map in &report.maps {
            let (entries, unit) = match map.verdict {
                MapVerdict::Equal(entries) => (entries.to_string(), "entries"),
                _ => (String::new(), "map"),
            };
            table.row([map.name.clone(), entries, unit.to_owned(), said_of_map(map)]);
        }
        for output in &report.outputs {
            let said = said_of_output(output);
            let recorded = output.recorded.to_string();
            table.row([output.name.clone(), recorded, "outputs".to_owned(), said]);
        }
        table
    }

    /// The report as one JSON value.
    #[must_use]
    pub fn json(&self) -> Json {
        let report = self.report;
        let programs = report.programs.iter().map(|program| {
            let mut row = program_json(program);
            row["verdict"] = program.word_on(report.engine).key().into();
            row
        });
        let mut all = json!({
            "recording": self.recording,
            "object": self.object,
            "engine": report.engine.name(),
            "verdict": report.word().key(),
            "firings": report.firings(),
            "programs": programs.collect::<Vec<_>>(),
            "maps": report.maps.iter().map(map_json).collect::<Vec<_>>(),
            "outputs": report.outputs.iter().map(output_json).collect::<Vec<_>>(),
            "findings": report.findings.iter().map(finding_json).collect::<Vec<_>>(),
            "missing": report.missing,
            "not_compared": report.gaps().iter().map(gap_json).collect::<Vec<_>>(),
        });
        if let (Some(ns), Some(all)) = (self.ns_per_firing(), all.as_object_mut()) {
            all.insert(
                "ns_per_firing".to_owned(),
                json!((ns * 10.0).round() / 10.0),
            );
        }
        all
    }
}

impl serde::Serialize for ReplayView<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(to)
    }
}

impl fmt::Display for ReplayView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.report;
        let firings = report.firings();
        write!(
            f,
            "{}: {firings} firings on {}",
            self.recording, report.engine
        )?;
        match self.ns_per_firing() {
            Some(ns) => writeln!(f, ", {ns:.1} ns each, reading included")?,
            None => writeln!(f)?,
        }
        write!(f, "{}", self.table())?;
        for missing in &report.missing {
            writeln!(f, "missing: {missing}")?;
        }
        for program in &report.programs {
            if let Verdict::Different(first) = &program.verdict {
                write!(f, "\n{}", Explained(&program.name, first))?;
            }
        }
        if !report.findings.is_empty() {
            writeln!(f)?;
        }
        for finding in &report.findings {
            write!(f, "{finding}")?;
        }
        writeln!(f, "verdict: {}", said_of_all(report))
    }
}
