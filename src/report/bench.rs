//! Times of running programs and of preparing them: `bpflab bench`.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::table::Table;
use crate::harness::CompileTime;
use crate::program::Program;
use crate::util::median;

/// A program on an engine. Its fields are keys of `bpflab bench --json`.
#[derive(Debug, Clone, Serialize)]
pub struct BenchRow {
    /// `bench`.
    kind: &'static str,
    /// The object's file.
    pub object: String,
    /// Name of the C function.
    pub program: String,
    /// Section.
    pub section: String,
    /// Program type.
    pub prog_type: &'static str,
    /// The event that it ran on.
    pub event: String,
    /// The engine, or `kernel`.
    pub engine: &'static str,
    /// Median nanoseconds per run; none if the engine does not run it.
    pub ns_per_run: Option<f64>,
    /// Instructions per run, if the engine counts them.
    pub insns: Option<u64>,
    /// The time of a run as a multiple of that on the engine `to`.
    pub ratio: Option<f64>,
    /// The engine that others are compared with: the kernel, or bpflab's last one.
    pub to: Option<&'static str>,
    /// Why there is no time.
    pub unavailable: Option<String>,
    /// Nanoseconds per run in an earlier run, if it is compared with one that has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_ns: Option<f64>,
    #[serde(skip)]
    samples: Vec<f64>,
}

/// The time to prepare a program. Its fields are keys of `bpflab bench --json`.
#[derive(Debug, Clone, Serialize)]
pub struct ReadyRow {
    /// `ready`.
    kind: &'static str,
    /// The object's file.
    pub object: String,
    /// Name of the C function.
    pub program: String,
    /// Microseconds of verification.
    pub verify_us: f64,
    /// Microseconds of lowering to operations; none if it can't be lowered.
    pub lower_us: Option<f64>,
    /// Microseconds of compiling these to machine code; none if this host is not supported.
    pub code_us: Option<f64>,
    /// Microseconds in which the kernel created its maps and loaded it with its BTF; none if that
    /// was not measured.
    pub kernel_load_us: Option<f64>,
}

/// A number with one decimal place.
fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

fn microseconds(time: Duration) -> f64 {
    tenths(time.as_secs_f64() * 1e6)
}

impl BenchRow {
    /// A row without a time.
    #[must_use]
    pub fn new(object: &str, program: &Program, event: &str, engine: &'static str) -> Self {
        Self {
            kind: "bench",
            object: object.to_owned(),
            program: program.name.clone(),
            section: program.section.clone(),
            prog_type: program.prog_type.name(),
            event: event.to_owned(),
            engine,
            ns_per_run: None,
            insns: None,
            ratio: None,
            to: None,
            unavailable: None,
            before_ns: None,
            samples: Vec::new(),
        }
    }

    /// The row with nanoseconds per run of each measurement.
    #[must_use]
    pub fn timed(self, samples: Vec<f64>, insns: Option<u64>) -> Self {
        Self {
            ns_per_run: Some(tenths(median(samples.clone()))),
            insns,
            samples,
            ..self
        }
    }

    /// The row of an engine that does not run the program.
    #[must_use]
    pub fn absent(self, why: &str) -> Self {
        Self {
            unavailable: Some(why.to_owned()),
            ..self
        }
    }

    /// How much longer a run takes than in the earlier run, in percent; negative if it is faster.
    #[must_use]
    pub fn change(&self) -> Option<f64> {
        let (now, before) = self.ns_per_run.zip(self.before_ns)?;
        (before > 0.0).then(|| (now / before - 1.0) * 100.0)
    }

    /// Compares the rows of a program with the last one that has times: medians of the ratios of
    /// times measured in the same turn.
    pub fn compare(rows: &mut [Self]) {
        let last = rows.iter().rfind(|row| row.unavailable.is_none());
        let Some((to, samples)) = last.map(|row| (row.engine, row.samples.clone())) else {
            return;
        };
        for row in rows.iter_mut().filter(|row| row.unavailable.is_none()) {
            let pairs = row.samples.iter().zip(&samples);
            let ratio = median(pairs.map(|(own, to)| own / to).collect());
            row.ratio = ratio.is_finite().then(|| (ratio * 100.0).round() / 100.0);
            row.to = Some(to);
        }
    }
}

impl ReadyRow {
    /// The times of bpflab.
    #[must_use]
    pub fn new(object: &str, program: &Program, time: CompileTime) -> Self {
        Self {
            kind: "ready",
            object: object.to_owned(),
            program: program.name.clone(),
            verify_us: microseconds(time.verify),
            lower_us: time.lower.map(microseconds),
            code_us: time.code.map(microseconds),
            kernel_load_us: None,
        }
    }

    /// Adds the time of loading in the kernel, if it was loaded there.
    pub fn kernel_load(&mut self, time: Option<Duration>) {
        self.kernel_load_us = time.map(microseconds).or(self.kernel_load_us);
    }
}

/// The rows of a program, as a table.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct BenchTable<'a> {
    /// A row for each engine.
    pub rows: &'a [BenchRow],
    /// The times of preparing it.
    pub ready: &'a ReadyRow,
}

impl fmt::Display for BenchTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.rows.first() else {
            return Ok(());
        };
        let insns = self.rows.iter().find_map(|row| row.insns);
        let insns = insns.map_or(String::new(), |insns| {
            format!(", {insns} instructions a run")
        });
        let BenchRow {
            program,
            prog_type,
            event,
            ..
        } = first;
        writeln!(f, "{program} ({prog_type}) on {event}{insns}")?;
        let to = self.rows.iter().find_map(|row| row.to).unwrap_or("jit");
        let mut table = Table::default().numbers(&[1, 2, 3, 4, 5]);
        let mut heading = vec!["engine", "ns a run", "ns an insn"];
        let to = format!("to {to}");
        heading.push(&to);
        let is_compared = self.rows.iter().any(|row| row.before_ns.is_some());
        if is_compared {
            heading.extend(["before", "change"]);
        }
        table.row(heading);
        for row in self.rows {
            let engine = row.engine.to_owned();
            let Some(ns) = row.ns_per_run else {
                let why = row.unavailable.as_deref().unwrap_or_default();
                table.line(format!("  {engine}: not available: {why}"));
                continue;
            };
            #[expect(clippy::cast_precision_loss, reason = "a mean needs no 64 bits")]
            let each = row
                .insns
                .filter(|insns| *insns > 0)
                .map(|insns| ns / insns as f64);
            let or_none =
                |number: Option<f64>| number.map_or("–".into(), |it| format!("{it:.2}"));
            let mut cells = vec![
                engine,
                format!("{ns:.1}"),
                or_none(each),
                or_none(row.ratio),
            ];
            if is_compared {
                let change = row.change().map(|change| format!("{change:+.1}%"));
                cells.push(row.before_ns.map_or("–".into(), |ns| format!("{ns:.1}")));
                cells.push(change.unwrap_or_else(|| "–".into()));
            }
            table.row(cells);
        }
        write!(f, "{table}")?;
        let ready = self.ready;
        write!(f, "  ready after: verify {:.1} µs", ready.verify_us)?;
        let parts = [
            ("lower", ready.lower_us),
            ("code", ready.code_us),
            ("the kernel's load", ready.kernel_load_us),
        ];
        for (what, time) in parts {
            if let Some(us) = time {
                write!(f, ", {what} {us:.1} µs")?;
            }
        }
        writeln!(f)
    }
}
