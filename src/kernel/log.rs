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
    let mut in_front_of_report = false;
    while let Some(line) = lines.next() {
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
        } else if line.is_empty() {
            // Linux 7.3 has a report between empty lines here; the error line stands before it.
            if !in_front_of_report {
                lines.find(|line| line.starts_with("Verification failed: "));
                in_front_of_report = true;
            }
        } else if !(line.starts_with("; ") || is_count(line)) {
            return (line, Some(statistics));
        }
        // A source line can follow the error line.
    }
    ("", Some(statistics))
}

/// Whether this is a line about instructions that Linux 7.2 and later put between the stack
/// depths and the line "processed": `insns processed 2+5`, `subprog 0 (name) main insns_self 1 …`.
fn is_count(line: &str) -> bool {
    line.starts_with("insns processed ")
        || (line.starts_with("subprog ") && line.contains(" insns_self "))
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
    fn newer_kernels_count_by_subprogram() {
        let log = "R0 !read_ok\nverification time 7 usec\nstack depth 8+0 max 8\n\
                   insns processed 2+5\n\
                   subprog 0 (on_write) main insns_self 2 insns_total 7 stack 8\n\
                   processed 7 insns (limit 1000000) max_states_per_insn 0 total_states 0 \
                   peak_states 0 mark_read 0\n";
        let (message, statistics) = read(log);
        let statistics = statistics.unwrap();
        assert_eq!((message, statistics.processed), ("R0 !read_ok", 7));
        assert_eq!(
            (statistics.time_us, statistics.stack_depth),
            (Some(7), vec![8, 0])
        );
    }

    #[test]
    fn a_report_stands_between_the_error_line_and_the_statistics() {
        let report = "\nVerification failed: Policy: not allowed\n\nReason:\n  It is so.\n\n";
        let log = format!("R0 !read_ok\n{report}{STATISTICS}");
        assert_eq!(read(&log).0, "R0 !read_ok");
        // A leak is found at the exit, and its report comes first.
        let log = format!("6: (95) exit\n{report}reference leak\n{STATISTICS}");
        assert_eq!(read(&log).0, "reference leak");
        assert_eq!(read(&format!("\n{STATISTICS}")).0, "");
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
