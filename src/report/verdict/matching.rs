//! Compares bpflab's verdicts with the running kernel's.

use std::collections::BTreeMap;
use std::fmt;

use super::kernel_said::{KernelSaid, Match};
use super::row::{Subject, VerdictRow};
use super::words::reason;
use crate::report::table::Table;

impl VerdictRow {
    /// Adds the kernel's verdict, and how the two compare.
    #[must_use]
    pub fn beside(mut self, kernel: KernelSaid) -> Self {
        let both = |verdict| self.verdict == verdict && kernel.verdict == verdict;
        let rejected = both("reject");
        self.matches = Some((self.is_judged() && kernel.is_judged()).then(|| Match {
            verdict: self.verdict == kernel.verdict,
            errno: rejected.then_some(self.errno == kernel.errno),
            message: rejected.then(|| self.message == kernel.message),
            processed: both("accept").then(|| self.processed == kernel.processed),
        }));
        self.kernel = Some(kernel);
        self
    }
}

/// The rows as a table with a column MATCH or MISMATCH, and a summary.
#[derive(Debug)]
pub struct MatchTable<'r>(pub &'r [VerdictRow]);

impl MatchTable<'_> {
    /// Whether no verdict differs from the kernel's.
    #[must_use]
    pub fn all_match(&self) -> bool {
        let compared = |row: &VerdictRow| row.matches.flatten();
        let whole = self.0.iter().filter_map(compared).all(|m| m.is_whole());
        whole && self.0.iter().all(VerdictRow::is_judged)
    }
}

impl fmt::Display for MatchTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = Subject::several_objects(self.0.iter().map(|row| &row.subject));
        let mut table = Table::default().flush().numbers(&[3, 4, 5, 6]);
        table.row([
            "program", "ours", "kernel", "insns", "kernel", "us", "kernel", "",
        ]);
        for row in self.0 {
            let kernel = row.kernel.clone().unwrap_or_default();
            let number = |number: Option<u64>| number.map(|n| n.to_string()).unwrap_or_default();
            let said = match row.matches.flatten() {
                Some(compared) if compared.is_whole() => "MATCH".to_owned(),
                Some(compared) => format!("MISMATCH: {}", compared.differing().join(", ")),
                None => "no verdict".to_owned(),
            };
            table.row([
                row.subject.name_among(several),
                row.word().to_owned(),
                kernel.verdict.to_owned(),
                number(row.processed),
                number(kernel.processed),
                number(row.time_us),
                number(kernel.time_us),
                said,
            ]);
            let whole = row.matches.flatten().is_some_and(|m| m.is_whole());
            if !whole {
                for (who, reason) in [
                    ("ours", reason(row.errno, &row.message)),
                    ("kernel", reason(kernel.errno, &kernel.message)),
                ] {
                    if !reason.is_empty() {
                        table.line(format!("    {who:<6} {reason}"));
                    }
                }
            }
        }
        table.fmt(f)?;
        Summary::of(self.0).fmt(f)
    }
}

/// Counts over all rows.
#[derive(Default)]
struct Summary {
    matching: usize,
    differing: BTreeMap<&'static str, usize>,
    compared: usize,
    without: BTreeMap<&'static str, usize>,
    ours_us: u64,
    kernel_us: u64,
}

