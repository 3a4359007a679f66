//! The result of comparing generated programs: `bpflab compare --generated`.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::compare::generated::{Detail, Finding, Recipe, Replayed, Tally};
use crate::compare::replay::{Verdict, Word};
use crate::report::replay::{
    Explained, map_json, output_json, program_json, said_of_map, said_of_output,
};
use crate::report::table::Table;

/// Counts of generated programs. Its fields are the keys of `--json`.
#[derive(Debug, Clone, Serialize)]
pub struct GeneratedSummary {
    /// `generated`.
    kind: &'static str,
    /// Programs generated.
    pub made: u64,
    /// Programs that both the kernel and bpflab accept.
    pub accepted: u64,
    /// Programs that both reject, by bpflab's message.
    pub refused: BTreeMap<String, u64>,
    /// Programs that one accepts and the other rejects.
    pub disagreed: u64,
    /// Programs that bpflab's verifier leaves unjudged, or that the kernel's fails on with ENOMEM.
    pub unjudged: u64,
    /// Accepted programs that were not recorded, by the reason.
    pub unrecordable: BTreeMap<String, u64>,
    /// Recorded programs.
    pub recorded: u64,
    /// How often recorded programs ran in the kernel.
    pub firings: u64,
    /// How many programs have each verdict, by engine.
    pub engines: Vec<EngineVerdicts>,
    /// Maps and outputs of recorded programs that were not compared, by the reason.
    pub not_compared: BTreeMap<String, u64>,
    /// Number of findings.
    pub findings: usize,
    /// Seconds by phase.
    pub seconds: BTreeMap<&'static str, f64>,
}

/// How many programs have each verdict on an engine.
#[derive(Debug, Clone, Serialize)]
pub struct EngineVerdicts {
    /// The engine.
    pub engine: &'static str,
    /// Number of programs by verdict, as in JSON.
    pub verdicts: BTreeMap<&'static str, u64>,
    /// How many did not run on the engine, by the reason.
    pub elsewhere: BTreeMap<&'static str, u64>,
    #[serde(skip)]
    counts: BTreeMap<Word, u64>,
}

/// A difference or disagreement. Its fields are the keys of `--json`.
#[derive(Debug, Clone, Serialize)]
pub struct FindingRow {
    /// `finding`.
    kind: &'static str,
    /// The kind of finding.
    pub finding: &'static str,
    /// The engine; none for verdicts.
    pub engine: Option<&'static str>,
    /// The seed of the program.
    pub seed: u64,
    /// The size of its recipe.
    pub size: usize,
    /// The smallest size with the same finding.
    pub shrunk_to: Option<usize>,
    /// A verifier's message.
    pub message: Option<String>,
    /// The replay's report on the program, its maps and its outputs.
    pub replay: Option<Json>,
    #[serde(skip)]
    title: String,
    #[serde(skip)]
    text: String,
}

impl GeneratedSummary {
    /// The summary of a tally.
    #[must_use]
    pub fn new(tally: &Tally) -> Self {
        use crate::compare::generated::FindingKind::{OnlyKernelAccepts, OnlyWeAccept};
        let refused: u64 = tally.refused.values().sum();
        let disagreed = tally
            .findings
            .iter()
            .filter(|found| matches!(found.kind, OnlyKernelAccepts | OnlyWeAccept));
        let disagreed = disagreed.count() as u64;
        let times = &tally.times;
        let seconds = [
            ("making", times.making),
            ("maps", times.maps),
            ("loading", times.loading),
            ("attaching", times.attaching),
            ("firing", times.firing),
            ("detaching", times.detaching),
            ("replaying", times.replaying),
            ("total", times.total),
        ];
        let engines = tally.engines.iter().map(|engine| EngineVerdicts {
            engine: engine.engine.name(),
            verdicts: engine
                .verdicts
                .iter()
                .map(|(word, count)| (word.key(), *count))
                .collect(),
            elsewhere: engine
                .elsewhere
                .iter()
                .map(|(why, count)| (why.name(), *count))
                .collect(),
            counts: engine.verdicts.clone(),
        });
        Self {
            kind: "generated",
            made: tally.made,
            accepted: tally.made - refused - disagreed - tally.unjudged,
            refused: tally.refused.clone(),
            disagreed,
            unjudged: tally.unjudged,
            unrecordable: tally.unrecordable.clone(),
            recorded: tally.recorded,
            firings: tally.firings,
            engines: engines.collect(),
            not_compared: tally.not_compared.clone(),
            findings: tally.findings.len(),
            seconds: seconds
                .into_iter()
                .map(|(what, time)| (what, tenths(time)))
                .collect(),
        }
    }
}

