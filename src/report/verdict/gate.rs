//! Which changes since an earlier run fail: `--fail-on LIST`.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use thiserror::Error;

use super::baseline::Before;
use super::row::VerdictRow;
use crate::harness::converts;
use crate::verifier::Decision;

/// A change that fails.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum FailOn {
    /// A program is not accepted that was accepted or did not exist.
    Verdict,
    /// A program of the earlier run is not in this run.
    Missing,
    /// A count of an accepted program grew by more than this.
    Growth(Count, Percent),
}

/// A count of the verifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Count {
    /// Instructions that it processed.
    Insns,
    /// States that it created.
    States,
}

/// A share of the earlier count, in percent; not negative.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Percent(f64);

/// A word of `--fail-on` that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown change '{0}'; known are verdict, missing, insns>N% and states>N%")]
pub struct FailOnError(String);

converts! {
    FailOnError;
}

impl FromStr for FailOn {
    type Err = FailOnError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let growth = || {
            let (count, limit) = text.split_once('>')?;
            let count = match count.trim() {
                "insns" => Count::Insns,
                "states" => Count::States,
                _ => return None,
            };
            let percent: f64 = limit.trim().strip_suffix('%')?.trim().parse().ok()?;
            let known = percent.is_finite() && percent >= 0.0;
            known.then_some(Self::Growth(count, Percent(percent)))
        };
        match text {
            "verdict" => Ok(Self::Verdict),
            "missing" => Ok(Self::Missing),
            _ => growth().ok_or_else(|| FailOnError(text.to_owned())),
        }
    }
}

/// As it is given on the command line.
impl fmt::Display for FailOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verdict => f.write_str("verdict"),
            Self::Missing => f.write_str("missing"),
            Self::Growth(Count::Insns, Percent(limit)) => write!(f, "insns>{limit}%"),
            Self::Growth(Count::States, Percent(limit)) => write!(f, "states>{limit}%"),
        }
    }
}

impl Serialize for FailOn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FailOn {
    /// Whether the change from `before` to `now` is one; `None` is a program that is in the other
    /// run only.
    pub(super) fn fits(self, now: Option<&VerdictRow>, before: Option<&Before>) -> bool {
        let accept = Decision::Accept.word();
        let was_accepted = before.map(|was| was.verdict == accept);
        match (self, now) {
            (Self::Verdict, Some(now)) => now.verdict != accept && was_accepted.unwrap_or(true),
            (Self::Missing, now) => now.is_none(),
            (Self::Growth(count, limit), Some(now)) => {
                now.verdict == accept
                    && before.is_some_and(|before| {
                        let counts = match count {
                            Count::Insns => (now.processed, before.processed),
                            Count::States => (now.total_states, before.total_states),
                        };
                        was_accepted == Some(true) && limit.is_exceeded(counts)
                    })
            }
            (Self::Verdict | Self::Growth(..), None) => false,
        }
    }
}

impl Percent {
    /// Whether the first count is greater than the second by more than this.
    fn is_exceeded(self, counts: (Option<u64>, Option<u64>)) -> bool {
        let (Some(now), Some(before)) = counts else {
            return false;
        };
        // Enough: the verifier's limit is a million instructions.
        let number = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        number(now) * 100.0 > number(before) * (100.0 + self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before(verdict: &str, processed: u64) -> Option<Before> {
        let mut was = Before::default();
        was.verdict = verdict.to_owned();
        was.processed = Some(processed);
        was.total_states = Some(0);
        Some(was)
    }

    fn fails(word: &str, now: Option<(&'static str, u64)>, before: Option<Before>) -> bool {
        let row = now.map(|(verdict, processed)| VerdictRow {
            verdict,
            processed: Some(processed),
            total_states: Some(1),
            ..VerdictRow::default()
        });
        word.parse::<FailOn>()
            .unwrap()
            .fits(row.as_ref(), before.as_ref())
    }

    #[test]
    fn a_verdict_fails_if_it_is_worse_and_not_if_it_was_as_bad() {
        assert!(fails("verdict", Some(("reject", 1)), before("accept", 1)));
        assert!(fails("verdict", Some(("unjudged", 1)), before("accept", 1)));
        assert!(fails("verdict", Some(("reject", 1)), None));
        assert!(!fails("verdict", Some(("reject", 1)), before("reject", 1)));
        assert!(!fails("verdict", Some(("accept", 1)), before("reject", 1)));
        assert!(!fails("verdict", Some(("accept", 1)), None));
        assert!(!fails("verdict", None, before("accept", 1)));
        assert!(fails("missing", None, before("accept", 1)));
        assert!(!fails("missing", Some(("accept", 1)), None));
    }

    #[test]
    fn growth_fails_above_the_limit() {
        let accept = |count| Some(("accept", count));
        assert!(!fails("insns>10%", accept(110), before("accept", 100)));
        assert!(fails("insns>10%", accept(111), before("accept", 100)));
        assert!(fails("insns>0%", accept(101), before("accept", 100)));
        assert!(fails("insns > 2.5 %", accept(103), before("accept", 100)));
        assert!(!fails("insns>10%", accept(50), before("accept", 100)));
        // Counts of rejects say nothing about the whole program.
        assert!(!fails("insns>10%", accept(500), before("reject", 3)));
        assert!(!fails(
            "insns>10%",
            Some(("reject", 500)),
            before("accept", 3)
        ));
        assert!(!fails("insns>10%", accept(500), None));
        assert!(fails("states>900%", accept(1), before("accept", 1)));
    }

    #[test]
    fn words_are_read_as_they_are_printed() {
        for word in ["verdict", "missing", "insns>10%", "states>2.5%"] {
            assert_eq!(word.parse::<FailOn>().unwrap().to_string(), word);
        }
        for word in ["", "us>10%", "insns>10", "insns>-1%", "insns>nan%", "insns"] {
            let error = word.parse::<FailOn>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("unknown change '{word}'")),
                "{error}"
            );
        }
    }
}
