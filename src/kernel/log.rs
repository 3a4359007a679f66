//! The verifier's log: the verdict's line and the statistics at its end.

use bitflags::bitflags;

use crate::util::Errno;

bitflags! {
    /// `log_level` of a load (`include/linux/bpf_verifier.h`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LogLevel: u32 {
        /// The path that leads to the error.
        const PATH = 1;
        /// Every instruction that is walked, with the registers behind it.
        const ALL = 2;
        /// Statistics at the end.
        const STATISTICS = 4;
    }
}

/// The verifier's statistics.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Instructions that it walked.
    pub processed: u64,
    /// States that it made in all.
    pub total_states: u64,
    /// The most states at one time.
    pub peak_states: u64,
    /// The most states at one instruction.
    pub max_states_per_insn: u64,
    /// Microseconds that verification took.
    pub time_us: Option<u64>,
    /// Bytes of stack of each function that is verified on its own.
    pub stack_depth: Vec<u32>,
}

/// What the kernel's verifier said of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it may run.
    pub accepted: bool,
    /// The error number of a reject.
    pub errno: Option<Errno>,
    /// The last line of the log before the statistics: the error line of a reject,
    /// often empty for an accepted program.
    pub message: String,
    /// The statistics; none if the program was refused before it reached the verifier.
    pub statistics: Option<Statistics>,
    /// The log as it was asked for, statistics included.
    pub log: String,
}

impl Verdict {
    /// Reads a verdict out of the log.
    pub(super) fn new(errno: Option<Errno>, log: String) -> Self {
        let (message, statistics) = read(&log);
        Self {
            accepted: errno.is_none(),
            errno,
            message: message.to_owned(),
            statistics,
            log,
        }
    }

    /// Instructions that the verifier walked; 0 if it wasn't reached.
    #[must_use]
    pub fn processed(&self) -> u64 {
        self.statistics
            .as_ref()
            .map_or(0, |statistics| statistics.processed)
    }
}

/// The text in a log buffer, up to its zero.
pub(super) fn text(log: &[u8]) -> String {
    let text = log.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// The last line before the statistics, and the statistics
/// (`print_verification_stats`, `kernel/bpf/verifier.c`).
fn read(log: &str) -> (&str, Option<Statistics>) {
    let mut lines = log.lines().rev().peekable();
    let Some(counts) = lines
        .peek()
        .and_then(|line| line.strip_prefix("processed "))
    else {
        return (lines.next().unwrap_or_default(), None);
    };
    lines.next();
    let after = |name: &str| {
        let rest = counts.split_once(name).map(|(_, rest)| rest);
        rest.and_then(first_number).unwrap_or(0)
    };
    let mut statistics = Statistics {
        processed: first_number(counts).unwrap_or(0),
        max_states_per_insn: after("max_states_per_insn "),
        total_states: after(" total_states "),
        peak_states: after(" peak_states "),
        ..Statistics::default()
    };
    for line in lines {
        if let Some((before, time)) = line.split_once("verification time ") {
            statistics.time_us = first_number(time);
            // Not every error line is ended.
            if !before.is_empty() {
                return (before, Some(statistics));
            }
        } else if let Some(depths) = line.strip_prefix("stack depth ") {
            // Newer kernels add the deepest chain of calls behind the list.
            let list = depths.split_whitespace().next().unwrap_or_default();
            statistics.stack_depth = list.split('+').filter_map(|d| d.parse().ok()).collect();
        } else {
            return (line, Some(statistics));
        }
    }
    ("", Some(statistics))
}

fn first_number(text: &str) -> Option<u64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATISTICS: &str = "verification time 19 usec\nstack depth 16+0\nprocessed 10 insns \
                              (limit 1000000) max_states_per_insn 2 total_states 3 peak_states \
                              4 mark_read 0\n";

    #[test]
    fn the_line_before_the_statistics_is_the_message() {
        // The kernel prints the time first, so the line stands before that.
        let log = format!("0: (95) exit\nR0 !read_ok\n{STATISTICS}");
        let verdict = Verdict::new(Some(Errno::EACCES), log);
        assert_eq!(verdict.message, "R0 !read_ok");
        assert_eq!(verdict.processed(), 10);
        let statistics = verdict.statistics.unwrap();
        assert_eq!(statistics.time_us, Some(19));
        assert_eq!(statistics.stack_depth, [16, 0]);
        assert_eq!(statistics.max_states_per_insn, 2);
        assert_eq!((statistics.total_states, statistics.peak_states), (3, 4));
    }

    #[test]
    fn a_log_may_be_empty_or_without_statistics() {
        assert_eq!(text(b"one\ntwo\n\0three"), "one\ntwo\n");
        assert_eq!(read(""), ("", None));
        assert_eq!(read(STATISTICS).0, "");
        let unended = format!("no end{STATISTICS}");
        assert_eq!(read(&unended).0, "no end");
        assert_eq!(read("no verifier\n"), ("no verifier", None));
    }
}
