//! The scores, and the comparison of one case with the kernel's verdict.

use std::fmt;
use std::ops::AddAssign;

use bpflab::object::cases::KernelSays;
use bpflab::verifier::Decision;

pub use bpflab::fuzz::{Difference, Ours};

/// The score over some cases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Score {
    /// Cases.
    pub cases: usize,
    /// Cases that the kernel accepts: the score of a verifier that always accepts.
    pub accepted: usize,
    /// Cases with the same verdict as the kernel.
    pub verdict: usize,
    /// Cases that only we accept.
    pub false_accepts: usize,
    /// Cases that only we reject.
    pub false_rejects: usize,
    /// Rejects with the kernel's error number.
    pub errno: usize,
    /// Rejects with the kernel's error line.
    pub line: usize,
    /// Accepted programs with the kernel's number of instructions.
    pub processed: usize,
    /// Unjudged cases; they count neither as equal nor as different.
    pub unjudged: usize,
    /// Cases in which the verifier panicked.
    pub panics: usize,
}

impl Score {
    /// The score of one case.
    pub fn of(ours: &Ours, differences: &[Difference], says: &KernelSays) -> Self {
        let has = |difference| differences.contains(&difference);
        let accepted = says.accepts();
        if ours.decision == Decision::Unjudged {
            return Self {
                cases: 1,
                accepted: accepted.into(),
                unjudged: 1,
                ..Self::default()
            };
        }
        let same = !has(Difference::FalseAccept) && !has(Difference::FalseReject);
        Self {
            cases: 1,
            accepted: accepted.into(),
            verdict: same.into(),
            false_accepts: has(Difference::FalseAccept).into(),
            false_rejects: has(Difference::FalseReject).into(),
            errno: (same && !accepted && !has(Difference::Errno)).into(),
            line: (same && !accepted && !has(Difference::Line)).into(),
            processed: (same && accepted && !has(Difference::Processed)).into(),
            unjudged: 0,
            panics: has(Difference::Panic).into(),
        }
    }

    /// The column headers of a score.
    pub const HEADER: &str = "  cases  not judged  verdict equal   false accept/reject  errno equal      line equal       \
                              processed equal  always accept";
}

impl AddAssign for Score {
    fn add_assign(&mut self, other: Self) {
        self.cases += other.cases;
        self.accepted += other.accepted;
        self.verdict += other.verdict;
        self.false_accepts += other.false_accepts;
        self.false_rejects += other.false_rejects;
        self.errno += other.errno;
        self.line += other.line;
        self.processed += other.processed;
        self.unjudged += other.unjudged;
        self.panics += other.panics;
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rejected = self.cases - self.accepted;
        let share = |part: usize, whole: usize| {
            // Rounded down, so that 100 % means all.
            let tenths = (1000 * part).checked_div(whole).unwrap_or(1000);
            format!(
                "{:<14} ",
                format!("{part}/{whole} {}.{}%", tenths / 10, tenths % 10)
            )
        };
        write!(
            f,
            "{:>7} {:>11}  {} {:>12}/{:<6}  {}  {}  {}  {}",
            self.cases,
            self.unjudged,
            share(self.verdict, self.cases),
            self.false_accepts,
            self.false_rejects,
            share(self.errno, rejected),
            share(self.line, rejected),
            share(self.processed, self.accepted),
            share(self.accepted, self.cases),
        )?;
        if self.panics > 0 {
            write!(f, "  {} panics", self.panics)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_judged_is_equal_to_nothing() {
        for verdict in ["accept", "reject"] {
            let mut says = KernelSays::default();
            says.verdict = verdict.to_owned();
            let ours = Ours {
                decision: Decision::Unjudged,
                errno: 0,
                line: String::new(),
                processed: 0,
                panic: None,
            };
            let differences = Difference::between(&ours, &says);
            assert_eq!(differences, []);
            let score = Score::of(&ours, &differences, &says);
            let only = Score {
                cases: 1,
                accepted: usize::from(verdict == "accept"),
                unjudged: 1,
                ..Score::default()
            };
            assert_eq!(score, only);
        }
    }
}
