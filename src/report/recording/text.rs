//! The contents of a recording as text.

use std::fmt;

use super::activity::{LossRow, MapActivity, MapReading, ReadState, RecordingReport};
use crate::compare::recording::{Ended, Filter, How, RecordedMap, RecordedProgram, Summary};
use crate::report::counted::counted;
use crate::report::table::{Table, section};

impl fmt::Display for RecordingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "recording {}", self.recording)?;
        write!(f, "{}", self.about())?;
        let programs = self.header.programs.iter().zip(&self.programs);
        section(
            f,
            "programs",
            programs.map(|(program, activity)| program_cells(program, activity.firings)),
        )?;
        for program in &self.header.programs {
            if let How::Bare { why } | How::OutputsOnly { why } = &program.how
                && !why.is_empty()
            {
                writeln!(f, "  {}: {why}", program.name)?;
            }
        }
        let maps = self.header.maps.iter().zip(&self.maps);
        section(
            f,
            "maps",
            maps.map(|(map, activity)| map_cells(map, activity)),
        )?;
        let events = self.events.iter();
        section(
            f,
            "events",
            events.map(|event| vec![event.name.clone(), counted(event.samples, "sample")]),
        )?;
        let busy = self.cpus.iter();
        let busy = busy.filter(|cpu| cpu.firings + cpu.missing > 0);
        let cpus = busy.map(|cpu| {
            let missing = match cpu.missing {
                0 => String::new(),
                missing => format!("{missing} missing"),
            };
            vec![
                format!("CPU {}", cpu.cpu),
                counted(cpu.firings, "firing"),
                missing,
            ]
        });
        section(f, "CPUs", cpus)?;
        section(f, "lost", self.losses.iter().map(LossRow::cells))?;
        writeln!(f, "\n{}", self.last_line())
    }
}

impl RecordingReport {
    fn about(&self) -> Table {
        let header = &self.header;
        let kernel = &header.kernel;
        let mut about = Table::default();
        let mut say = |what: &str, text: String| {
            if !text.is_empty() {
                about.row([what.to_owned(), text]);
            }
        };
        say("format", format!("{}, {} bytes", self.format, self.bytes));
        say(
            "written by",
            match header.bpflab.as_str() {
                "" => String::new(),
                version => format!("bpflab {version}"),
            },
        );
        say(
            "kernel",
            format!("{} {}", kernel.release, kernel.machine)
                .trim()
                .to_owned(),
        );
        say(
            "CPUs",
            match header.possible_cpus {
                0 => String::new(),
                cpus => format!("{cpus} possible"),
            },
        );
        say(
            "began",
            match header.start.realtime {
                0 => String::new(),
                realtime => utc(realtime),
            },
        );
        say("command", header.command.join(" "));
        say("recorded", filter_words(header.filter).to_owned());
        if let Some(object) = &header.object {
            let text = format!(
                "{}, {} bytes, checksum {:08x}",
                object.name, object.bytes, object.checksum
            );
            say("object", text);
        }
        let carried = self.resources.iter();
        let carried = carried.map(|file| format!("{} ({} bytes)", file.name, file.bytes));
        say("carries", carried.collect::<Vec<_>>().join(", "));
        if let Some(end) = &self.end {
            say("ended", ended_words(end));
        }
        about
    }

    fn last_line(&self) -> String {
        let totals = &self.totals;
        let mut parts = Vec::new();
        if totals.firings > 0 || totals.samples == 0 {
            parts.push(counted(totals.firings, "firing"));
        }
        for (count, what) in [
            (totals.samples, "sample"),
            (totals.outputs, "output"),
            (totals.entries, "map entry"),
        ] {
            if count > 0 {
                parts.push(counted(count, what));
            }
        }
        let missing: u64 = self.cpus.iter().map(|cpu| cpu.missing).sum();
        parts.push(match (totals.lost, missing) {
            (0, 0) => "nothing lost".to_owned(),
            (lost, missing) => format!("{} lost", lost.max(missing)),
        });
        let state = match self.state {
            ReadState::Whole => "whole".to_owned(),
            ReadState::CutOff | ReadState::Damaged => {
                self.problem.clone().unwrap_or_else(|| "cut off".to_owned())
            }
        };
        format!("{}; {state}", parts.join(", "))
    }
}

fn program_cells(program: &RecordedProgram, firings: u64) -> Vec<String> {
    let how = match &program.how {
        How::Instrumented => "instrumented",
        How::Bare { .. } => "bare events",
        How::OutputsOnly { .. } => "outputs only",
        How::Other => "",
    };
    vec![
        program.name.clone(),
        program.section.clone(),
        program.prog_type.clone(),
        format!("{} insns", program.instructions),
        how.to_owned(),
        counted(firings, "firing"),
    ]
}

fn map_cells(map: &RecordedMap, activity: &MapActivity) -> Vec<String> {
    let reading = |reading: &Option<MapReading>, when| {
        let Some(reading) = reading else {
            return String::new();
        };
        let entries = counted(reading.entries, "entry");
        match (reading.contents, reading.why.as_str()) {
            ("whole", _) => format!("{entries} {when}"),
            (contents, "") => format!("{entries} {when} ({contents})"),
            (contents, why) => format!("{entries} {when} ({contents}: {why})"),
        }
    };
    vec![
        map.name.clone(),
        map.map_type.clone(),
        reading(&activity.before, "before"),
        reading(&activity.after, "after"),
    ]
}

impl LossRow {
    fn cells(&self) -> Vec<String> {
        vec![
            self.cause.to_owned(),
            self.of.clone().unwrap_or_default(),
            self.cpu.map(|cpu| format!("CPU {cpu}")).unwrap_or_default(),
            self.count.to_string(),
        ]
    }
}

const fn filter_words(filter: Filter) -> &'static str {
    match filter {
        Filter::All => "all processes",
        Filter::PidTree { .. } => "the command and the processes that it started",
        Filter::Other => "",
    }
}

fn ended_words(end: &Summary) -> String {
    let how = match end.ended {
        Ended::Exited { code } => format!("the command exited with {code}"),
        Ended::Killed { signal } => format!("signal {signal} ended the command"),
        Ended::Interrupted { signal } => format!("signal {signal} ended the recorder"),
        Ended::Duration => "the duration was over".to_owned(),
        Ended::Other => "unknown reason".to_owned(),
    };
    let (seconds, rest) = (end.duration / 1_000_000_000, end.duration % 1_000_000_000);
    format!("after {seconds}.{:03} s: {how}", rest / 1_000_000)
}

/// A moment in nanoseconds since 1970, to the second.
fn utc(realtime: u64) -> String {
    let seconds = realtime / 1_000_000_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

/// The Gregorian date of a day, counted from 1970. Computed with years from March to February, so
/// that a leap day is the last one; 400 years have 146097 days.
const fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // since 0000-03-01
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153; // from March
    let of_month = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + next, month, of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        let text = |seconds: u64| utc(seconds * 1_000_000_000 + 999);
        assert_eq!(text(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(text(951_782_399), "2000-02-28 23:59:59 UTC");
        assert_eq!(text(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(text(1_709_251_200), "2024-03-01 00:00:00 UTC");
        assert_eq!(text(1_798_761_599), "2026-12-31 23:59:59 UTC");
        assert_eq!(text(4_107_542_400), "2100-03-01 00:00:00 UTC");
    }
}
