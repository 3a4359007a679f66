//! The result of recording: `bpflab record`.

use std::fmt;

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::table::Table;
use crate::compare::live::{EventSummary, ProgramSummary, Summary};
use crate::compare::recording::{Ended, How};

/// The result of recording. Its fields are the keys of `--json`.
#[derive(Debug, Clone, Serialize)]
pub struct RecordReport {
    /// The file.
    pub recording: String,
    /// Why it ended: `exited`, `killed`, `duration`, `interrupted`, `other`.
    pub ended: &'static str,
    /// The command's exit code, if it had one.
    pub exit_code: Option<i32>,
    /// The signal that ended the command or the recording.
    pub signal: Option<i32>,
    /// How long it took.
    pub seconds: f64,
    /// Firings and samples in the recording.
    pub events: u64,
    /// Firings and samples per second.
    pub events_per_second: f64,
    /// Outputs of programs: records and lines.
    pub outputs: u64,
    /// Bytes of firings as they came out of the kernel.
    pub bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of memory between kernel and recorder.
    pub buffer_bytes: u64,
    /// Lost firings, samples and outputs, and processes that were not followed.
    pub lost: u64,
    /// Losses by cause: `cause`, `cpu`, `of` (the number of a program, map or event), `count`.
    pub losses: Vec<Json>,
    /// Children that were not followed.
    pub unfollowed: u64,
    /// Whether all processes were recorded.
    pub all: bool,
    /// The programs that ran.
    pub programs: Vec<Json>,
    /// The programs that did not: `program`, `why`, `unavailable`.
    pub left_out: Vec<Json>,
    /// The tracepoints: `tracepoint`, `samples`, `lost`.
    pub tracepoints: Vec<Json>,
    #[serde(skip)]
    summary: Summary,
}

impl RecordReport {
    /// A report on a session that wrote this file.
    #[must_use]
    pub fn new(recording: impl Into<String>, summary: Summary) -> Self {
        let (ended, exit_code, signal) = match summary.ended {
            Ended::Exited { code } => ("exited", Some(code), None),
            Ended::Killed { signal } => ("killed", None, Some(signal)),
            Ended::Duration => ("duration", None, None),
            Ended::Interrupted { signal } => ("interrupted", None, Some(signal)),
            Ended::Other => ("other", None, None),
        };
        Self {
            recording: recording.into(),
            ended,
            exit_code,
            signal,
            seconds: summary.duration.as_secs_f64(),
            events: summary.recorded(),
            events_per_second: summary.per_second(),
            outputs: summary.totals.outputs,
            bytes: summary.totals.firing_bytes,
            file_bytes: summary.file_bytes,
            buffer_bytes: summary.buffer_bytes,
            lost: summary.lost(),
            losses: summary
                .losses
                .iter()
                .map(|loss| {
                    json!({
                        "cause": loss.cause.name(),
                        "cpu": loss.cpu,
                        "of": loss.of,
                        "count": loss.count,
                    })
                })
                .collect(),
            unfollowed: summary.unfollowed,
            all: summary.all,
            programs: summary.programs.iter().map(program).collect(),
            left_out: summary
                .left_out
                .iter()
                .map(|left| {
                    json!({
                        "program": left.program,
                        "why": left.why,
                        "unavailable": left.unavailable,
                    })
                })
                .collect(),
            tracepoints: summary
                .events
                .iter()
                .map(|event| {
                    json!({
                        "tracepoint": event.name,
                        "samples": event.samples,
                        "lost": event.lost,
                    })
                })
                .collect(),
            summary,
        }
    }
}

fn program(program: &ProgramSummary) -> Json {
    let (recorded, why) = how(&program.how);
    json!({
        "program": program.name,
        "section": program.section,
        "attach": program.attach,
        "recorded": recorded,
        "why": why,
        "firings": program.firings,
        "missed": program.missed,
    })
}

/// How a program was recorded, and why without firings.
fn how(how: &How) -> (&'static str, Option<&str>) {
    match how {
        How::Instrumented => ("firings", None),
        How::OutputsOnly { why } => ("outputs", Some(why)),
        How::Bare { why } => ("events", Some(why)),
        How::Other => ("unknown", None),
    }
}