/// Seconds with one decimal place.
fn tenths(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

impl FindingRow {
    /// The row of a finding.
    #[must_use]
    pub fn new(finding: &Finding) -> Self {
        let Recipe { seed, size } = finding.recipe;
        Self {
            kind: "finding",
            finding: finding.kind.key(),
            engine: finding.kind.engine().map(crate::harness::EngineKind::name),
            seed,
            size,
            shrunk_to: finding.shrunk.map(|recipe| recipe.size),
            message: match &finding.detail {
                Detail::Refused(message) => Some(message.clone()),
                Detail::Replayed(_) => None,
            },
            replay: match &finding.detail {
                Detail::Refused(_) => None,
                Detail::Replayed(replayed) => Some(replayed_json(replayed)),
            },
            title: finding.kind.text(),
            text: match &finding.detail {
                Detail::Refused(message) => message.clone(),
                Detail::Replayed(replayed) => said(replayed),
            },
        }
    }
}

fn replayed_json(replayed: &Replayed) -> Json {
    json!({
        "program": program_json(&replayed.program),
        "maps": replayed.maps.iter().map(map_json).collect::<Vec<_>>(),
        "outputs": replayed.outputs.iter().map(output_json).collect::<Vec<_>>(),
    })
}

/// The report on a program, its maps and its outputs, a line each.
fn said(replayed: &Replayed) -> String {
    let program = &replayed.program;
    let mut lines = Vec::new();
    match &program.verdict {
        Verdict::Different(first) => lines.push(Explained(&program.name, first).to_string()),
        verdict => lines.push(format!("{}: {}", program.name, verdict.word())),
    }
    let maps = replayed.maps.iter();
    lines.extend(maps.map(|map| format!("{}: {}", map.name, said_of_map(map))));
    let outputs = replayed.outputs.iter();
    lines.extend(outputs.map(|output| format!("{}: {}", output.name, said_of_output(output))));
    lines.join("\n")
}

impl fmt::Display for GeneratedSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} programs on raw_syscalls:sys_enter, {} recorded, {} firings",
            self.made, self.recorded, self.firings
        )?;
        let mut table = Table::default().numbers(&[1]);
        let count = |table: &mut Table, what: &str, count: u64| {
            table.row([what.to_owned(), count.to_string()]);
        };
        count(&mut table, "accepted by both", self.accepted);
        count(&mut table, "rejected by both", self.refused.values().sum());
        count(&mut table, "accepted by one", self.disagreed);
        count(&mut table, "no verdict", self.unjudged);
        let unrecordable = self.unrecordable.values().sum();
        count(&mut table, "not recordable", unrecordable);
        count(&mut table, "recorded", self.recorded);
        table.fmt(f)?;
        fmt_reasons(f, "rejected by both", &self.refused)?;
        fmt_reasons(f, "not recordable", &self.unrecordable)?;
        if !self.engines.is_empty() {
            writeln!(f)?;
            self.verdicts().fmt(f)?;
            for engine in &self.engines {
                for (why, count) in &engine.elsewhere {
                    writeln!(
                        f,
                        "{count} programs not compared on {}: {why}",
                        engine.engine
                    )?;
                }
            }
            fmt_reasons(f, "not compared", &self.not_compared)?;
        }
        let parts = self.seconds.iter().filter(|(what, _)| **what != "total");
        let parts: Vec<_> = parts.map(|(what, time)| format!("{what} {time}")).collect();
        let total = self.seconds.get("total").copied().unwrap_or_default();
        writeln!(f, "\n{total} seconds: {}", parts.join(", "))
    }
}

