//! Compares rows with those of an earlier run: `--against FILE`.

use std::fmt;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::baseline::{Baseline, Before, Key};
use super::gate::{Count, FailOn};
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
    /// The words of `--fail-on` that it fails by; null without the option.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fails: Option<Vec<FailOn>>,
}

impl Change<'_> {
    /// The program's name with its file's, or the case's id.
    pub(super) fn name(&self) -> String {
        match self.now {
            Some(row) => Key::of(row).to_string(),
            None => self.missing.clone().unwrap_or_default(),
        }
    }

    /// The object's file.
    pub(super) fn object(&self) -> &str {
        let now = self.now.and_then(|row| row.subject.object.as_deref());
        let before = self.before.as_ref().and_then(Before::object);
        now.or(before).unwrap_or("?")
    }

    /// How it fails by this rule.
    pub(super) fn why(&self, fails: FailOn) -> String {
        let name = self.name();
        let counts = |count: Count| {
            let now = self.now.map(|row| (row.processed, row.total_states));
            let before = self.before.as_ref();
            let before = before.map(|before| (before.processed, before.total_states));
            let (now, before) = (now.unwrap_or_default(), before.unwrap_or_default());
            match count {
                Count::Insns => format!("insns {}", difference(now.0, before.0)),
                Count::States => format!("states {}", difference(now.1, before.1)),
            }
        };
        match fails {
            FailOn::Verdict => {
                let verdict = self.now.map_or("", |row| row.verdict);
                match &self.before {
                    Some(before) => format!("{name}: {} -> {verdict}", before.verdict),
                    None => format!("{name}: {verdict} (new)"),
                }
            }
            FailOn::Missing => format!("{name}: not in this run"),
            FailOn::Growth(count, _) => format!("{name}: {}", counts(count)),
        }
    }

    /// Whether the program is in both runs and one of them did not judge it.
    fn is_unjudged(&self) -> bool {
        let unjudged = Decision::Unjudged.word();
        let both = self.now.zip(self.before.as_ref());
        both.is_some_and(|(now, before)| now.verdict == unjudged || before.verdict == unjudged)
    }
}

/// This run's rows with an earlier run's.
#[derive(Debug)]
pub struct Changes<'r> {
    changes: Vec<Change<'r>>,
    fail_on: Vec<FailOn>,
}

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
                    fails: None,
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
            fails: None,
        }));
        Self {
            changes,
            fail_on: Vec::new(),
        }
    }

    /// With the changes that fail; without any words, every change does.
    #[must_use]
    pub fn with_fail_on(mut self, words: &[FailOn]) -> Self {
        self.fail_on = words.to_vec();
        for change in self.changes.iter_mut().filter(|_| !words.is_empty()) {
            let fails = words
                .iter()
                .copied()
                .filter(|word| word.fits(change.now, change.before.as_ref()));
            change.fails = Some(fails.collect());
        }
        self
    }

    /// The programs of both runs.
    #[must_use]
    pub fn all(&self) -> &[Change<'r>] {
        &self.changes
    }

    /// Whether no change fails.
    #[must_use]
    pub fn pass(&self) -> bool {
        self.changes.iter().all(|change| match &change.fails {
            Some(fails) => fails.is_empty(),
            None => change.same,
        })
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
        for change in &self.changes {
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
        let differing = self.changes.iter().filter(|change| !change.same).count();
        if differing > 0 {
            table.fmt(f)?;
        }
        let unjudged = self
            .changes
            .iter()
            .filter(|change| change.is_unjudged())
            .count();
        write!(
            f,
            "{} compared: {} same, {} changed, {appeared} new, {vanished} not in this run",
            self.changes.len() - appeared - vanished - unjudged,
            self.changes.len() - differing,
            differing - appeared - vanished - unjudged,
        )?;
        match unjudged {
            0 => writeln!(f)?,
            _ => writeln!(f, ", {unjudged} not judged")?,
        }
        let us = difference(Some(now_us), Some(before_us));
        writeln!(f, "time: {us} us")?;
        if self.fail_on.is_empty() {
            return Ok(());
        }
        let words: Vec<_> = self.fail_on.iter().map(ToString::to_string).collect();
        let result = if self.pass() { "pass" } else { "fail" };
        writeln!(f, "{result}: {}", words.join(","))?;
        for change in &self.changes {
            for fails in change.fails.iter().flatten() {
                writeln!(f, "  {fails}: {}", change.why(*fails))?;
            }
        }
        Ok(())
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
        assert!(Changes::new(&rows, earlier(&rows)).pass());
        assert!(!Changes::new(&rows[1..], earlier(&rows)).pass());
    }

    #[test]
    fn what_is_not_judged_is_never_the_same() {
        let rows = [row("a", "unjudged", 0), row("b", "accept", 5)];
        let changes = Changes::new(&rows, earlier(&rows));
        assert!(!changes.pass());
        let text = changes.to_string();
        assert!(
            text.contains("1 compared: 1 same, 0 changed, 0 new, 0 not in this run, 1 not judged"),
            "{text}"
        );
        let changes = Changes::new(&rows[1..], earlier(&[row("b", "unjudged", 5)]));
        assert!(!changes.pass());
        assert!(
            changes.to_string().contains("unjudged -> accept"),
            "{changes}"
        );
    }

    #[test]
    fn only_the_named_changes_fail() {
        let before = [row("grew", "accept", 100), row("gone", "reject", 1)];
        let rows = [row("grew", "accept", 120), row("new", "accept", 3)];
        let gate = |words: &[&str]| {
            let words: Vec<FailOn> = words.iter().map(|word| word.parse().unwrap()).collect();
            let changes = Changes::new(&rows, earlier(&before)).with_fail_on(&words);
            (changes.pass(), changes.to_string())
        };
        assert!(gate(&["verdict", "insns>20%"]).0);
        assert!(!gate(&[]).0);
        let (pass, text) = gate(&["verdict", "insns>10%", "missing"]);
        assert!(!pass);
        assert!(
            text.ends_with(
                "fail: verdict,insns>10%,missing
  insns>10%: a.o/grew: insns 120 +20 (+20.0%)
  missing: a.o/gone: not in this run
"
            ),
            "{text}"
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
        assert!(!changes.pass());
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
