//! Reads the verifier's log: the error line and the statistics at its end.

use crate::util::Errno;
use crate::verifier::{Decision, Statistics, Verdict};

/// Parses a verdict from the log.
pub(super) fn verdict(errno: Option<Errno>, log: String) -> Verdict {
    let (message, statistics) = read(&log);
    Verdict {
        decision: match errno {
            None => Decision::Accept,
            Some(_) => Decision::Reject,
        },
        errno,
        message: message.to_owned(),
        statistics,
        log,
    }
}

/// The text in a log buffer, up to its zero byte.
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
            // Not every error line ends with a newline.
            if !before.is_empty() {
                return (before, Some(statistics));
            }
        } else if let Some(depths) = line.strip_prefix("stack depth ") {
            // Newer kernels append the stack depth of the deepest call chain to the list.
            let list = depths.split_whitespace().next().unwrap_or_default();
            statistics.stack_depth = list.split('+').filter_map(|d| d.parse().ok()).collect();
        } else if !line.starts_with("; ") {
            return (line, Some(statistics));
        }
        // A source line can follow the error line.
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
        // The kernel prints the time first, so the error line is before that.
        let log = format!("0: (95) exit\nR0 !read_ok\n{STATISTICS}");
        let verdict = verdict(Some(Errno::EACCES), log);
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
        let source = format!("no such field\n; return ctx->x; @ a.c:1\n{STATISTICS}");
        assert_eq!(read(&source).0, "no such field");
        let unended = format!("no end{STATISTICS}");
        assert_eq!(read(&unended).0, "no end");
        assert_eq!(read("no verifier\n"), ("no verifier", None));
    }
}