/// Writes how often each reason occurs, under a title; nothing if there are none.
fn fmt_reasons(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    reasons: &BTreeMap<String, u64>,
) -> fmt::Result {
    if reasons.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n{title}")?;
    let mut table = Table::default().numbers(&[0]);
    for (reason, count) in reasons {
        table.row([count.to_string(), reason.clone()]);
    }
    write!(f, "{table}")
}

impl GeneratedSummary {
    fn verdicts(&self) -> Table {
        let mut table = Table::default().numbers(&[1, 2, 3, 4, 5, 6]);
        let titles = Word::ALL.iter().map(|word| word.text().to_owned());
        table.row([String::new()].into_iter().chain(titles));
        for engine in &self.engines {
            let counts = Word::ALL
                .iter()
                .map(|word| engine.counts.get(word).copied());
            let counts = counts.map(|count| count.unwrap_or_default().to_string());
            table.row([engine.engine.to_owned()].into_iter().chain(counts));
        }
        table
    }
}

impl fmt::Display for FindingRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, title, .. } = self;
        let size = self.shrunk_to.unwrap_or(self.size);
        writeln!(f, "\n{title}: seed {seed}")?;
        for line in self.text.lines() {
            writeln!(f, "  {line}")?;
        }
        writeln!(
            f,
            "  again, alone: bpflab compare --generated 1 --seed {seed} --size {size}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::generated::{EngineTally, FindingKind};
    use crate::harness::{EngineKind, Fallback};

    #[test]
    fn a_summary_says_what_was_found() {
        let mut tally = Tally {
            made: 10,
            recorded: 6,
            firings: 96,
            ..Tally::default()
        };
        tally.refused.insert("R0 !read_ok".to_owned(), 1);
        tally.unrecordable.insert("a tail call".to_owned(), 2);
        tally.not_compared.insert("a map: no key".to_owned(), 3);
        tally.engines.push(EngineTally {
            engine: EngineKind::Jit,
            verdicts: [(Word::Equal, 4), (Word::Different, 1)].into(),
            elsewhere: [(Fallback::Unjudged, 1)].into(),
        });
        tally.findings.push(Finding {
            recipe: Recipe { seed: 7, size: 700 },
            shrunk: Some(Recipe { seed: 7, size: 31 }),
            kind: FindingKind::Different(EngineKind::Jit),
            detail: Detail::Refused("returned 1, not 2".to_owned()),
        });
        tally.findings.push(Finding {
            recipe: Recipe { seed: 8, size: 700 },
            shrunk: None,
            kind: FindingKind::OnlyWeAccept,
            detail: Detail::Refused("R1 !read_ok".to_owned()),
        });
        let summary = GeneratedSummary::new(&tally);
        assert_eq!(
            (summary.accepted, summary.disagreed, summary.findings),
            (8, 1, 2)
        );
        let text = summary.to_string();
        for line in [
            "10 programs on raw_syscalls:sys_enter, 6 recorded, 96 firings",
            "1 programs not compared on jit: unjudged",
            "  accepted by both  8",
            "  2  a tail call",
            "not compared\n  3  a map: no key",
            "  jit      4              0                0                 0           0          1",
        ] {
            assert!(text.contains(line), "{text}");
        }
        let row = FindingRow::new(&tally.findings[0]);
        assert_eq!(
            row.to_string(),
            "\ndifferent on jit: seed 7\n  returned 1, not 2\n  again, alone: bpflab compare \
             --generated 1 --seed 7 --size 31\n"
        );
        let json = serde_json::to_value(&row).unwrap();
        assert_eq!(
            (&json["engine"], &json["shrunk_to"]),
            (&"jit".into(), &31.into())
        );
    }
}
