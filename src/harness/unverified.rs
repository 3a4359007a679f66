//! Programs that are not verified, as errors show them.

use std::fmt;

use crate::program::Program;
use crate::verifier::diagnose::Report;
use crate::verifier::{Unverified, Verification};

/// A program that is rejected or unjudged, with the report that says why.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UnverifiedProgram {
    /// The name of the program.
    pub program: String,
    /// Why it is not verified.
    pub why: Unverified,
    /// The same as a report, with the lines of C.
    pub report: Report,
}

impl UnverifiedProgram {
    /// The report on a program; `None` if the program is verified.
    #[must_use]
    pub fn of(program: &Program, verification: &Verification) -> Option<Self> {
        let why = verification.outcome.as_ref().err()?;
        Some(Self {
            program: program.name.clone(),
            report: Report::new(program, why),
            why: why.clone(),
        })
    }
}

/// `program 'on_write' is rejected: R1 min value …`, and the report.
impl fmt::Display for UnverifiedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "program '{}' ", self.program)?;
        match &self.why {
            Unverified::Rejected(reject) => {
                write!(f, "is rejected: {:?}: {}", reject.errno(), reject.text())?;
            }
            Unverified::Unjudged(unjudged) => write!(f, "is not judged: {unjudged}")?,
        }
        write!(f, "\n\n{}", self.report)
    }
}

/// The texts of several programs, one per line group.
pub(crate) fn describe_unverified(programs: &[UnverifiedProgram]) -> String {
    let told: Vec<_> = programs.iter().map(ToString::to_string).collect();
    told.join("\n")
}
