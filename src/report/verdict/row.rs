//! A verdict on a program: a row of a table, or a line of JSON.

use std::fmt;

use serde::Serialize;

use super::headline::Headline;
use super::kernel_said::{KernelSaid, Match};
use super::missing::MissingRow;
use super::words::{errno, is_verdict, reason};
use crate::explain::Explained;
use crate::object::Entry;
use crate::program::Program;
use crate::util::base_name;
use crate::verifier::diagnose::{Refused, Report};
use crate::verifier::{Decision, Unverified, Verdict};

/// The reason for no verdict on a program whose section names no program type.
const NO_TYPE: &str = "no type";

/// The program that a verdict is on. Its fields are keys of `--json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Subject {
    /// The case's id; only of cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The program's file.
    pub object: Option<String>,
    /// Name of the C function.
    pub program: Option<String>,
    /// Its section.
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

    /// The program of an entry that can't be relocated.
    #[must_use]
    pub fn of_entry(object: &str, entry: &Entry) -> Self {
        Self {
            id: None,
            object: Some(object.to_owned()),
            program: Some(entry.name().to_owned()),
            section: Some(entry.section().to_owned()),
            prog_type: entry.prog_type().map(|prog_type| prog_type.name()),
        }
    }

    /// With the id of a case.
    #[must_use]
    pub fn with_id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    /// Whether programs come from several files, so that each needs its file's name. Cases have
    /// ids instead.
    pub(super) fn several_objects<'s>(subjects: impl Iterator<Item = &'s Self> + Clone) -> bool {
        let mut objects = subjects.clone().map(|subject| &subject.object);
        let first = objects.next();
        let cases = subjects.clone().any(|subject| subject.id.is_some());
        !cases && objects.any(|object| Some(object) != first)
    }

    /// Its name, with its file's name if there are several files.
    pub(super) fn name_among(&self, several: bool) -> String {
        match &self.object {
            Some(path) if several && self.id.is_none() => {
                format!("{}/{}", base_name(path), self.name())
            }
            _ => self.name().to_owned(),
        }
    }

    /// Its name: the case's id or the program's name.
    #[must_use]
    pub fn name(&self) -> &str {
        let name = self.id.as_deref().or(self.program.as_deref());
        name.unwrap_or("?")
    }
}

/// The verdict on a program. Its fields are the keys of `--json`.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct VerdictRow {
    /// The program.
    #[serde(flatten)]
    pub subject: Subject,
    /// `accept`, `reject` or `unjudged`; `error` if there is no program or no verdict.
    pub verdict: &'static str,
    /// Why the verdict is `error`: `input`, `no type`, or the name of a `NoVerdictKind`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
    /// The error number, positive; 0 for none, null for an unjudged program.
    pub errno: Option<u16>,
    /// The error line, the last of the log before the statistics; for an unjudged program what
    /// is not modelled, for an `error` the reason.
    pub message: String,
    /// Features that are not modelled; only of unjudged programs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingRow>,
    /// Where the verifier stopped; of the kernel only with a report.
    #[serde(flatten)]
    pub refused: Option<Refused>,
    /// Instructions that the verifier processed; null for an unjudged program.
    pub processed: Option<u64>,
    /// States that it created.
    pub total_states: Option<u64>,
    /// The most states at one time.
    pub peak_states: Option<u64>,
    /// Microseconds that it took.
    pub time_us: Option<u64>,
    /// The kernel BTF that the verdict depends on: its file, or `own` for the object's own;
    /// null if the program was verified without.
    pub btf: Option<String>,
    /// The capabilities of the loader for which the program was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
    /// The loader's BPF token: in its user namespace the loader has these capabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The running kernel's verdict, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelSaid>,
    /// How the two verdicts compare; null without the kernel's.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub matches: Option<Option<Match>>,
    /// Why it is not accepted, in terms of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// The short form of the report, if it was asked for.
    #[serde(skip)]
    pub headline: Option<Headline>,
    /// The verifier's log, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

impl VerdictRow {
    /// A row without a verdict yet.
    #[must_use]
    pub fn of(subject: Subject) -> Self {
        Self {
            subject,
            ..Self::default()
        }
    }

    /// A row about input that is not a program.
    #[must_use]
    pub fn broken(subject: Subject, message: &str) -> Self {
        Self {
            subject,
            verdict: "error",
            why: Some("input"),
            errno: Some(0),
            message: message.to_owned(),
            ..Self::default()
        }
    }

    /// A row about a program whose section names no program type: no verdict.
    #[must_use]
    pub fn untyped(subject: Subject, message: &str) -> Self {
        Self {
            why: Some(NO_TYPE),
            ..Self::broken(subject, message)
        }
    }

