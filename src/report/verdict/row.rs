//! A verdict on a program: a row of a table, or a line of JSON.

use std::fmt;

use serde::Serialize;

use super::kernel_said::{KernelSaid, Match};
use super::words::{reason, word};
use crate::program::Program;
use crate::report::refused::Refused;
use crate::report::rejection::Rejection;
use crate::verifier::{Reject, Verdict};

/// What is judged. Its fields are keys of `--json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Subject {
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
}

impl Subject {
    /// A program of this file.
    #[must_use]
    pub fn of_program(object: &str, program: &Program) -> Self {
        Self {
            id: None,
            object: Some(object.to_owned()),
            program: Some(program.name.clone()),
            section: Some(program.section.clone()),
            prog_type: Some(program.prog_type.name()),
        }
    }

    /// With the id of a case.
    #[must_use]
    pub fn with_id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    /// Whether programs come from more than one file, so that each is to be named. A
    /// case has a name of its own.
    pub(super) fn several_objects<'s>(subjects: impl Iterator<Item = &'s Self> + Clone) -> bool {
        let mut objects = subjects.clone().map(|subject| &subject.object);
        let first = objects.next();
        let cases = subjects.clone().any(|subject| subject.id.is_some());
        !cases && objects.any(|object| Some(object) != first)
    }

    /// What it is called, with its file's name if there are several files.
    pub(super) fn name_among(&self, several: bool) -> String {
        match &self.object {
            Some(path) if several && self.id.is_none() => {
                let file = path.rsplit('/').next().unwrap_or(path);
                format!("{file}/{}", self.name())
            }
            _ => self.name().to_owned(),
        }
    }

    /// What it is called where there is room for one word.
    #[must_use]
    pub fn name(&self) -> &str {
        let name = self.id.as_deref().or(self.program.as_deref());
        name.unwrap_or("?")
    }
}

/// What became of a program. Its fields are the keys of `--json`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct VerdictRow {
    /// The program.
    #[serde(flatten)]
    pub subject: Subject,
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
    /// Where it was refused; only our own verifier tells.
    #[serde(flatten)]
    pub refused: Option<Refused>,
    /// Instructions that the verifier walked.
    pub processed: Option<u64>,
    /// States that it made.
    pub total_states: Option<u64>,
    /// The most states at one time.
    pub peak_states: Option<u64>,
    /// Microseconds that it took.
    pub time_us: Option<u64>,
    /// What the running kernel said, where it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelSaid>,
    /// How the two verdicts compare; null where the kernel gave none.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub matches: Option<Option<Match>>,
    /// Why it was refused, in its author's words; only our own verifier tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Rejection>,
    /// The verifier's log, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

impl VerdictRow {
    /// A row about a program that is not judged yet.
    #[must_use]
    pub fn of(subject: Subject) -> Self {
        Self {
            subject,
            ..Self::default()
        }
    }

    /// A row about something that is no program.
    #[must_use]
    pub fn broken(subject: Subject, message: &str) -> Self {
        Self {
            subject,
            verdict: "error",
            why: Some("input"),
            message: message.to_owned(),
            ..Self::default()
        }
    }

    /// With a verdict, and its log if `log` asks for it.
    #[must_use]
    pub fn judged(mut self, verdict: &Verdict, log: bool) -> Self {
        self.verdict = word(verdict.accepted);
        self.errno = verdict.errno.map_or(0, |errno| errno.0);
        self.message.clone_from(&verdict.message);
        self.processed = Some(verdict.processed());
        let statistics = verdict.statistics.as_ref();
        self.total_states = statistics.map(|statistics| statistics.total_states);
        self.peak_states = statistics.map(|statistics| statistics.peak_states);
        self.time_us = statistics.and_then(|statistics| statistics.time_us);
        self.log = log.then(|| verdict.log.clone());
        self
    }

    /// With the place where it was refused, and if `explain` is set, why.
    #[must_use]
    pub fn refused(mut self, reject: Option<&Reject>, program: &Program, explain: bool) -> Self {
        self.refused = Some(Refused::at(reject.and_then(Reject::pc), program));
        let explained = reject.filter(|_| explain);
        self.report = explained.map(|reject| Rejection::new(program, reject));
        self
    }

    /// With the reason why the kernel did not judge.
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    #[must_use]
    pub fn not_judged(mut self, none: &crate::kernel::NoVerdict) -> Self {
        self.verdict = "error";
        self.why = Some(none.kind.name());
        self.errno = none.error.errno.0;
        self.message = none.to_string();
        self
    }

    /// Whether there is a verdict.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        self.verdict != "error"
    }

    /// Error number and message, as far as there are any.
    #[must_use]
    pub fn reason(&self) -> String {
        match self.verdict {
            "accept" => String::new(),
            _ => reason(self.errno, &self.message),
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
