//! Compares rows with those of an earlier run: `--compare FILE`.

use std::fmt;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::baseline::{Baseline, Before, Key};
use super::row::VerdictRow;
use super::words::reason;
use crate::report::table::Table;
use crate::verifier::Decision;

/// A program in both runs, or in one of them. Its fields are the keys of `--json`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Change<'r> {
    /// The row of this run.
    #[serde(flatten)]
    pub now: Option<&'r VerdictRow>,
    /// Its name, if it is not in this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// The earlier run's verdict.
    pub before: Option<Before>,
    /// Whether verdict, reason and counts are equal; times are not compared.
    pub same: bool,
}

impl Change<'_> {
    /// Whether the program is in both runs and one of them did not judge it.
    fn is_unjudged(&self) -> bool {
        let unjudged = Decision::Unjudged.word();
        let both = self.now.zip(self.before.as_ref());
        both.is_some_and(|(now, before)| now.verdict == unjudged || before.verdict == unjudged)
    }
}

/// This run's rows with an earlier run's.
#[derive(Debug)]
pub struct Changes<'r>(Vec<Change<'r>>);

impl<'r> Changes<'r> {
    /// Compares the rows. Programs of the same name in the same file are matched by order.
    #[must_use]
    pub fn new(rows: &'r [VerdictRow], baseline: Baseline) -> Self {
        let mut earlier = FxHashMap::<Key, Vec<(usize, Before)>>::default();
        for (at, before) in baseline.0.into_iter().enumerate().rev() {
            let key = Key::of_earlier(&before);
            earlier.entry(key).or_default().push((at, before));
        }
        let mut changes: Vec<_> = rows
            .iter()
            .map(|row| {
                let before = earlier.get_mut(&Key::of(row)).and_then(Vec::pop);
                let before = before.map(|(_, before)| before);
                let same = before.as_ref().is_some_and(|before| is_same(row, before));
                Change {
                    now: Some(row),
                    missing: None,
                    before,
                    same,
                }
            })
            .collect();
        let mut left: Vec<_> = earlier.into_values().flatten().collect();
        left.sort_by_key(|(at, _)| *at);
        changes.extend(left.into_iter().map(|(_, before)| Change {
            now: None,
            missing: Some(Key::of_earlier(&before).to_string()),
            before: Some(before),
            same: false,
        }));
        Self(changes)
    }

    /// The programs of both runs.
    #[must_use]
    pub fn all(&self) -> &[Change<'r>] {
        &self.0
    }

    /// Whether nothing has changed.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0.iter().all(|change| change.same)
    }
}

/// Whether verdict, reason and counts are equal. An unjudged program is never the same.
fn is_same(row: &VerdictRow, before: &Before) -> bool {
    row.is_judged()
        && (row.verdict, row.errno, row.message.as_str())
            == (&before.verdict, before.errno, before.message.as_str())
        && (row.processed, row.total_states) == (before.processed, before.total_states)
}

/// A number and its change: `120 +20 (+20.0%)`.
fn difference(now: Option<u64>, before: Option<u64>) -> String {
    let (Some(now), Some(before)) = (now, before) else {
        let number = |number: Option<u64>| number.map(|n| n.to_string()).unwrap_or_default();
        return number(now.or(before));
    };
    let by = i128::from(now) - i128::from(before);
    if by == 0 {
        return now.to_string();
    }
    match (by * 1000).checked_div(i128::from(before)) {
        Some(tenths) => {
            let sign = if tenths < 0 { '-' } else { '+' };
            let tenths = tenths.unsigned_abs();
            format!("{now} {by:+} ({sign}{}.{}%)", tenths / 10, tenths % 10)
        }
        None => format!("{now} {by:+}"),
    }
}