    /// The verdict in a table.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self.why {
            Some(NO_TYPE) => NO_TYPE,
            _ => self.verdict,
        }
    }

    /// Adds a verdict, and its log if `log` is set.
    #[must_use]
    pub fn judged(mut self, verdict: &Verdict, log: bool) -> Self {
        self.verdict = verdict.decision.word();
        self.errno = errno(verdict.decision, verdict.errno);
        self.message.clone_from(&verdict.message);
        let statistics = verdict.statistics.as_ref();
        self.time_us = statistics.and_then(|statistics| statistics.time_us);
        // Counts up to an unmodelled feature are not counts of the program.
        let whole = statistics.filter(|_| !verdict.is_unjudged());
        self.processed = whole.map(|statistics| statistics.processed);
        self.total_states = whole.map(|statistics| statistics.total_states);
        self.peak_states = whole.map(|statistics| statistics.peak_states);
        self.log = log.then(|| verdict.log.clone());
        self
    }

    /// Adds why the program is not accepted: the instruction, features that are not modelled, and
    /// if `explain` is set, the report.
    #[must_use]
    pub fn refused(mut self, why: Option<&Unverified>, program: &Program, explain: bool) -> Self {
        self.refused = Some(Refused::at(why.and_then(Unverified::pc), program));
        if let Some(unjudged) = why.and_then(Unverified::unjudged) {
            let missing = unjudged.missing().iter();
            self.missing = missing
                .map(|missing| MissingRow::new(missing, program))
                .collect();
        }
        let explained = why.filter(|_| explain);
        self.report = explained.map(|why| Report::new(program, why));
        self
    }

    /// Adds the short form of the report.
    #[must_use]
    pub fn with_headline(mut self, why: Option<&Unverified>, program: &Program) -> Self {
        let report = why.map(|why| Report::new(program, why));
        self.headline = report.as_ref().map(Headline::of);
        self
    }

    /// Adds where the kernel stopped and the report, from its log.
    #[must_use]
    pub fn explained(mut self, explained: Explained) -> Self {
        self.refused = Some(explained.refused);
        self.report = explained.report;
        self
    }

    /// Adds why the kernel gave no verdict.
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    #[must_use]
    pub fn not_judged(mut self, none: &crate::kernel::NoVerdict) -> Self {
        self.verdict = "error";
        self.why = Some(none.kind.name());
        self.errno = Some(none.error.errno.0);
        self.message = none.to_string();
        self
    }

    /// Whether there is a verdict: accepted or rejected.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        is_verdict(self.verdict)
    }

    /// Error number and message, as far as there are any.
    #[must_use]
    pub fn reason(&self) -> String {
        if self.verdict == Decision::Accept.word() {
            return String::new();
        }
        reason(self.errno, &self.message)
    }
}

/// How many programs were accepted, rejected and not judged, and how many rows are errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VerdictTally {
    accepted: usize,
    rejected: usize,
    unjudged: usize,
    errors: usize,
}

impl VerdictTally {
    /// Counts a row.
    pub fn add(&mut self, row: &VerdictRow) {
        let is = |decision: Decision| row.verdict == decision.word();
        let count = if is(Decision::Accept) {
            &mut self.accepted
        } else if is(Decision::Reject) {
            &mut self.rejected
        } else if is(Decision::Unjudged) {
            &mut self.unjudged
        } else {
            &mut self.errors
        };
        *count += 1;
    }

    /// Whether every program was accepted.
    #[must_use]
    pub const fn all_accepted(&self) -> bool {
        self.rejected == 0 && self.unjudged == 0 && self.errors == 0
    }
}

/// `3 accepted, 1 rejected, 2 not judged`, and the errors if there are any.
impl fmt::Display for VerdictTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} accepted, {} rejected, {} not judged",
            self.accepted, self.rejected, self.unjudged
        )?;
        match self.errors {
            0 => Ok(()),
            1 => f.write_str(", 1 error"),
            errors => write!(f, ", {errors} errors"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_judged_has_its_own_total() {
        let mut tally = VerdictTally::default();
        for verdict in ["accept", "reject", "unjudged", "unjudged", "accept"] {
            tally.add(&VerdictRow {
                verdict,
                ..VerdictRow::default()
            });
        }
        assert_eq!(tally.to_string(), "2 accepted, 1 rejected, 2 not judged");
        tally.add(&VerdictRow::broken(Subject::default(), "no program"));
        assert_eq!(
            tally.to_string(),
            "2 accepted, 1 rejected, 2 not judged, 1 error"
        );
        let mut unjudged = VerdictTally::default();
        assert!(unjudged.all_accepted());
        unjudged.unjudged = 1;
        assert!(!unjudged.all_accepted());
    }
}
