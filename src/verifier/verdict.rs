//! Verdicts: the common form for this verifier and the kernel's.

use std::fmt;

use bitflags::bitflags;

use crate::spec::limits::MAX_INSNS;
use crate::util::Errno;

bitflags! {
    /// The contents of the log: `log_level` of a load (`include/linux/bpf_verifier.h`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct LogLevel: u32 {
        /// The path that leads to the error.
        const PATH = 1;
        /// Every explored instruction, with the registers after it.
        const ALL = 2;
        /// Statistics at the end.
        const STATISTICS = 4;
    }
}

/// Counters of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Instructions processed.
    pub processed: u64,
    /// Checkpoints in total.
    pub total_states: u64,
    /// The most checkpoints at one time.
    pub peak_states: u64,
    /// The most checkpoints at one instruction.
    pub max_states_per_insn: u64,
    /// Microseconds that verification took.
    pub time_us: Option<u64>,
    /// Stack depth in bytes of each function that is verified on its own.
    pub stack_depth: Vec<u32>,
}

/// The lines at the end of a log (`print_verification_stats`,
/// `kernel/bpf/verifier.c`).
impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "verification time {} usec", self.time_us.unwrap_or(0))?;
        f.write_str("stack depth ")?;
        for (at, depth) in self.stack_depth.iter().enumerate() {
            let plus = if at == 0 { "" } else { "+" };
            write!(f, "{plus}{depth}")?;
        }
        writeln!(
            f,
            "\nprocessed {} insns (limit {MAX_INSNS}) max_states_per_insn {} total_states {} \
             peak_states {} mark_read 0",
            self.processed, self.max_states_per_insn, self.total_states, self.peak_states
        )
    }
}

/// The three verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// The program may run.
    Accept,
    /// The program may not run.
    Reject,
    /// The program uses a feature that the verifier does not model. The kernel never
    /// returns this. It agrees with no verdict, not even with another unjudged one.
    Unjudged,
}

impl Decision {
    /// `accept`, `reject` or `unjudged`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Reject => "reject",
            Self::Unjudged => "unjudged",
        }
    }
}

/// The verdict on a program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// Accepted, rejected or unjudged.
    pub decision: Decision,
    /// The error number of a reject, `None` otherwise.
    pub errno: Option<Errno>,
    /// The last line of the log before the statistics: the error line of a reject, often
    /// empty for an accepted program. For an unjudged program, the missing features.
    pub message: String,
    /// The statistics; `None` if the load failed before verification.
    pub statistics: Option<Statistics>,
    /// The log at the requested level, including statistics.
    pub log: String,
}

impl Verdict {
    /// Whether the program may run.
    #[must_use]
    pub const fn is_accepted(&self) -> bool {
        matches!(self.decision, Decision::Accept)
    }

    /// Whether there is no verdict on the program.
    #[must_use]
    pub const fn is_unjudged(&self) -> bool {
        matches!(self.decision, Decision::Unjudged)
    }

    /// Instructions processed; 0 without statistics.
    #[must_use]
    pub fn processed(&self) -> u64 {
        self.statistics
            .as_ref()
            .map_or(0, |statistics| statistics.processed)
    }
}
