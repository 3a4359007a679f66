//! The report on a log.

use serde::Serialize;

use super::older::modern_lines;
use super::parsed::Parsed;
use super::rebuild;
use super::text::Pasted;
use crate::isa::{Code, Reg};
use crate::program::Program;
use crate::util::{Errno, Pc};
use crate::verifier::diagnose::{Refused, Report};
use crate::verifier::{Options, Reject, Trail, Unverified, verify};

/// What there is to say about a log. Its fields are keys of `--json`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Explained {
    /// The error line, as the log has it; empty if the log has none.
    pub message: String,
    /// Where the kernel stopped.
    #[serde(flatten)]
    pub refused: Refused,
    /// The report; null without an error line.
    pub report: Option<Report>,
    /// The kernel's lines behind the last instruction.
    #[serde(skip)]
    pub error: Vec<String>,
    /// bpflab's own verdict on the object's program; null without one that fits the log.
    pub own: Option<Own>,
}

/// bpflab's own verdict on an object's program. Its fields are the keys of `own`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Own {
    /// `accept`, `reject` or `unjudged`.
    pub verdict: &'static str,
    /// The error line.
    pub message: String,
    /// The instruction.
    pub insn: Option<u32>,
    /// Whether the log has the same error line at the same instruction; null if bpflab does not
    /// judge the program.
    pub same: Option<bool>,
}

impl Explained {
    /// Explains a log, with the object's program if it [fits](Self::differs), and gives
    /// bpflab's own verdict on that program.
    #[must_use]
    pub fn new(log: &Pasted, object: Option<&Program>) -> Self {
        let mut explained = Self::of(log, object);
        if let (Some(program), Some(_)) = (object, &explained.report) {
            let lines = modern_lines(&explained.error);
            let message = lines.last().map_or("", String::as_str);
            explained.own = Some(own(program, explained.refused.insn.map(Pc), message));
        }
        explained
    }

    /// Explains a log as [`new`](Self::new) does, without bpflab's own verdict.
    #[must_use]
    pub fn of(log: &Pasted, object: Option<&Program>) -> Self {
        let parsed = Parsed::of(&log.lines);
        let shown = shown(log, &parsed);
        let program = object.unwrap_or(&shown);
        let at = parsed.at();
        let refused = Refused::at(at, program);
        let Some(message) = parsed.error.last().cloned() else {
            return Self {
                message: String::new(),
                refused,
                report: None,
                error: Vec::new(),
                own: None,
            };
        };
        let lines = modern_lines(&parsed.error);
        let mut reject = Reject::new(log.errno.unwrap_or(Errno(0)), lines.join("\n"));
        if let Some(at) = at {
            let registers = registers(&parsed, &shown);
            let path = parsed.path.clone();
            reject = reject.at(at).with_trail(|| Trail {
                path,
                registers,
                ..Trail::default()
            });
        }
        let prog_type = object.map(|object| object.prog_type.name());
        let report = Report::of_log(program, prog_type, &reject);
        Self {
            own: None,
            message,
            refused,
            report: Some(report),
            error: parsed.error,
        }
    }

    /// Whether bpflab has advice for the error line.
    #[must_use]
    pub fn has_advice(&self) -> bool {
        let report = self.report.as_ref();
        report.is_some_and(|report| report.help.is_some())
    }

    /// The first instruction of the log that a program of an object has not.
    #[must_use]
    pub fn differs(log: &Pasted, object: &Program) -> Option<Pc> {
        let parsed = Parsed::of(&log.lines);
        rebuild::differs(object, &shown(log, &parsed))
    }
}

fn shown(log: &Pasted, parsed: &Parsed) -> Program {
    rebuild::program(log.program.as_deref().unwrap_or("the program"), parsed)
}

/// The registers before the last instruction. A state from before an instruction that wrote the
/// register since is not one.
fn registers(parsed: &Parsed, shown: &Program) -> Vec<(Reg, String)> {
    let known = parsed.known(&Code::new(&shown.insns));
    let all = known.into_iter();
    all.filter_map(|(number, state)| Some((Reg::from_number(number)?, state)))
        .collect()
}

fn own(program: &Program, at: Option<Pc>, message: &str) -> Own {
    let verification = verify(&std::sync::Arc::new(program.clone()), &Options::default());
    let verdict = &verification.verdict;
    let why = verification.outcome.as_ref().err();
    let insn = why.and_then(Unverified::pc);
    let same = verdict.message == message && insn == at;
    Own {
        verdict: verdict.decision.word(),
        message: verdict.message.clone(),
        insn: insn.map(|pc| pc.0),
        same: (!verdict.is_unjudged()).then_some(same),
    }
}
