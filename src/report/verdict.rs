//! A verdict on a program: a line of text, or a JSON row.

use std::fmt;

use serde::Serialize;

use crate::kernel::NoVerdict;
use crate::program::Program;
use crate::verifier::Verdict;

/// What became of a program. Its fields are the keys of `--json`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct VerdictRow {
    /// The case's id; only where cases are judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The file that the program comes from.
    pub object: Option<String>,
    /// Name of the C function.
    pub program: Option<String>,
    /// Section that it stands in.
    pub section: Option<String>,
    /// Name of the program type.
    pub prog_type: Option<&'static str>,
    /// `accept`, `reject`, or `error`: not judged.
    pub verdict: &'static str,
    /// Why it was not judged: `input`, or the name of a `NoVerdictKind`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
    /// The error number, positive; 0 for an accepted program.
    pub errno: u16,
    /// The kernel's error line, the last of its log before the statistics; what is
    /// wrong for a program that was not judged.
    pub message: String,
    /// Instructions that the verifier walked.
    pub processed: Option<u64>,
    /// Microseconds that it took.
    pub time_us: Option<u64>,
    /// The verifier's log, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

impl VerdictRow {
    /// A row about a program of this file, not judged yet.
    #[must_use]
    pub fn of_program(object: &str, program: &Program) -> Self {
        Self {
            object: Some(object.to_owned()),
            program: Some(program.name.clone()),
            section: Some(program.section.clone()),
            prog_type: Some(program.prog_type.name()),
            ..Self::default()
        }
    }

    /// A row about something that is no program.
    #[must_use]
    pub fn broken(message: &str) -> Self {
        Self {
            verdict: "error",
            why: Some("input"),
            message: message.to_owned(),
            ..Self::default()
        }
    }

    /// With the id of a case.
    #[must_use]
    pub fn with_id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    /// With the kernel's verdict, and its log if `log` asks for it.
    #[must_use]
    pub fn judged(mut self, verdict: &Verdict, log: bool) -> Self {
        self.verdict = if verdict.accepted { "accept" } else { "reject" };
        self.errno = verdict.errno.map_or(0, |errno| errno.0);
        self.message.clone_from(&verdict.message);
        self.processed = Some(verdict.processed());
        self.time_us = verdict
            .statistics
            .as_ref()
            .and_then(|statistics| statistics.time_us);
        self.log = log.then(|| verdict.log.clone());
        self
    }

    /// With the reason why the kernel did not judge.
    #[must_use]
    pub fn not_judged(mut self, none: &NoVerdict) -> Self {
        self.verdict = "error";
        self.why = Some(none.kind.name());
        self.errno = none.error.errno.0;
        self.message = none.to_string();
        self
    }
}

impl fmt::Display for VerdictRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(log) = &self.log {
            write!(f, "{log}")?;
        }
        let name = self.id.as_deref().or(self.program.as_deref());
        write!(f, "{} {}", self.verdict, name.unwrap_or("?"))?;
        if let Some(prog_type) = self.prog_type {
            write!(f, " ({prog_type})")?;
        }
        if let Some(processed) = self.processed {
            write!(f, ": {processed} instructions processed")?;
        }
        if let Some(time) = self.time_us {
            write!(f, " in {time} us")?;
        }
        match (self.verdict, self.message.as_str()) {
            ("accept", _) => writeln!(f),
            (_, "") => writeln!(f, "\n  {:?}", crate::util::Errno(self.errno)),
            ("reject", line) => writeln!(f, "\n  {:?}: {line}", crate::util::Errno(self.errno)),
            (_, line) => writeln!(f, "\n  {line}"),
        }
    }
}

/// How many programs were accepted, rejected, and not judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VerdictTally {
    accepted: usize,
    rejected: usize,
    not_judged: usize,
}

impl VerdictTally {
    /// Counts a row.
    pub fn add(&mut self, row: &VerdictRow) {
        match row.verdict {
            "accept" => self.accepted += 1,
            "reject" => self.rejected += 1,
            _ => self.not_judged += 1,
        }
    }

    /// Whether every program was accepted.
    #[must_use]
    pub const fn all_accepted(&self) -> bool {
        self.rejected == 0 && self.not_judged == 0
    }
}

impl fmt::Display for VerdictTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} accepted, {} rejected, {} not judged",
            self.accepted, self.rejected, self.not_judged
        )
    }
}