impl Summary {
    fn of(rows: &[VerdictRow]) -> Self {
        let mut summary = Self::default();
        for row in rows {
            let Some(compared) = row.matches.flatten() else {
                let kernel = row.kernel.as_ref().and_then(|kernel| kernel.why);
                // An unjudged program, or one that the kernel was not asked about.
                let why = kernel.or(row.why).unwrap_or(row.verdict);
                *summary.without.entry(why).or_default() += 1;
                continue;
            };
            summary.compared += 1;
            summary.matching += usize::from(compared.is_whole());
            for name in compared.differing() {
                *summary.differing.entry(name).or_default() += 1;
            }
            let kernel_us = row.kernel.as_ref().and_then(|kernel| kernel.time_us);
            if let (Some(ours), Some(kernel)) = (row.time_us, kernel_us) {
                summary.ours_us += ours;
                summary.kernel_us += kernel;
            }
        }
        summary
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = |counts: &BTreeMap<&str, usize>| {
            let parts: Vec<_> = counts
                .iter()
                .map(|(name, count)| format!("{name} {count}"))
                .collect();
            match parts.len() {
                0 => String::new(),
                _ => format!(" ({})", parts.join(", ")),
            }
        };
        let without: usize = self.without.values().sum();
        writeln!(
            f,
            "{} compared: {} match, {} mismatch{}; {without} without a verdict of both{}",
            self.compared,
            self.matching,
            self.compared - self.matching,
            counts(&self.differing),
            counts(&self.without),
        )?;
        write!(
            f,
            "time: {} us, the kernel {} us",
            self.ours_us, self.kernel_us
        )?;
        if let Some(tenths) = (self.kernel_us * 10).checked_div(self.ours_us) {
            write!(f, ", ratio {}.{}", tenths / 10, tenths % 10)?;
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(verdict: &'static str, errno: u16, message: &str, processed: u64) -> VerdictRow {
        VerdictRow {
            verdict,
            errno: Some(errno),
            message: message.to_owned(),
            processed: Some(processed),
            time_us: Some(2),
            ..VerdictRow::of(Subject {
                program: Some("p".to_owned()),
                ..Subject::default()
            })
        }
    }

    fn kernel(verdict: &'static str, errno: u16, message: &str, processed: u64) -> KernelSaid {
        KernelSaid {
            verdict,
            errno: Some(errno),
            message: message.to_owned(),
            processed: Some(processed),
            time_us: Some(9),
            ..KernelSaid::default()
        }
    }

    #[test]
    fn what_is_no_promise_is_not_compared() {
        let compared = |row: VerdictRow| row.matches.flatten().unwrap();
        let rejected = row("reject", 13, "R0 !read_ok", 1);
        let same = compared(
            rejected
                .clone()
                .beside(kernel("reject", 13, "R0 !read_ok", 7)),
        );
        assert!(same.is_whole());
        assert_eq!(same.processed, None);
        let other = compared(rejected.beside(kernel("reject", 22, "R0 !read_ok", 1)));
        assert_eq!(other.differing(), ["errno"]);
        let accepted = row("accept", 0, "", 1);
        let other = compared(accepted.clone().beside(kernel("accept", 0, "", 2)));
        assert_eq!(other.differing(), ["processed"]);
        let other = compared(accepted.beside(kernel("reject", 22, "no", 1)));
        assert_eq!(other.differing(), ["verdict"]);
        assert_eq!(other.errno, None);
    }

    #[test]
    fn what_is_not_judged_matches_nothing() {
        for verdict in ["accept", "reject"] {
            let unjudged = VerdictRow {
                errno: None,
                ..row("unjudged", 0, "not modelled by bpflab: dynptr", 0)
            };
            let rows = [unjudged.beside(kernel(verdict, 0, "", 0))];
            assert_eq!(rows[0].matches, Some(None));
            let table = MatchTable(&rows);
            assert!(!table.all_match());
            let summary =
                "0 compared: 0 match, 0 mismatch; 1 without a verdict of both (unjudged 1)";
            assert!(table.to_string().contains(summary), "{table}");
        }
    }

    #[test]
    fn the_table_shows_both_and_counts() {
        let without = KernelSaid {
            verdict: "error",
            why: Some("permission"),
            errno: Some(1),
            message: "refused".to_owned(),
            ..KernelSaid::default()
        };
        let rows = [
            row("accept", 0, "", 3).beside(kernel("accept", 0, "", 3)),
            row("reject", 13, "ours", 3).beside(kernel("reject", 13, "theirs", 3)),
            row("accept", 0, "", 3).beside(without),
        ];
        let table = MatchTable(&rows);
        assert!(!table.all_match());
        assert!(MatchTable(&rows[..1]).all_match());
        assert_eq!(
            table.to_string(),
            "program  ours    kernel  insns  kernel  us  kernel
p        accept  accept      3       3   2       9  MATCH
p        reject  reject      3       3   2       9  MISMATCH: message
    ours   EACCES: ours
    kernel EACCES: theirs
p        accept  error       3           2          no verdict
    kernel EPERM: refused
2 compared: 1 match, 1 mismatch (message 1); 1 without a verdict of both (permission 1)
time: 4 us, the kernel 18 us, ratio 4.5
"
        );
    }
}
