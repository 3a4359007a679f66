//! The running kernel's verdict, and how it compares with ours.

use serde::{Deserialize, Serialize};

use super::words::{errno, is_verdict};
use crate::verifier::Verdict;

/// The running kernel's verdict. Its fields are the keys of `"kernel"` in `--json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KernelSaid {
    /// `accept`, `reject`, or `error`: no verdict.
    pub verdict: &'static str,
    /// Why there is no verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
    /// The error number, positive; 0 for an accepted program.
    pub errno: Option<u16>,
    /// The error line; without a verdict, the reason.
    pub message: String,
    /// Instructions that it processed.
    pub processed: Option<u64>,
    /// States that it created.
    pub total_states: Option<u64>,
    /// Microseconds that it took.
    pub time_us: Option<u64>,
}

impl KernelSaid {
    /// A verdict.
    #[must_use]
    pub fn judged(verdict: &Verdict) -> Self {
        let statistics = verdict.statistics.as_ref();
        Self {
            verdict: verdict.decision.word(),
            why: None,
            errno: errno(verdict.decision, verdict.errno),
            message: verdict.message.clone(),
            processed: Some(verdict.processed()),
            total_states: statistics.map(|statistics| statistics.total_states),
            time_us: statistics.and_then(|statistics| statistics.time_us),
        }
    }

    /// No verdict.
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    #[must_use]
    pub fn not_judged(none: &crate::kernel::NoVerdict) -> Self {
        Self {
            verdict: "error",
            why: Some(none.kind.name()),
            errno: Some(none.error.errno.0),
            message: none.to_string(),
            ..Self::default()
        }
    }

    /// Whether there is a verdict.
    pub(super) fn is_judged(&self) -> bool {
        is_verdict(self.verdict)
    }
}

/// Which parts of two verdicts are equal; none for parts that are not compared: the number of
/// instructions of a rejected program may differ, an accepted one has no error line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Match {
    /// Accepted or rejected.
    pub verdict: bool,
    /// The error number, if both reject.
    pub errno: Option<bool>,
    /// The error line, if both reject.
    pub message: Option<bool>,
    /// Instructions that were processed, if both accept.
    pub processed: Option<bool>,
}

impl Match {
    /// Whether all that was compared is equal.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let parts = [self.errno, self.message, self.processed];
        self.verdict && !parts.contains(&Some(false))
    }

    /// The names of what differs.
    pub(super) fn differing(self) -> Vec<&'static str> {
        let parts = [
            ("verdict", Some(self.verdict)),
            ("errno", self.errno),
            ("message", self.message),
            ("processed", self.processed),
        ];
        let differing = parts.iter().filter(|(_, equal)| *equal == Some(false));
        differing.map(|(name, _)| *name).collect()
    }
}