/// A table of the changes, a summary, and the total times.
impl fmt::Display for Changes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::default().flush();
        table.row(["program", "verdict", "insns", "states", "us"]);
        let (mut appeared, mut vanished) = (0, 0);
        let (mut now_us, mut before_us) = (0, 0);
        for change in &self.0 {
            match (change.now, &change.before) {
                (Some(now), None) => {
                    appeared += 1;
                    let name = Key::of(now).to_string();
                    table.row([name, format!("{} (new)", now.verdict)]);
                }
                (None, before) => {
                    vanished += 1;
                    let was = before.as_ref().map_or("", |before| &before.verdict);
                    let name = change.missing.clone().unwrap_or_default();
                    table.row([name, format!("{was} (not in this run)")]);
                }
                (Some(now), Some(before)) => {
                    if let (Some(now), Some(before)) = (now.time_us, before.time_us) {
                        now_us += now;
                        before_us += before;
                    }
                    if !change.same {
                        add(&mut table, now, before);
                    }
                }
            }
        }
        let differing = self.0.iter().filter(|change| !change.same).count();
        if differing > 0 {
            table.fmt(f)?;
        }
        let unjudged = self.0.iter().filter(|change| change.is_unjudged()).count();
        write!(
            f,
            "{} compared: {} same, {} changed, {appeared} new, {vanished} not in this run",
            self.0.len() - appeared - vanished - unjudged,
            self.0.len() - differing,
            differing - appeared - vanished - unjudged,
        )?;
        match unjudged {
            0 => writeln!(f)?,
            _ => writeln!(f, ", {unjudged} not judged")?,
        }
        let us = difference(Some(now_us), Some(before_us));
        writeln!(f, "time: {us} us")
    }
}

fn add(table: &mut Table, now: &VerdictRow, before: &Before) {
    let verdict = if now.verdict == before.verdict {
        now.verdict.to_owned()
    } else {
        format!("{} -> {}", before.verdict, now.verdict)
    };
    table.row([
        Key::of(now).to_string(),
        verdict,
        difference(now.processed, before.processed),
        difference(now.total_states, before.total_states),
        difference(now.time_us, before.time_us),
    ]);
    if (now.errno, now.message.as_str()) != (before.errno, before.message.as_str()) {
        for (when, reason) in [
            ("before", reason(before.errno, &before.message)),
            ("now", reason(now.errno, &now.message)),
        ] {
            if !reason.is_empty() {
                table.line(format!("    {when:<6} {reason}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::Subject;
    use super::*;

    fn row(program: &str, verdict: &'static str, processed: u64) -> VerdictRow {
        VerdictRow {
            verdict,
            errno: (verdict != "unjudged").then_some(0),
            processed: Some(processed),
            total_states: Some(2),
            time_us: Some(10),
            ..VerdictRow::of(Subject {
                object: Some("dir/a.o".to_owned()),
                program: Some(program.to_owned()),
                ..Subject::default()
            })
        }
    }

    /// The rows as those of an earlier run.
    fn earlier(rows: &[VerdictRow]) -> Baseline {
        let lines = rows.iter().map(|row| serde_json::to_string(row).unwrap());
        Baseline::read(&lines.collect::<Vec<_>>().join("\n")).unwrap()
    }

    #[test]
    fn a_run_equals_itself() {
        let rows = [row("one", "accept", 100), row("two", "accept", 7)];
        assert!(Changes::new(&rows, earlier(&rows)).is_none());
        assert!(!Changes::new(&rows[1..], earlier(&rows)).is_none());
    }

    #[test]
    fn what_is_not_judged_is_never_the_same() {
        let rows = [row("a", "unjudged", 0), row("b", "accept", 5)];
        let changes = Changes::new(&rows, earlier(&rows));
        assert!(!changes.is_none());
        let text = changes.to_string();
        assert!(
            text.contains("1 compared: 1 same, 0 changed, 0 new, 0 not in this run, 1 not judged"),
            "{text}"
        );
        let changes = Changes::new(&rows[1..], earlier(&[row("b", "unjudged", 5)]));
        assert!(!changes.is_none());
        assert!(
            changes.to_string().contains("unjudged -> accept"),
            "{changes}"
        );
    }

    #[test]
    fn changes_are_told_in_numbers_and_percent() {
        let before = [
            row("same", "accept", 5),
            row("grew", "accept", 100),
            row("gone", "reject", 1),
        ];
        let mut refused = row("grew", "reject", 120);
        refused.errno = Some(13);
        refused.message = "R0 !read_ok".to_owned();
        let rows = [row("same", "accept", 5), refused, row("new", "accept", 3)];
        let changes = Changes::new(&rows, earlier(&before));
        assert!(!changes.is_none());
        assert_eq!(
            changes.to_string(),
            "program   verdict                   insns             states  us
a.o/grew  accept -> reject          120 +20 (+20.0%)  2       10
    now    EACCES: R0 !read_ok
a.o/new   accept (new)
a.o/gone  reject (not in this run)
2 compared: 1 same, 1 changed, 1 new, 1 not in this run
time: 20 us
"
        );
        assert_eq!(difference(Some(3), Some(0)), "3 +3");
        assert_eq!(difference(Some(999), Some(1000)), "999 -1 (-0.1%)");
    }
}