impl fmt::Display for RecordReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            recording,
            events,
            seconds,
            events_per_second,
            summary,
            ..
        } = self;
        write!(f, "{recording}: {events} events in {seconds:.3} s")?;
        writeln!(f, " ({events_per_second:.0}/s), {} lost", self.lost)?;
        let mut table = Table::default().numbers(&[2, 3]);
        if !summary.programs.is_empty() {
            table.row(["program", "attached to", "firings", "missed"]);
        }
        for program in &summary.programs {
            let firings = match &program.how {
                How::Instrumented => program.firings.to_string(),
                _ => "-".to_owned(),
            };
            let cells = [&program.name, &program.attach, &firings];
            table.row(cells.into_iter().chain([&program.missed.to_string()]));
            if let (_, Some(why)) = how(&program.how) {
                table.line(format!("    outputs only: {why}"));
            }
        }
        for left in &summary.left_out {
            table.row([left.program.as_str(), "not attached", "-", "-"]);
            table.line(format!("    {}", left.why));
        }
        if !summary.events.is_empty() {
            table = table.numbers(&[1, 2]);
            table.row(["tracepoint", "samples", "lost"]);
        }
        for EventSummary {
            name,
            samples,
            lost,
        } in &summary.events
        {
            table.row([name, &samples.to_string(), &lost.to_string()]);
        }
        table.fmt(f)?;
        for loss in &summary.losses {
            let cpu = loss.cpu.map(|cpu| format!(" on CPU {cpu}"));
            writeln!(
                f,
                "lost: {} {}{}",
                loss.count,
                loss.cause,
                cpu.unwrap_or_default()
            )?;
        }
        if self.unfollowed > 0 {
            writeln!(
                f,
                "lost: {} processes not followed, too many at a time",
                self.unfollowed
            )?;
        }
        if self.outputs > 0 {
            writeln!(f, "{} outputs of the programs", self.outputs)?;
        }
        if !self.all && !summary.programs.is_empty() {
            match summary.except() {
                none if none.is_empty() => writeln!(
                    f,
                    "programs ran for the command and its children only: maps have no data of \
                     others"
                )?,
                except => writeln!(
                    f,
                    "programs ran for the command and its children only{except}"
                )?,
            }
        }
        writeln!(
            f,
            "{} bytes in the file, {} KiB of buffer",
            self.file_bytes,
            self.buffer_bytes >> 10
        )?;
        match (self.ended, self.exit_code, self.signal) {
            ("exited", Some(code), _) => writeln!(f, "the command exited with {code}"),
            ("killed", _, Some(signal)) => writeln!(f, "signal {signal} ended the command"),
            ("duration", ..) => writeln!(f, "stopped after {seconds:.3} s (--duration)"),
            ("interrupted", _, Some(signal)) => writeln!(f, "stopped by signal {signal}"),
            _ => writeln!(f, "stopped"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::recording::{Cause, Loss, Totals};
    use std::time::Duration;

    #[test]
    fn all_that_matters_is_said() {
        let summary = Summary {
            ended: Ended::Exited { code: 3 },
            duration: Duration::from_secs(2),
            programs: vec![ProgramSummary {
                number: 0,
                name: "count".to_owned(),
                section: "tp/a/b".to_owned(),
                attach: "tp/a/b".to_owned(),
                how: How::OutputsOnly {
                    why: "a tail call".to_owned(),
                },
                firings: 0,
                anywhere: false,
                missed: 7,
            }],
            losses: vec![Loss {
                cause: Cause::RingFull,
                cpu: Some(1),
                of: None,
                count: 5,
            }],
            totals: Totals {
                firings: 10,
                ..Totals::default()
            },
            ..Summary::default()
        };
        let report = RecordReport::new("x.rec", summary);
        let text = report.to_string();
        for part in [
            "x.rec: 10 events in 2.000 s (5/s), 5 lost",
            "count    tp/a/b             -       7",
            "outputs only: a tail call",
            "lost: 5 ring buffer full on CPU 1",
            "maps have no data of others",
            "exited with 3",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!((&json["lost"], &json["exit_code"]), (&5.into(), &3.into()));
        assert_eq!(json["programs"][0]["recorded"], "outputs");
        assert_eq!(json["losses"][0]["cpu"], 1);
        assert!(json.get("summary").is_none());
    }
}
