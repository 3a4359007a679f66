//! The short form of a report.

use crate::verifier::diagnose::Report;

/// The short form of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Headline {
    /// The category's name.
    pub category: &'static str,
    /// What is wrong, in a few words.
    pub problem: String,
    /// The reason at this instruction.
    pub reason: String,
    /// What to change.
    pub help: Option<String>,
}

impl Headline {
    /// That of a report.
    pub(super) fn of(report: &Report) -> Self {
        Self {
            category: report.category,
            problem: report.problem.clone(),
            reason: report.reason.clone(),
            help: report.help.clone(),
        }
    }
}
